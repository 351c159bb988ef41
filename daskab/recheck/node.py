"""A node's test: is the change at most the level all over it? By one quadratic above it all (METHOD 3)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab.recheck.mixture import Mixture
from daskab.recheck.quadratic import ROUNDING, Peak, peak

Array = NDArray[np.float64]

LOST = -600.0
"""Exponents below which a term is not expanded but counted whole."""

UNDERFLOW = 1e-290
LARGEST_THIRD = 1.3802
"""max |t^3 - 3t| exp(-t^2 / 2), from above."""


class Bump(NamedTuple):
    """exp(-(t - own_i)^2 / 2) for t within ``radius`` of a node's middle: there, and over the node; all (n, M)."""

    value: Array
    slope: Array
    bend: Array
    least: Array
    most: Array
    third: Array  #: largest third derivative
    far: Array  #: largest distance to the centre

    @classmethod
    def of(cls, own: Array, middle: Array, radius: Array) -> Bump:
        """For centres (M,) and nodes (n,)."""
        t = middle[:, None] - own
        far = np.abs(t) + radius[:, None]
        most = np.exp(-0.5 * np.maximum(np.abs(t) - radius[:, None], 0.0) ** 2)
        value = np.exp(-0.5 * t**2)
        return cls(
            value=value,
            slope=-t * value,
            bend=(t**2 - 1.0) * value,
            least=np.exp(-0.5 * far**2),
            most=most,
            third=np.minimum(np.maximum(far**3, 3.0 * far) * most, LARGEST_THIRD),
            far=far,
        )


class Examined(NamedTuple):
    """What is known of n nodes."""

    excess: Array  #: (n,) at most 0 only where the change is proved to be at most the level
    x: Array  #: (n, 2 + k) where in the node it may be highest, in radii from the middle
    score: Array  #: (n, 2 + k) what cutting a coordinate may gain


def examine(amplitude: Array, level: float, s: Bump, e: Bump, mixture: Mixture, radius: Array) -> Examined:
    """Test sum_i amplitude_i (e_i - s_i) mixture_i <= level on nodes with ``radius`` (n, 2 + k): of s, e and p."""
    rp = radius[:, 2:]
    first, found = expanded(amplitude, level, s, e, mixture, radius, np.zeros(rp.shape))
    # Again about where the first quadratic is highest.
    again, _ = expanded(amplitude, level, s, e, mixture, radius, found.x[:, 2:] * rp)

    q, both = mixture.toward, e.most + s.most
    inside = np.minimum(np.abs(q), rp[:, None, :])
    most = np.exp(mixture.at + np.sum((np.abs(q) - 0.5 * inside) * inside, axis=2))
    least = np.exp(mixture.at - np.einsum("nij,nj->ni", np.abs(q), rp) - 0.5 * np.sum(rp**2, axis=1)[:, None])
    high = np.where(amplitude > 0.0, e.most - s.least, s.most - e.least)
    terms = high * np.where(high > 0.0, most, least) + (share_off(mixture) * both + UNDERFLOW) * most
    apart = np.sum(np.abs(amplitude) * (terms + UNDERFLOW), axis=1) - level
    excess = np.fmin(np.fmin(first, again), apart)
    return Examined(np.where(np.isnan(excess), np.inf, excess), found.x, found.score)


def share_off(mixture: Mixture) -> Array:
    """By what share of itself a term (n, M) may be off."""
    share = ROUNDING * (1.0 + mixture.size) + 2.0 * mixture.slack
    return np.where(share < 0.01, share, np.inf)


