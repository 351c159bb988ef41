"""Data sets that are computed, the same bits on every machine: NumPy's oldest generator, whose stream is frozen, and
additions and multiplications in a fixed order.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROWS = 400


def plane() -> tuple[Array, NDArray[np.intp]]:
    """Three inputs from 0 to 1; the class is on which side of a plane they are, but close to it either may be.

    Returns
    -------
    X : ndarray, shape (400, 3)
    codes : ndarray of int, shape (400,)
        1 where the sum of the inputs, plus some noise, is above 1.5.
    """
    random = np.random.RandomState(3)  # whose stream never changes, as a Generator's may
    X = random.random_sample((ROWS, 3))
    noise = 0.25 * _bell(random, 1)[:, 0]
    return X, (_sum(X) + noise > 1.5).astype(np.intp)


def diagonal() -> tuple[Array, NDArray[np.intp]]:
    """Eight inputs that all lie about one number from 0 to 1; the class is whether that is near a half or far from it.

    The points of the generator that the authors of the paper published (`getsynthexample` of their
    GPAdversarialDatasets): 10,000 are drawn, the half of them that is neither near nor far is left out, by the distance
    of the first seven inputs from a half, and the rest is shuffled.

    Returns
    -------
    X : ndarray, shape (4999, 8)
    codes : ndarray of int, shape (4999,)
        1 far from the middle: at either end, so that no plane separates the classes.
    """
    random, rows = np.random.RandomState(0), 10_000
    X = random.random_sample((rows, 8))
    X[:, 1:] = X[:, :1] + 0.1 * random.standard_normal((rows, 7))
    random.standard_normal(rows)  # theirs adds noise of size 0
    # The logarithms in normal numbers may round otherwise elsewhere.
    X = np.round(X, 9)
    distance = _sum((X[:, :7] - 0.5) ** 2)
    ranked = np.sort(distance)
    kept = (distance < ranked[rows // 4]) | (distance > ranked[3 * rows // 4])
    X, distance = X[kept], distance[kept]
    order = random.permutation(distance.size)
    return X[order], (distance > np.median(distance))[order].astype(np.intp)


def _bell(random: np.random.RandomState, inputs: int) -> Array:
    """About normal, variance 1: twelve uniform numbers, of variance 1/12 each, summed."""
    return _sum(random.random_sample((ROWS, inputs, 12))) - 6.0


def _sum(values: Array) -> Array:
    """Over the last axis, from left to right."""
    *_, total = accumulate(np.moveaxis(values, -1, 0))
    return np.asarray(total)
