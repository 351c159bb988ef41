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
    rs, re, rp = radius[:, :1], radius[:, 1:2], radius[:, 2:]
    q = mixture.toward
    sigma = np.einsum("nij,nj->ni", np.abs(q), rp)
    rho = np.sqrt(np.sum(radius**2, axis=1))[:, None]
    both = e.most + s.most
    # How far a term may be off, as a share of its largest value.
    share = ROUNDING * (1.0 + mixture.size) + 2.0 * mixture.slack
    share = np.where(share < 0.01, share, np.inf)
    expanded = share * (1.0 + sigma + e.far * re + s.far * rs + rho) ** 3
    value, gradient, hessian = expansion(amplitude, s, e, mixture, radius, sigma)
    largest = np.abs(amplitude) * np.exp(mixture.at + sigma)
    off = np.sum(largest * (expanded * both + UNDERFLOW + np.where(mixture.at < LOST, both, 0.0)), axis=1)
    off += UNDERFLOW * (1.0 + np.sum(np.abs(amplitude)))

    quadratic = (value, gradient * radius, hessian * radius[:, :, None] * radius[:, None, :])
    first, found = below(quadratic, level, np.zeros(value.size), rp)
    # Again with the tangent of exp(|h|^2 / 2) where the first quadratic is highest.
    again = below(quadratic, level, 0.5 * np.sum((found.x[:, 2:] * rp) ** 2, axis=1), rp)[0]

    inside = np.minimum(np.abs(q), rp[:, None, :])
    most = np.exp(mixture.at + np.sum((np.abs(q) - 0.5 * inside) * inside, axis=2))
    least = np.exp(mixture.at - sigma - 0.5 * np.sum(rp**2, axis=1)[:, None])
    high = np.where(amplitude > 0.0, e.most - s.least, s.most - e.least)
    terms = high * np.where(high > 0.0, most, least) + (share * both + UNDERFLOW) * most
    apart = np.sum(np.abs(amplitude) * (terms + UNDERFLOW), axis=1) - level
    excess = np.fmin(np.fmin(first, again) + off, apart)
    return Examined(np.where(np.isnan(excess), np.inf, excess), found.x, found.score)


def expansion(
    amplitude: Array, s: Bump, e: Bump, mixture: Mixture, radius: Array, sigma: Array
) -> tuple[Array, Array, Array]:
    """Value (n,), gradient and Hessian in h of a quadratic above exp(|h|^2 / 2) times the change, on the whole node."""
    rs, re = radius[:, :1], radius[:, 1:2]
    q = mixture.toward
    weight = np.where(mixture.at < LOST, 0.0, amplitude * np.exp(mixture.at))
    size = np.abs(weight)
    held = weight * (e.value - s.value)
    by_s, by_e = -weight * s.slope, weight * e.slope
    n, width = radius.shape
    gradient = np.empty((n, width))
    gradient[:, 0] = by_s.sum(axis=1)
    gradient[:, 1] = by_e.sum(axis=1)
    gradient[:, 2:] = np.einsum("ni,nij->nj", held, q)
    hessian = np.zeros((n, width, width))
    more, whole = size * np.expm1(sigma), size * np.exp(sigma) / 3.0
    hessian[:, 0, 0] = np.sum(-weight * s.bend + more * np.abs(s.bend) + whole * s.third * rs, axis=1)
    hessian[:, 1, 1] = np.sum(weight * e.bend + more * np.abs(e.bend) + whole * e.third * re, axis=1)
    hessian[:, 0, 2:] = hessian[:, 2:, 0] = np.einsum("ni,nij->nj", by_s, q)
    hessian[:, 1, 2:] = hessian[:, 2:, 1] = np.einsum("ni,nij->nj", by_e, q)
    moved = size * (np.abs(e.slope) * re + np.abs(s.slope) * rs)
    bend = 2.0 * (held * curvature(np.where(held > 0.0, sigma, -sigma)) + moved * curvature(sigma))
    hessian[:, 2:, 2:] = np.matmul(np.swapaxes(q * bend[:, :, None], 1, 2), q)
    return held.sum(axis=1), gradient, hessian


def below(quadratic: tuple[Array, Array, Array], level: float, touch: Array, rp: Array) -> tuple[Array, Peak]:
    """By how much (n,) the quadratic, given in radii, may exceed level * exp(touch) * (1 + |h|^2 / 2 - touch)."""
    value, gradient, hessian = quadratic
    lifted = level * np.exp(touch)
    bent = hessian.copy()
    diagonal = np.arange(2, gradient.shape[1])
    bent[:, diagonal, diagonal] -= lifted[:, None] * rp**2
    found = peak(gradient, bent)
    rounding = ROUNDING * lifted * (1.0 + touch + np.sum(rp**2, axis=1))
    return value - lifted * (1.0 - touch) + found.most + rounding, found


def curvature(x: Array) -> Array:
    """(exp(x) - 1 - x) / x^2, which increases with x."""
    small = np.abs(x) < 0.1
    apart = np.where(small, 1.0, x)
    series = np.zeros(x.shape)
    for n in range(9, 1, -1):
        series = series * x + 1.0 / math.factorial(n)
    return np.where(small, series, (np.expm1(apart) - apart) / apart**2)
