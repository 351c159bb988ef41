"""The sets of inputs that the sum of their one-input bounds does not exclude (METHOD J7)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_SETS = 20_000
"""With more sets than this of one size they are not searched one by one."""

MOST_MOVED = 5
"""Nor with more inputs in a set: its corners are 4 to that power."""


def candidates(upper: Array, delta: float, size: int) -> Ints | None:
    """The sets of ``size`` inputs whose bounds sum to ``delta`` or more: those that an attack may change.

    Parameters
    ----------
    upper : (D,) one-input bounds, finite and not negative
    delta : distance of the thresholds, not rounded up
    size : inputs in a set, at least 1

    Returns
    -------
    ndarray, shape (number of sets, size), or None
        Each set in ascending order, the sets by their sums, the largest first. None where there are too many.
    """
    if size > min(MOST_MOVED, upper.size):
        return None if size <= upper.size else np.empty((0, size), dtype=np.int64)
    order = np.argsort(-upper, kind="stable")
    sizes = upper[order].tolist()
    found: list[tuple[float, tuple[int, ...]]] = []
    # Depth first, inputs of a set in the order of their bounds: with the next ones added it can only get smaller.
    stack: list[tuple[int, ...]] = [()]
    while stack:
        part = stack.pop()
        begin = part[-1] + 1 if part else 0
        missing = size - len(part)
        if missing == 0:
            total = math.fsum(sizes[k] for k in part)
            found.append((-total, tuple(sorted(int(order[k]) for k in part))))
            if len(found) > MOST_SETS:
                return None
            continue
        for k in range(begin, len(sizes) - missing + 1):
            at_most = math.fsum([sizes[r] for r in part] + sizes[k : k + missing])
            if math.nextafter(at_most, math.inf) < delta:
                break
            stack.append((*part, k))
    return np.array([s for _, s in sorted(found)], dtype=np.int64).reshape(-1, size)
