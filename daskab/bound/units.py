"""Batches of logical units (dimension, direction, sequence): numbered, bounded, refined (METHOD 2 to 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab.bound.refine import BOUND, NODE_WIDTH, refine, set_cells, transverse_bound
from daskab.bound.sequences import fill_prefix, sequence_weights
from daskab.bound.transverse import fill_reach

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

UNIT = NODE_WIDTH
"""Column of a stored node after its cells and bound: the number of the unit it belongs to."""


@kernel
def place(unit: int, n_sequences: int) -> tuple[int, int, int]:
    """(dimension, direction index, sequence) of a unit; units are numbered in that order."""
    return unit // (2 * n_sequences), (unit // n_sequences) % 2, unit % n_sequences


@kernel
def bound_units(
    start: int,
    stop: int,
    ends: Ints,
    edges: Array,
    tables: Array,
    first_dimension: int,
    centres: Array,
    amplitudes: Array,
    width: Array,
    goal: Array,
    nodes: Array,
) -> None:
    """Bound every unit of a range once, from the stored contributions.

    Parameters
    ----------
    start, stop : the units, [start, stop)
    ends : (S, 2) first and last slice of every sequence
    edges : (D, s + 1) slice edges in scaled coordinates
    tables : (2, B, s, 4, M) contributions of the inputs first_dimension ... first_dimension + B - 1
    first_dimension : input of tables[:, 0]
    centres, amplitudes, width : the scaled model
    goal : (D,) a bound at or below it need not be improved; 0 for the tightest
    nodes : (stop - start, 6), overwritten with each unit's cells, bound and number
    """
    m, d = centres.shape
    weights = np.empty(m)
    reach = np.empty((4, m))
    lines = np.empty((2, m))
    best = np.empty((2, d))
    prefix = np.empty((edges.shape[1], m))
    known = -1
    for unit in range(start, stop):
        changed, side, sequence = place(unit, ends.shape[0])
        table = tables[side, changed - first_dimension]
        if known != 2 * changed + side:
            fill_reach(centres, width, changed, reach)
            fill_prefix(table, prefix)
            known = 2 * changed + side
        first, last = ends[sequence, 0], ends[sequence, 1]
        sequence_weights(table, prefix, amplitudes, first, last, weights)
        node = nodes[unit - start]
        set_cells(
            node,
            edges[changed, first],
            edges[changed, first + 1],
            edges[changed, last],
            edges[changed, last + 1],
        )
        node[BOUND] = transverse_bound(weights, centres, width, changed, reach, goal[changed], lines, best)
        node[UNIT] = unit


@kernel
def refine_range(
    nodes: Array,
    n_sequences: int,
    centres: Array,
    amplitudes: Array,
    width: Array,
    goal: Array,
    allowance: Ints,
    heap: Array,
    closed: Array,
    used: Array,
    frontier: Array,
    start: int,
) -> tuple[int, int]:
    """Refine nodes from ``start`` on until all are done or ``frontier`` cannot hold one more node's share.

    Returns the next node to do and the rows of ``frontier`` in use.
    """
    kept = 0
    for k in range(start, nodes.shape[0]):
        unit = int(nodes[k, UNIT])
        changed, side, _ = place(unit, n_sequences)
        if kept + allowance[changed] + 4 > frontier.shape[0]:
            return k, kept
        closed[k], n_open, used[k] = refine(
            nodes[k, :NODE_WIDTH],
            centres,
            amplitudes,
            width,
            changed,
            1 - 2 * side,
            goal[changed],
            allowance[changed],
            heap,
        )
        for row in range(n_open):
            frontier[kept, :NODE_WIDTH] = heap[row]
            frontier[kept, UNIT] = unit
            kept += 1
    return nodes.shape[0], kept


def refine_nodes(
    nodes: Array,
    n_sequences: int,
    centres: Array,
    amplitudes: Array,
    width: Array,
    goal: Array,
    allowance: Ints,
) -> tuple[Array, Array, Array]:
    """Refine a batch of nodes, each on its own and within its input's allowance.

    The result of a node depends on nothing but the node, so how nodes are batched cannot change a bit.

    Parameters
    ----------
    nodes : (n, 6) cells, bound and unit
    n_sequences : sequences of one input and direction
    centres, amplitudes, width : the scaled model
    goal : (D,)
    allowance : (D,) most nodes to open for one of these nodes, by input

    Returns
    -------
    closed : (n,) highest bound of what each node has closed, 0 where nothing
    used : (n,) nodes bounded
    frontier : (n_open, 6) what is still open, in order
    """
    most = int(allowance.max(initial=0)) + 4
    heap = np.empty((most, NODE_WIDTH))
    closed = np.empty(nodes.shape[0])
    used = np.empty(nodes.shape[0])
    buffer = np.empty((max(4 * most, 4096), NODE_WIDTH + 1))
    parts: list[Array] = []
    at = 0
    while at < nodes.shape[0]:
        at, kept = refine_range(
            nodes, n_sequences, centres, amplitudes, width, goal, allowance, heap, closed, used, buffer, at
        )
        parts.append(buffer[:kept].copy())
    return closed, used, np.concatenate(parts) if parts else np.empty((0, NODE_WIDTH + 1))
