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


def middle() -> tuple[Array, NDArray[np.intp]]:
    """Eight inputs from 0 to 1; the class is whether they are about a half, or rather all low or all high.

    No plane separates the classes: one lies between the two halves of the other.

    Returns
    -------
    X : ndarray, shape (400, 8)
    codes : ndarray of int, shape (400,)
        1 in the middle; half of the rows.
    """
    random = np.random.RandomState(8)
    i = np.arange(ROWS)
    centre = np.where(i % 2 == 1, 0.5, np.where(i % 4 == 0, 0.2, 0.8))
    X = centre[:, None] + 0.1 * _bell(random, 8)
    return np.clip(X, 0.0, 1.0), i % 2


def _bell(random: np.random.RandomState, inputs: int) -> Array:
    """About normal, variance 1: twelve uniform numbers, of variance 1/12 each, summed."""
    return _sum(random.random_sample((ROWS, inputs, 12))) - 6.0


def _sum(values: Array) -> Array:
    """Over the last axis, from left to right."""
    *_, total = accumulate(np.moveaxis(values, -1, 0))
    return np.asarray(total)
