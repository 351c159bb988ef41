"""The paper's transverse bound in a sound form: merge, project, evaluate on a grid, divide (METHOD 3.5).

Bounds T(w) = max over the box [0, width] of sum_i w_i exp(-|z - c_i|^2 / 2). Negative weights are merged into
positive ones, pair by pair; the non-negative mixture left is projected on a few directions and evaluated on
a grid over its centres; the largest value is divided by what it can fall short of the maximum between lines.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab._elementary import exp
from daskab.bound.merging import keep_heavy, merge_negatives, nearest_in_box
from daskab.bound.principal import principal_directions, project, shorten
from daskab.bound.rounding import EPS, TINY, exp_down, exp_up, grown
from daskab.bound.sequences import fill_prefix, place, sequence_weights

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_LINES = 1024
"""Most grid lines along one direction, whatever the number of points allowed: it bounds the memory."""

COARSER = 1.05
"""Factor the spacing grows by until the grid is small enough."""

# Rows of `axis`: lowest and highest projected centre, and the number of grid lines.
LOW, HIGH, COUNT = range(3)


class GridWork(NamedTuple):
    """Work arrays for M centres, D' inputs, k directions and n grid lines along each."""

    weights: Array  #: (M,) of the mixture as it is rewritten
    centres: Array  #: (M, D')
    mean: Array  #: (D',)
    directions: Array  #: (2, k, D') orthonormal rows, and their next iterate
    heights: Array  #: (M,) weights with the error of the projection added
    along: Array  #: (k, M) projected centres
    axis: Array  #: (3, k)
    lines: Array  #: (n,) positions of grid lines along one direction
    table: Array  #: (k, M, n) one factor of every kernel at every line
    sums: Array  #: (n,) the mixture along one row of the grid


@kernel
def grid_work(m: int, d: int, components: int, most_points: int) -> GridWork:
    """Allocate work arrays for `grid_bound`.

    Parameters
    ----------
    m, d : number of centres M and of inputs that do not change D'
    components : most directions k to project on, at least 1
    most_points : most grid points
    """
    k = max(components, 1)
    n = max(min(most_points, MOST_LINES), 2)
    return GridWork(
        np.empty(m),
        np.empty((m, d)),
        np.empty(d),
        np.empty((2, k, d)),
        np.empty(m),
        np.empty((k, m)),
        np.empty((3, k)),
        np.empty(n),
        np.empty((k, m, n)),
        np.empty(n),
    )


@kernel
def grid_lines(work: GridWork, n: int, rank: int, spacing: float, most_points: int) -> bool:
    """Fill ``axis``: the extent and number of lines of each direction; False where no grid is small enough."""
    most_lines = work.lines.size
    widest = 0.0
    for a in range(rank):
        low = work.along[a, 0]
        high = low
        for i in range(1, n):
            low = min(low, work.along[a, i])
            high = max(high, work.along[a, i])
        work.axis[LOW, a] = low
        work.axis[HIGH, a] = high
        widest = max(widest, high - low)
    if not spacing > widest / most_lines:
        spacing = widest / most_lines  # no finer grid fits; this also ends the search for any spacing given
    while True:
        points = 1.0
        longest = 0.0
        for a in range(rank):
            extent = work.axis[HIGH, a] - work.axis[LOW, a]
            count = math.ceil(extent / spacing) + 1.0 if extent > 0.0 else 1.0
            work.axis[COUNT, a] = count
            points *= count
            longest = max(longest, count)
        if points <= most_points and longest <= most_lines:
            return True
        if not longest > 2.0:
            return False
        spacing *= COARSER


@kernel
def grid_maximum(work: GridWork, n: int, rank: int) -> float:
    """Bound on the projected mixture over all of R^rank, from its values on the grid in ``axis``."""
    short = 0.0  # |e|^2 / 2 for the farthest a point of the hull can lie from the grid
    outer = 1
    for a in range(rank):
        count = int(work.axis[COUNT, a])
        low = work.axis[LOW, a]
        step = (work.axis[HIGH, a] - low) / max(count - 1, 1)
        for g in range(count):
            work.lines[g] = low + step * g
        if count > 1:
            work.lines[count - 1] = work.axis[HIGH, a]
        gap = 0.0  # measured, not assumed: the lines are rounded
        for g in range(count - 1):
            gap = max(gap, abs(work.lines[g + 1] - work.lines[g]))
        short += 0.125 * gap * gap
        for i in range(n):
            for g in range(count):
                away = work.lines[g] - work.along[a, i]
                work.table[a, i, g] = exp(-0.5 * away * away)
        if a < rank - 1:
            outer *= count
    last = rank - 1
    count = int(work.axis[COUNT, last])
    highest = 0.0
    for row in range(outer):
        for g in range(count):
            work.sums[g] = 0.0
        for i in range(n):
            factor = work.heights[i]
            code = row
            for a in range(last):
                lines = int(work.axis[COUNT, a])
                factor *= work.table[a, i, code % lines]
                code //= lines
            for g in range(count):
                work.sums[g] += factor * work.table[last, i, g]
        for g in range(count):
            highest = max(highest, work.sums[g])
    total = 0.0
    for i in range(n):
        total += work.heights[i]
    highest += EPS * (n + 9.0 * rank + 8.0) * highest + 2.0 * EPS * total + (rank + 1.0) * TINY * (1.0 + total)
    return grown(highest, short * (1.0 + (rank + 8.0) * EPS)) if short < 600.0 else np.inf


