"""How far inputs may move and which values they may have, as the kernels see it (METHOD 1, The domain)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel, kernel

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class Reach(NamedTuple):
    """How far each input of a scaled model may move, its listed values, and what counts as one change."""

    limit: Array  #: (D,) never below the most it may change; infinite where that is the width of the box
    first: Ints  #: (D + 1,) input j owns values[first[j] : first[j + 1]]; none: it may have any
    values: Array  #: (V,) ascending for each input
    begin: Ints  #: (C + 1,) change c is of inputs member[begin[c] : begin[c + 1]]
    member: Ints  #: (D,)


@kernel
def free_reach(d: int) -> Reach:
    """Of D inputs that may be anything in the box."""
    return Reach(np.full(d, np.inf), np.zeros(d + 1, dtype=np.int64), np.empty(0), np.arange(d + 1), np.arange(d))


@inner_kernel
def hull_of(low: float, high: float, values: Array, begin: int, end: int) -> tuple[float, float]:
    """Least and largest of values[begin:end] in a range, in reverse if it holds none; the range itself of no values.

    As given, too, where an end is no number: such a range is not empty.
    """
    if begin == end or not low <= high:
        return low, high
    return float(values_from(low, values, begin, end)), float(values_up_to(high, values, begin, end))


@inner_kernel
def neighbours(z: float, values: Array, begin: int, end: int) -> tuple[float, float]:
    """The values of values[begin:end], not empty, on both sides of ``z``; one of them twice where it is beyond all.

    A function that falls on both sides of ``z`` is highest, over the values, at one of the two.
    """
    below, above = values_up_to(z, values, begin, end), values_from(z, values, begin, end)
    if below == -np.inf:
        below = above
    elif above == np.inf:
        above = below
    return float(below), float(above)


@inner_kernel
def values_from(low: float, values: Array, begin: int, end: int) -> float:
    """The least value that is not below ``low``; infinite where there is none."""
    left, right = begin, end
    while left < right:
        middle = (left + right) // 2
        if values[middle] >= low:
            right = middle
        else:
            left = middle + 1
    return float(values[left]) if left < end else np.inf


@inner_kernel
def values_up_to(high: float, values: Array, begin: int, end: int) -> float:
    """The largest value that is not above ``high``; infinite, with a minus, where there is none."""
    left, right = begin, end
    while left < right:
        middle = (left + right) // 2
        if values[middle] <= high:
            left = middle + 1
        else:
            right = middle
    return float(values[left - 1]) if left > begin else -np.inf
