"""A sum of EQ kernels near another kernel: which lengthscales, and how much of each (METHOD S2).

Nothing here is relied on: how near the sum is, is proved afterwards (`enclosure`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab.model.kernels import KernelName, profile
from daskab.sandwich.sums import EQSum

Array = NDArray[np.float64]

MOST_TERMS = 10
PLACES = 120  #: distances at which the sum is fitted, on an even and on a geometric grid
STEPS = 40  #: of the search for the two ends of the lengthscales
WIDER = np.array([-0.3, 0.1])  #: logarithms of the two ends
FARTHEST = 40.0  #: lengthscales; beyond, all of these kernels are below 1e-15


def fitted_sum(kernel: KernelName, reach: float, tolerance: float) -> EQSum:
    """The shortest sum found that is as near as ``tolerance``, or the nearest of `MOST_TERMS` terms.

    Its lengthscales are in geometric progression: Matern kernels are mixtures of EQs over all of them. Shares are those
    of least largest distance, a linear programme; positive ones only, so that terms do not cancel.

    Parameters
    ----------
    kernel : str
    reach : float
        The largest distance that matters, in lengthscales.
    tolerance : float
    """
    from scipy.optimize import minimize  # here, for only such a model needs it

    far = min(reach, FARTHEST)
    at = np.unique(np.concatenate(([0.0], np.linspace(0.0, far, PLACES), np.geomspace(1e-4 * far, far, PLACES))))
    wanted = profile(kernel, 0.5 * at * at)
    best, found = math.inf, EQSum(np.ones(1), np.ones(1))
    ends = np.log([0.3, 1.5])
    for terms in range(2, MOST_TERMS + 1):

        def distance(ends: Array, terms: int = terms) -> float:
            return _shares(at, wanted, _scales(ends, terms))[1]

        # From wider than what was best with a term less: with one more there is more to cover.
        ends = minimize(distance, ends + WIDER, method="Nelder-Mead", options={"maxfev": STEPS}).x
        scales = _scales(ends, terms)
        shares, off = _shares(at, wanted, scales)
        if off < best:
            best, found = off, EQSum(scales[shares > 0.0], shares[shares > 0.0])
        if best <= tolerance:
            break
    return found


def _scales(ends: Array, terms: int) -> Array:
    low, high = sorted(np.clip(ends, -9.0, 9.0).tolist())
    scales: Array = np.exp(np.linspace(low, high, terms))
    return scales


def _shares(at: Array, wanted: Array, scales: Array) -> tuple[Array, float]:
    """Shares (J,) >= 0 that make the largest distance least, and that distance."""
    from scipy.optimize import linprog

    bumps = np.exp(-0.5 * (at[:, None] / scales) ** 2)
    one = np.ones((at.size, 1))
    solved = linprog(
        np.append(np.zeros(scales.size), 1.0),
        A_ub=np.vstack([np.hstack([bumps, -one]), np.hstack([-bumps, -one])]),
        b_ub=np.concatenate([wanted, -wanted]),
    )
    if solved.x is None:
        return np.zeros(scales.size), math.inf
    shares = np.maximum(solved.x[:-1], 0.0)
    return np.where(shares > 1e-9, shares, 0.0), float(np.max(np.abs(bumps @ shares - wanted)))
