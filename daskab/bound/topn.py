"""From one-input bounds to a number of inputs: sums of the n largest, rounded outward (METHOD 1 and 5)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskab.errors import BoundError

Array = NDArray[np.float64]


def largest_sums(values: ArrayLike, *, towards: float) -> Array:
    """Sums of the 1, 2, ..., D largest values.

    Parameters
    ----------
    values : array_like, shape (D,)
        Bounds or attained values.
    towards : float
        ``inf`` rounds every sum up (upper bounds), ``-inf`` down (attained values).

    Returns
    -------
    ndarray, shape (D,)
        Each is the correctly rounded sum moved one number ``towards``, so it is on that side of the true sum.

    Raises
    ------
    BoundError
        If a value is NaN, infinite or negative: never read as small.
    """
    given = np.asarray(values, dtype=np.float64)
    if not bool(np.all(np.isfinite(given) & (given >= 0.0))):
        raise BoundError("one-input bounds: a value is missing, not finite or negative; nothing is certified from it")
    ordered = sorted(given.tolist(), reverse=True)
    sums = [math.nextafter(math.fsum(ordered[: n + 1]), towards) for n in range(len(ordered))]
    return np.asarray(sums)


def inputs_required(sums: Array, delta: float) -> int | None:
    """Fewest inputs whose sum reaches ``delta``; None when all of them together do not.

    The test is the positive claim "this sum is below delta", so anything else counts as reached.
    """
    for n, total in enumerate(sums.tolist(), start=1):
        if not total < delta:
            return n
    return None


def lower_side(delta: float) -> float:
    """The threshold gap rounded down: the subtraction that made it may have rounded up."""
    return math.nextafter(delta, -math.inf)
