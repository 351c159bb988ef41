"""The pair of points that fools a linear classifier with as few inputs as possible (METHOD N2)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from daskab.errors import BoundError
from daskab.linear.exact import ExactLinear, widest_first
from daskab.model.checked import Array


def confident_pair(linear: ExactLinear, low: float, high: float, fewest: int) -> tuple[Array, Array]:
    """Two points (D,) of the box, f <= low at the first and f >= high at the second.

    Parameters
    ----------
    linear : ExactLinear
        Which `reaches` both thresholds.
    low, high : thresholds
    fewest : inputs that have to differ, by N1; more do where float64 has no point to do it with

    Raises
    ------
    BoundError
        If no pair is one, which METHOD N2 rules out: a fault in daskab.
    """
    changes = linear.changes
    order = widest_first(changes)
    movable = sum(change > 0 for change in changes)
    for n in range(fewest, movable + 1):
        x, x_prime = _pair(linear, low, high, order[:n], order[n:])
        in_box = linear.holds(x.tolist()) and linear.holds(x_prime.tolist())
        if in_box and linear.latent(x.tolist()) <= low and linear.latent(x_prime.tolist()) >= high:
            return x, x_prime
    raise BoundError(
        f"attack: no {fewest} to {movable} inputs move the latent from {low!r} to {high!r}, which its range allows; "
        "this is a fault in daskab, please report it with the model"
    )


def _pair(linear: ExactLinear, low: float, high: float, moved: list[int], shared: list[int]) -> tuple[Array, Array]:
    """A pair that differs in the inputs ``moved``; ``shared`` are the others, the widest first."""
    x = np.array([float(at_least(linear, j)) for j in range(len(linear.lower))])
    begin = linear.intercept + sum(linear.least)
    room = sum((linear.largest[j] - linear.least[j] for j in shared), Fraction(0))
    change = sum((linear.largest[j] - linear.least[j] for j in moved), Fraction(0))
    # Both of what is missing at least for x', and at most for x, are counted from where all inputs are at their least.
    nearest, farthest = max(Fraction(high) - begin - change, Fraction(0)), min(Fraction(low) - begin, room)
    aim = missing = (nearest + farthest) / 2
    for j in shared:
        w, width = linear.coefficients[j], linear.largest[j] - linear.least[j]
        if width == 0:
            break
        begin_at, whole = at_least(linear, j), width <= missing
        x[j] = float(at_largest(linear, j) if whole else begin_at + missing / w)
        if w * (Fraction(float(x[j])) - begin_at) > missing:
            x[j] = math.nextafter(x[j], begin_at)  # those that follow can add, not take away
        missing -= w * (Fraction(float(x[j])) - begin_at)
        if not whole and nearest <= aim - missing <= farthest:
            break
    x_prime = x.copy()
    for j in moved:
        x_prime[j] = float(at_largest(linear, j))
    return x, x_prime


def at_least(linear: ExactLinear, j: int) -> Fraction:
    """The edge of input j where its share of the latent is least."""
    return linear.lower[j] if linear.coefficients[j] >= 0 else linear.upper[j]


def at_largest(linear: ExactLinear, j: int) -> Fraction:
    """The edge of input j where its share of the latent is largest."""
    return linear.upper[j] if linear.coefficients[j] >= 0 else linear.lower[j]