def expanded(
    amplitude: Array, level: float, s: Bump, e: Bump, mixture: Mixture, radius: Array, shift: Array
) -> tuple[Array, Peak]:
    """The excess (n,) by an expansion about the middle plus ``shift`` (n, k) in p."""
    rs, re, rp = radius[:, :1], radius[:, 1:2], radius[:, 2:]
    at = mixture.at + np.einsum("nij,nj->ni", mixture.toward, shift) - 0.5 * np.sum(shift**2, axis=1)[:, None]
    q = mixture.toward - shift[:, None, :]
    along = np.einsum("nij,nj->ni", q, shift)
    sigma = np.einsum("nij,nj->ni", np.abs(q), rp)
    low, high = -sigma - along, sigma - along
    value, gradient, hessian = quadratic_above(amplitude, s, e, at, q, low, high, radius)
    diagonal = np.arange(2, radius.shape[1])
    hessian[:, diagonal, diagonal] -= level
    # About the middle again, in radii.
    pull = np.einsum("njk,nk->nj", hessian[:, :, 2:], shift)
    value = value - level - np.sum(gradient[:, 2:] * shift, axis=1) + 0.5 * np.sum(pull[:, 2:] * shift, axis=1)
    found = peak((gradient - pull) * radius, hessian * radius[:, :, None] * radius[:, None, :])

    both = e.most + s.most
    tau = 2.0 * sigma + e.far * re + s.far * rs + 2.0 * np.sqrt(np.sum(radius**2, axis=1))[:, None]
    largest = np.abs(amplitude) * np.exp(at + np.maximum(high, 0.0))
    off = largest * (share_off(mixture) * (1.0 + tau) ** 3 * both + UNDERFLOW + np.where(at < LOST, both, 0.0))
    rounding = ROUNDING * level * (1.0 + 4.0 * np.sum(rp**2, axis=1)) + UNDERFLOW * (1.0 + np.sum(np.abs(amplitude)))
    return value + found.most + off.sum(axis=1) + rounding, found


def quadratic_above(
    amplitude: Array, s: Bump, e: Bump, at: Array, q: Array, low: Array, high: Array, radius: Array
) -> tuple[Array, Array, Array]:
    """Value (n,), gradient, Hessian of a quadratic above exp(|h|^2 / 2) times the change where low <= q.h <= high."""
    rs, re = radius[:, :1], radius[:, 1:2]
    weight = np.where(at < LOST, 0.0, amplitude * np.exp(at))
    size = np.abs(weight)
    held = weight * (e.value - s.value)
    by_s, by_e = -weight * s.slope, weight * e.slope
    n, width = radius.shape
    gradient = np.empty((n, width))
    gradient[:, 0] = by_s.sum(axis=1)
    gradient[:, 1] = by_e.sum(axis=1)
    gradient[:, 2:] = np.einsum("ni,nij->nj", held, q)
    hessian = np.zeros((n, width, width))
    more, whole = size * np.maximum(np.expm1(high), -np.expm1(low)), size * np.exp(high) / 3.0
    hessian[:, 0, 0] = np.sum(-weight * s.bend + more * np.abs(s.bend) + whole * s.third * rs, axis=1)
    hessian[:, 1, 1] = np.sum(weight * e.bend + more * np.abs(e.bend) + whole * e.third * re, axis=1)
    hessian[:, 0, 2:] = hessian[:, 2:, 0] = np.einsum("ni,nij->nj", by_s, q)
    hessian[:, 1, 2:] = hessian[:, 2:, 1] = np.einsum("ni,nij->nj", by_e, q)
    moved = size * (np.abs(e.slope) * re + np.abs(s.slope) * rs)
    bend = 2.0 * (held * curvature(np.where(held > 0.0, high, low)) + moved * curvature(high))
    hessian[:, 2:, 2:] = np.matmul(np.swapaxes(q * bend[:, :, None], 1, 2), q)
    return held.sum(axis=1), gradient, hessian


def curvature(x: Array) -> Array:
    """(exp(x) - 1 - x) / x^2, which increases with x."""
    small = np.abs(x) < 0.1
    apart = np.where(small, 1.0, x)
    series = np.zeros(x.shape)
    for n in range(9, 1, -1):
        series = series * x + 1.0 / math.factorial(n)
    return np.where(small, series, (np.expm1(apart) - apart) / apart**2)
