"""Fixed slices: every sequence bounded once, as tightly as the transverse bounds go (METHOD 3)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel, kernel
from daskab.bound.climb import climb
from daskab.bound.examine import CLIMB_STEPS, start_climb
from daskab.bound.item import POINT, WEIGHT, Item, item_of
from daskab.bound.reach import free_reach
from daskab.bound.sequences import fill_prefix, place, sequence_weights
from daskab.bound.shells import below_level
from daskab.bound.transverse import cheap_bound, fill_reach

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

NEAR_ENOUGH = 1.0005
"""A level this far above the best point found is tried first; mostly it passes."""

LADDER = 6
"""Levels tried by bisection where it does not."""


@kernel
def fixed_units(
    start: int,
    stop: int,
    ends: Ints,
    tables: Array,
    points: Array,
    first_dimension: int,
    centres: Array,
    amplitudes: Array,
    width: Array,
    attained: Array,
) -> Array:
    """Bound every unit of a range once, from the stored contributions.

    Parameters
    ----------
    start, stop, ends, tables, points, first_dimension, centres, amplitudes, width : as for `units.bound_units`
    attained : (D,) a bound at or below it need not be improved

    Returns
    -------
    ndarray, shape (stop - start,)
    """
    m = centres.shape[0]
    n_sequences = ends.shape[0]
    prefix = np.empty((tables.shape[2] + 1, m))
    out = np.empty(stop - start)
    changed, side, _ = place(start, n_sequences)
    item = item_of(centres, amplitudes, width, free_reach(width.size), changed, 1 - 2 * side)
    for unit in range(start, stop):
        changed, side, sequence = place(unit, n_sequences)
        row = changed - first_dimension
        table = tables[side, row]
        if unit == start or sequence == 0:
            item = item_of(centres, amplitudes, width, free_reach(width.size), changed, 1 - 2 * side)
            fill_reach(item)
            fill_prefix(table, prefix)
        sequence_weights(table, prefix, amplitudes, ends[sequence, 0], ends[sequence, 1], item.term[WEIGHT])
        for j in range(item.centres.shape[1]):
            item.axis[POINT, j] = points[row, j if j < changed else j + 1]
        out[unit - start] = tight_bound(item, attained[changed])
    return out


@inner_kernel
def tight_bound(item: Item, level: float) -> float:
    """Least bound found for the item's weights over its box; no effort is made to come below ``level``."""
    bound = cheap_bound(item, level)
    if bound <= level:
        return bound
    start_climb(item)
    below = max(climb(item, CLIMB_STEPS), level)
    middle = below * NEAR_ENOUGH
    for _ in range(LADDER):
        if not (below < middle and middle < bound):
            break
        if below_level(item, middle):
            bound = middle
        else:
            below = middle
        middle = math.sqrt(below) * math.sqrt(bound)
        if bound < below * NEAR_ENOUGH:
            break
    return bound
