"""Negative weights merged into positive ones, pair by pair: a mixture that lies above the given one (METHOD 3.5)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab._elementary import exp, log, log1p
from daskab.bound.rounding import EPS, TINY, exp_up, grown

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-14
"""A weight this small beside the largest is counted whole, wherever it stands, so it cannot stretch the grid."""

HALVINGS = 32
LOWEST, HIGHEST = -40.0, 27.0
"""Range searched for the logarithm of how far a merged centre moves; beyond it rounding would eat the gain."""


@kernel
def shift(ratio: float, tau: float) -> float:
    """How far the peak of a pair lies behind the positive centre, in units of the pair's distance.

    The root of log(ratio) - log(1 + 1/rho) + tau (1 + 2 rho) = 0, which makes the merged weight smallest.
    Any positive value is sound, so bisection in log(rho) need not be exact.
    """
    low = LOWEST
    high = HIGHEST
    g = log(ratio)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if g - log1p(exp(-middle)) + tau * (1.0 + 2.0 * exp(middle)) < 0.0:
            low = middle
        else:
            high = middle
    return exp(0.5 * (low + high))


@kernel
def merged_exponent(ratio: float, tau: float, rho: float) -> float:
    """Logarithm, rounded up, of merged over positive weight for a peak at ``rho`` (METHOD, Lemma 10).

    Parameters
    ----------
    ratio : positive over negative weight
    tau : half the squared distance of the two centres, rounded up
    rho : any positive number
    """
    g = log(ratio)
    back = log1p(1.0 / rho)
    shrink = log1p(rho)
    apart = tau * (rho * (1.0 + rho))
    error = 16.0 * EPS * (rho * (1.0 + abs(g) + back) + shrink + apart)
    return rho * (g - back) - shrink + apart + error


@kernel
def merge_negatives(weights: Array, centres: Array, width: Array) -> None:
    """Merge every negative weight into the nearest positive one; on return no weight is negative.

    Pairs are taken in the paper's order: negative weights as they come, each with the positive centre, itself
    possibly merged before, that is nearest. Works in place; a weight of zero marks a centre that is gone.
    """
    m, d = centres.shape
    reach = 0.0
    for j in range(d):
        reach += width[j] * width[j]
    reach = math.sqrt(reach)
    for i in range(m):
        while weights[i] < 0.0:
            nearest = -1
            least = np.inf
            for k in range(m):
                if weights[k] > 0.0:
                    square = 0.0
                    for j in range(d):
                        apart = centres[k, j] - centres[i, j]
                        square += apart * apart
                    if square < least:
                        least = square
                        nearest = k
            if nearest < 0:
                weights[i] = 0.0  # no positive weight is left: dropping a negative one only raises the sum
                break
            a = weights[nearest]
            b = -weights[i]
            same = True
            for j in range(d):
                same = same and centres[nearest, j] == centres[i, j]
            if same:
                # One kernel: weights add up, and what is left of the negative one may be merged elsewhere.
                weights[nearest] = (a - b) * (1.0 + 2.0 * EPS) if a > b else 0.0
                weights[i] = (a - b) * (1.0 - 2.0 * EPS) if a < b else 0.0
                continue
            weights[i] = 0.0
            ratio = a / b
            if not (1e-300 < ratio < 1e300):
                continue
            tau = 0.5 * least * (1.0 + (d + 4.0) * EPS) + TINY
            rho = shift(ratio, tau)
            size = 0.0
            for j in range(d):
                moved = centres[nearest, j] + rho * (centres[nearest, j] - centres[i, j])
                size += moved * moved
            size = math.sqrt(size)
            exponent = merged_exponent(ratio, tau, rho)
            # The rounded centre stands beside the exact one: see (iii) of the rounding argument.
            exponent += 4.0 * EPS * (reach + size) * (size + rho * math.sqrt(2.0 * tau))
            if exponent < 0.0:
                weights[nearest] = grown(a, exponent)
                for j in range(d):
                    centres[nearest, j] += rho * (centres[nearest, j] - centres[i, j])


@kernel
def nearest_in_box(centre: Array, width: Array) -> float:
    """Half the squared distance of a centre from the box, rounded down."""
    total = 0.0
    for j in range(width.size):
        outside = max(max(-centre[j], centre[j] - width[j]), 0.0)
        total += outside * outside
    return 0.5 * total * (1.0 - (width.size + 8.0) * EPS)


@kernel
def keep_heavy(weights: Array, centres: Array, width: Array, n: int) -> tuple[int, float]:
    """Move the weights that matter to the front; return their number and a bound on the rest's sum."""
    largest = 0.0
    for i in range(n):
        largest = max(largest, weights[i])
    kept = 0
    rest = 0.0
    for i in range(n):
        if weights[i] > NEGLIGIBLE * largest:
            weights[kept] = weights[i]
            for j in range(width.size):
                centres[kept, j] = centres[i, j]
            kept += 1
        elif weights[i] > 0.0:
            rest += weights[i] * exp_up(nearest_in_box(centres[i], width))
    return kept, rest * (1.0 + (n + 8.0) * EPS)