@kernel
def grid_bound(
    weights: Array,
    centres: Array,
    width: Array,
    work: GridWork,
    spacing: float,
    components: int,
    most_points: int,
) -> float:
    """Bound on the positive part of T(w) by the paper's grid (METHOD 3.5).

    Parameters
    ----------
    weights : (M,)
    centres : (M, D') scaled, without the input that changes; D' may be 0
    width : (D',) the box is [0, width]
    work : `grid_work` for D' inputs and at least M centres, ``components`` and ``most_points``
    spacing : float
        Largest distance, in lengthscales, between neighbouring grid lines; it grows where the grid would
        have more than ``most_points`` points or `MOST_LINES` lines along one direction.
    components : int
        Directions to project on, at least 1.
    most_points : int
        Most grid points. Without a grid that small the sum of the merged weights is returned.

    Returns
    -------
    float
        Never below max(T(w), 0). inf where the arithmetic overflows.

    Notes
    -----
    Smith, Grosse, Backes, Alvarez (2023), "Adversarial vulnerability bounds for Gaussian process classification".
    """
    m, d = centres.shape
    if d == 0:
        total = 0.0
        size = 0.0
        for i in range(m):
            total += weights[i]
            size += abs(weights[i])
        if not size < np.inf:
            return np.inf
        return max(total + (weights.size + 4.0) * EPS * size, 0.0)
    w = work.weights
    c = work.centres
    for i in range(m):
        spread = 0.0
        for j in range(d):
            c[i, j] = centres[i, j]
            spread += 0.5 * (width[j] + abs(centres[i, j])) * (width[j] + abs(centres[i, j]))
        # From here on the kernels' centres are exact numbers: Lemma 1's error goes into the weights.
        error = (d + 16.0) * EPS * spread
        w[i] = grown(weights[i], error) if weights[i] >= 0.0 else weights[i] * exp_down(error)
        if not abs(w[i]) < np.inf:
            return np.inf
    merge_negatives(w[:m], c[:m], width)
    n, rest = keep_heavy(w, c, width, m)
    if n == 0:
        return rest
    answer = np.inf
    while True:
        total = 0.0
        outside = False
        for i in range(n):
            near = nearest_in_box(c[i], width)
            outside = outside or near > 0.0
            total += w[i] * exp_up(near)
        answer = min(answer, total * (1.0 + (n + 8.0) * EPS))
        rank = principal_directions(c, n, components, work.mean, work.directions)
        if rank > 0:
            rows = work.directions[0, :rank]
            shorten(rows)
            project(rows, w[:n], c[:n], work.mean, width, work.along[:rank, :n], work.heights[:n])
            if grid_lines(work, n, rank, spacing, most_points):
                answer = min(answer, grid_maximum(work, n, rank))
        if not outside:
            break
        # Again with the centres moved into the box: |z - c|^2 >= |z - clip(c)|^2 + |c - clip(c)|^2 there.
        for i in range(n):
            w[i] *= exp_up(nearest_in_box(c[i], width))
            for j in range(d):
                c[i, j] = min(max(c[i, j], 0.0), width[j])
    return (answer + rest) * (1.0 + 4.0 * EPS)


@kernel
def grid_units(
    start: int,
    stop: int,
    ends: Ints,
    tables: Array,
    first_dimension: int,
    centres: Array,
    amplitudes: Array,
    width: Array,
    components: int,
    resolution: int,
) -> Array:
    """Bound every unit of a range by the paper's grid, from the stored contributions.

    Parameters
    ----------
    start, stop, ends, tables, first_dimension, centres, amplitudes, width : as for `units.bound_units`
    components : most directions to project on
    resolution : int
        Grid lines along the diagonal of the other inputs' box, and along a direction on average at most.

    Returns
    -------
    ndarray, shape (stop - start,)
    """
    m, dimensions = centres.shape
    d = dimensions - 1
    n_sequences, slices = ends.shape[0], tables.shape[2]
    most_points = resolution**components
    work = grid_work(m, d, components, most_points)
    prefix = np.empty((slices + 1, m))
    weights = np.empty(m)
    others = np.empty((m, d))
    box = np.empty(d)
    out = np.empty(stop - start)
    spacing = 0.0
    for unit in range(start, stop):
        changed, side, sequence = place(unit, n_sequences)
        table = tables[side, changed - first_dimension]
        if unit == start or sequence == 0:
            fill_prefix(table, prefix)
            spacing = leave_out(changed, centres, width, others, box) / resolution
        sequence_weights(table, prefix, amplitudes, ends[sequence, 0], ends[sequence, 1], weights)
        out[unit - start] = grid_bound(weights, others, box, work, spacing, components, most_points)
    return out


@kernel
def leave_out(changed: int, centres: Array, width: Array, others: Array, box: Array) -> float:
    """Copy the centres and the box without one input; the length of the box's diagonal."""
    square = 0.0
    at = 0
    for j in range(width.size):
        if j == changed:
            continue
        box[at] = width[j]
        square += width[j] * width[j]
        for i in range(centres.shape[0]):
            others[i, at] = centres[i, j]
        at += 1
    return math.sqrt(square)
