"""Batches of logical units (dimension, direction, sequence): numbered, bounded, refined (METHOD 2 to 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab.bound.frontier import frontier_of
from daskab.bound.item import WEIGHT, item_of
from daskab.bound.nodes import (
    BOUND,
    FIRST,
    SPLIT,
    UNEXAMINED,
    UNIT,
    copy_row,
    load_box,
    node_width,
    set_cells,
    set_whole_box,
    trim,
)
from daskab.bound.reach import Reach
from daskab.bound.refine import refine
from daskab.bound.sequences import fill_prefix, place, sequence_weights
from daskab.bound.transverse import cheap_bound, fill_reach

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

WORTH_NOTING = 1e-9
"""Share by which a path met on the way must beat what the attack attained to be kept."""

MOST_FOUND = 64
"""Rows of the buffer such paths are handed over in."""


@kernel
def bound_units(
    start: int,
    stop: int,
    ends: Ints,
    edges: Array,
    tables: Array,
    points: Array,
    first_dimension: int,
    centres: Array,
    amplitudes: Array,
    width: Array,
    reach: Reach,
    goal: Array,
) -> Array:
    """Bound every unit of a range once, from the stored contributions.

    Parameters
    ----------
    start, stop : the units, [start, stop)
    ends : (S, 2) first and last slice of every sequence
    edges : (D, s + 1) slice edges in scaled coordinates
    tables : (2, B, s, 4, M) contributions of the inputs first_dimension ... first_dimension + B - 1
    points : (B, D) a good point of the box for each of them, from which refinement starts
    first_dimension : input of tables[:, 0]
    centres, amplitudes, width, reach : the scaled model
    goal : (D,) a bound at or below it need not be improved; 0 for the tightest

    Returns
    -------
    ndarray, shape (stop - start, node width)
        The units as nodes.
    """
    m, d = centres.shape
    n_sequences = ends.shape[0]
    prefix = np.empty((edges.shape[1], m))
    nodes = np.empty((stop - start, node_width(m, d - 1)))
    changed, side, _ = place(start, n_sequences)
    item = item_of(centres, amplitudes, width, reach, changed, 1 - 2 * side)
    for unit in range(start, stop):
        changed, side, sequence = place(unit, n_sequences)
        node = nodes[unit - start]
        if unit == start or sequence == 0:
            item = item_of(centres, amplitudes, width, reach, changed, 1 - 2 * side)
            fill_prefix(tables[side, changed - first_dimension], prefix)
            set_whole_box(node, FIRST + d - 1, item)
            load_box(node, FIRST + d - 1, item)
            fill_reach(item)
        set_whole_box(node, FIRST + d - 1, item)
        first, last = ends[sequence, 0], ends[sequence, 1]
        edge = edges[changed]
        set_cells(node, edge[first], edge[first + 1], edge[last], edge[last + 1])
        inhabited = trim(node, item)
        table = tables[side, changed - first_dimension]
        sequence_weights(table, prefix, amplitudes, first, last, item.term[WEIGHT])
        node[BOUND] = cheap_bound(item, goal[changed]) if inhabited else 0.0
        node[SPLIT] = UNEXAMINED
        node[UNIT] = unit
        for j in range(d - 1):
            node[FIRST + j] = points[changed - first_dimension, j if j < changed else j + 1]
    return nodes


@kernel
def refine_range(
    nodes: Array,
    n_sequences: int,
    centres: Array,
    amplitudes: Array,
    width: Array,
    reach: Reach,
    goal: Array,
    allowance: Ints,
    attained: Array,
    closed: Array,
    used: Array,
    open_nodes: Array,
    found: Array,
    start: int,
) -> tuple[int, int, int]:
    """Refine nodes from ``start`` on until all are done or an output cannot hold one more node's share.

    Returns the next node to do and the rows of ``open_nodes`` and of ``found`` in use.
    """
    m, d = centres.shape
    most = 3
    for j in range(d):
        most = max(most, allowance[j])
    frontier = frontier_of(most, node_width(m, d - 1))
    changed, side, _ = place(int(nodes[start, UNIT]), n_sequences)
    item = item_of(centres, amplitudes, width, reach, changed, 1 - 2 * side)
    known = 2 * changed + side
    kept = 0
    n_found = 0
    for k in range(start, nodes.shape[0]):
        unit = int(nodes[k, UNIT])
        changed, side, _ = place(unit, n_sequences)
        share = allowance[changed]
        used[k] = 0.0
        closed[k] = 0.0
        if nodes[k, BOUND] <= goal[changed]:
            closed[k] = nodes[k, BOUND]
            continue
        if kept + share + 4 > open_nodes.shape[0] or n_found == found.shape[0]:
            return k, kept, n_found
        if share < 3:
            copy_row(nodes[k], open_nodes[kept])
            kept += 1
            continue
        if known != 2 * changed + side:
            item = item_of(centres, amplitudes, width, reach, changed, 1 - 2 * side)
            known = 2 * changed + side
        item.found[0] = 0.0
        closed[k], n_open, used[k] = refine(nodes[k], item, goal[changed], share, frontier)
        if item.found[0] > attained[changed] * (1.0 + WORTH_NOTING):
            copy_row(item.found, found[n_found])
            found[n_found, d + 2] = unit
            n_found += 1
        for row in range(n_open):
            copy_row(frontier.pool[row], open_nodes[kept])
            kept += 1
    return nodes.shape[0], kept, n_found


def refine_nodes(
    nodes: Array,
    n_sequences: int,
    centres: Array,
    amplitudes: Array,
    width: Array,
    reach: Reach,
    goal: Array,
    allowance: Ints,
    attained: Array,
) -> tuple[Array, Array, Array, Array]:
    """Refine a batch of nodes, each on its own and within its input's allowance.

    What is proved of a node depends on nothing but the node, so how nodes are batched cannot change a bit.

    Parameters
    ----------
    nodes : (n, node width)
    n_sequences : sequences of one input and direction
    centres, amplitudes, width, reach : the scaled model
    goal : (D,)
    allowance : (D,) most nodes to examine for one of these nodes, by input; below 3 none is
    attained : (D,) changes known to be attained, of which only better ones are noted

    Returns
    -------
    closed : (n,) highest bound of what each node has closed, 0 where nothing
    used : (n,) nodes examined
    open_nodes : (n_open, node width) what is still open, in order
    found : (n_found, D + 3) the best path met under a node, where better than ``attained``: its change, the
        value it starts from, the value it ends at, the other inputs (D - 1), and the unit
    """
    n, columns = nodes.shape
    closed = np.empty(n)
    used = np.empty(n)
    buffer = np.empty((max(4 * int(allowance.max(initial=0)), 1024) + 4, columns))
    better = np.empty((MOST_FOUND, width.size + 3))
    parts, found = [buffer[:0].copy()], [better[:0].copy()]
    at = 0
    while at < n:
        at, kept, n_found = refine_range(
            nodes,
            n_sequences,
            centres,
            amplitudes,
            width,
            reach,
            goal,
            allowance,
            attained,
            closed,
            used,
            buffer,
            better,
            at,
        )
        parts.append(buffer[:kept].copy())
        found.append(better[:n_found].copy())
    return closed, used, np.concatenate(parts), np.concatenate(found)
