"""How far a kernel and a sum of EQ kernels are apart, proved (METHOD S3)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab.bound.rounding import EPS
from daskab.errors import BoundError
from daskab.model.kernels import KernelName, profile, stretched
from daskab.sandwich.fit import FARTHEST
from daskab.sandwich.sums import EQSum

Array = NDArray[np.float64]

BEND = {"exponential": 1.0, "matern32": 3.0, "matern52": 5.0 / 3.0}
"""Largest size of a kernel's second derivative in the distance."""

PIECES, ROUNDS = 4096, 12
SURPLUS = 1e-3
"""Pieces of the distances to begin with; how often those that matter are halved; share by which the proved distance may
exceed one that is attained."""


def distance(kernel: KernelName, total: EQSum, reach: float) -> float:
    """A number that |k(r) - sum_j share_j exp(-r^2 / 2 scale_j^2)| does not exceed for any r from 0 to ``reach``.

    Parameters
    ----------
    kernel : str
        Not EQ.
    total : EQSum
        With positive shares and scales.
    reach : float

    Raises
    ------
    BoundError
        If what is found is not a finite number.
    """
    far = min(reach, FARTHEST)
    edges = np.unique(np.concatenate((np.linspace(0.0, far, PIECES), np.geomspace(1e-6 * far, far, PIECES))))
    low, high = edges[:-1], edges[1:]
    proved = 0.0
    for _ in range(ROUNDS):
        most, attained = _at_most(kernel, total, low, high)
        if not np.all(np.isfinite(most)):
            raise BoundError(f"{kernel}: how far it is from a sum of EQ kernels is not a finite number")
        done = most <= max(float(np.max(attained)) * (1.0 + SURPLUS), proved)
        proved = max(proved, float(np.max(most[done], initial=0.0)))
        low, high = low[~done], high[~done]
        if not low.size:
            break
        middle = 0.5 * (low + high)
        low, high = np.concatenate((low, middle)), np.concatenate((middle, high))
    else:
        proved = max(proved, float(np.max(_at_most(kernel, total, low, high)[0])))
    if reach > FARTHEST:
        # Both fall: beyond, neither is above what it is there.
        proved = max(proved, float(profile(kernel, np.array(0.5 * far * far)) + _sum(total, np.array([far]))[0]))
    sizes = 1.0 + math.fsum((total.shares * (1.0 + far / total.scales)).tolist())
    proved = proved * (1.0 + 64.0 * EPS) + 64.0 * EPS * sizes
    if not math.isfinite(proved):
        raise BoundError(f"{kernel}: its distance from a sum of EQ kernels is {proved}, not a finite number")
    return proved


@np.errstate(over="ignore", invalid="ignore")  # of scales beyond all measure; what is no number is refused
def _at_most(kernel: KernelName, total: EQSum, low: Array, high: Array) -> tuple[Array, Array]:
    """What the difference (n,) does not exceed from low to high (n,), but for rounding, and its size in the middle."""
    r, half = 0.5 * (low + high), 0.5 * (high - low)
    off, slope = np.abs(profile(kernel, 0.5 * r * r) - _sum(total, r)), np.abs(_slope(kernel, r) - _sum_slope(total, r))
    # |d^2/dr^2 exp(-r^2 / 2s^2)| = |rho^2 - 1| exp(-rho^2 / 2) / s^2, rho = r / s: at most 1 / s^2, and small far out.
    nearest, farthest = low[:, None] / total.scales, high[:, None] / total.scales
    bend = np.minimum(1.0, (1.0 + farthest**2) * np.exp(-0.5 * nearest**2)) @ (total.shares / total.scales**2)
    return off + half * (slope + 0.5 * half * (BEND[kernel] + bend)), off


def _sum(total: EQSum, r: Array) -> Array:
    found: Array = np.exp(-0.5 * (r[:, None] / total.scales) ** 2) @ total.shares
    return found


def _slope(kernel: KernelName, r: Array) -> Array:
    """Derivative of a kernel in the distance; at 0 that on the right."""
    s = stretched(kernel, 0.5 * r * r)
    if kernel == "exponential":
        return -np.exp(-s)
    if kernel == "matern32":
        return -math.sqrt(3.0) * s * np.exp(-s)
    return -math.sqrt(5.0) * s * (1.0 + s) / 3.0 * np.exp(-s)


def _sum_slope(total: EQSum, r: Array) -> Array:
    rho = r[:, None] / total.scales
    found: Array = -(rho * np.exp(-0.5 * rho**2)) @ (total.shares / total.scales)
    return found
