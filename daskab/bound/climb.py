"""A good point for the shell test: projected gradient ascent of sum_i w_i kappa_i(z) in a node's box (METHOD 3.3).

Nothing proved depends on how well it climbs; a better point only makes the test pass sooner.
"""

from __future__ import annotations

from daskab._compile import inner_kernel
from daskab._elementary import exp
from daskab.bound.item import (
    HIGH,
    LOW,
    POINT,
    SLAB_HIGH,
    SLAB_LOW,
    SLOPE,
    SLOPE_TRIAL,
    TRIAL,
    WEIGHT,
    Item,
)


@inner_kernel
def mixture(item: Item, weight: int, point: int) -> float:
    """sum_i w_i kappa_i(z), for the weights in row ``weight`` and the point in row ``point``."""
    m, d = item.centres.shape
    total = 0.0
    for i in range(m):
        t = 0.0
        for j in range(d):
            step = item.axis[point, j] - item.centres[i, j]
            t += step * step
        total += item.term[weight, i] * exp(-0.5 * t)
    return total


@inner_kernel
def mixture_and_slope(item: Item, point: int, slope: int) -> float:
    """The mixture at row ``point`` and its gradient into row ``slope``."""
    m, d = item.centres.shape
    total = 0.0
    for j in range(d):
        item.axis[slope, j] = 0.0
    for i in range(m):
        t = 0.0
        for j in range(d):
            step = item.axis[point, j] - item.centres[i, j]
            t += step * step
        v = item.term[WEIGHT, i] * exp(-0.5 * t)
        total += v
        for j in range(d):
            item.axis[slope, j] += v * item.centres[i, j]
    for j in range(d):
        item.axis[slope, j] -= total * item.axis[point, j]
    return total


@inner_kernel
def into_box(item: Item, point: int) -> None:
    """Move a point into the node's slabs, approximately, and into its box."""
    d = item.centres.shape[1]
    for k in range(item.cuts.shape[0]):
        along = 0.0
        for j in range(d):
            along += item.cuts[k, j] * item.axis[point, j]
        step = min(max(along, item.slab[SLAB_LOW, k]), item.slab[SLAB_HIGH, k]) - along
        if step != 0.0:
            for j in range(d):
                item.axis[point, j] += step * item.cuts[k, j]
    for j in range(d):
        item.axis[point, j] = min(max(item.axis[point, j], item.axis[LOW, j]), item.axis[HIGH, j])


@inner_kernel
def climb(item: Item, steps: int) -> float:
    """Climb from the item's point, which moves and stays in the box; the value there is returned.

    Barzilai-Borwein steps, cut back when the value falls.
    """
    d = item.centres.shape[1]
    axis = item.axis
    into_box(item, POINT)
    value = mixture_and_slope(item, POINT, SLOPE)
    norm = 0.0
    for j in range(d):
        norm = max(norm, abs(axis[SLOPE, j]))
    step = 1.0 / norm if norm > 0.0 else 0.0
    for _ in range(steps):
        if not step > 0.0:
            break
        for j in range(d):
            axis[TRIAL, j] = axis[POINT, j] + step * axis[SLOPE, j]
        into_box(item, TRIAL)
        moved = 0.0
        rise = 0.0
        for j in range(d):
            moved = max(moved, abs(axis[TRIAL, j] - axis[POINT, j]))
            rise += axis[SLOPE, j] * (axis[TRIAL, j] - axis[POINT, j])
        if moved == 0.0:
            break
        found = mixture_and_slope(item, TRIAL, SLOPE_TRIAL)
        if not found >= value + 1e-4 * rise:
            step *= 0.2
            continue
        ss = 0.0
        sy = 0.0
        for j in range(d):
            s = axis[TRIAL, j] - axis[POINT, j]
            ss += s * s
            sy += s * (axis[SLOPE, j] - axis[SLOPE_TRIAL, j])
            axis[POINT, j] = axis[TRIAL, j]
            axis[SLOPE, j] = axis[SLOPE_TRIAL, j]
        step = ss / sy if sy > 0.0 else 4.0 * step
        gained = found - value
        value = found
        if gained <= 1e-13 * abs(value):
            break
    return value
