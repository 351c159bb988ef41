"""Adaptive refinement: split the sequence with the highest bound until every one is low enough (METHOD 4).

A node is a pair of cells of the changed input: a path starts in the lower cell and ends in the upper one.
The two cells of a node are equal (path inside one cell) or the lower lies wholly below the upper. Splitting
a cell at a point leaves no gap, so the children of a node cover it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab.bound.contributions import inside_increase, largest, weight_error
from daskab.bound.transverse import fill_reach, quadratic_bound, sign_bound

Array = NDArray[np.float64]

# Columns of a node.
FROM_LOW, FROM_HIGH, TO_LOW, TO_HIGH, BOUND = range(5)
NODE_WIDTH = 5

QUADRATIC_ROUNDS = 3


@kernel
def node_weights(node: Array, centre: Array, amplitudes: Array, direction: int, width: float, out: Array) -> None:
    """Weights (M,) of a node, each never below the largest increase of its term from one cell to the other."""
    inside = node[FROM_LOW] == node[TO_LOW]
    for i in range(out.size):
        a = direction * amplitudes[i]
        c = centre[i]
        if inside:
            increase = inside_increase(a, c, node[FROM_LOW], node[FROM_HIGH])
        else:
            increase = largest(a, c, node[TO_LOW], node[TO_HIGH]) + largest(-a, c, node[FROM_LOW], node[FROM_HIGH])
        out[i] = increase + weight_error(a, c, width)


@kernel
def transverse_bound(
    weights: Array,
    centres: Array,
    width: Array,
    changed: int,
    reach: Array,
    goal: float,
    lines: Array,
    best: Array,
) -> float:
    """Smallest of the transverse bounds, at least 0; dearer ones run only while the goal is not met."""
    bound = sign_bound(weights, reach)
    if bound > goal:
        bound = min(bound, quadratic_bound(weights, centres, width, changed, reach, QUADRATIC_ROUNDS, lines, best))
    return max(bound, 0.0)


@kernel
def sift_up(heap: Array, at: int) -> None:
    """Restore the heap order (largest bound first) after row ``at`` was added at the end."""
    while at > 0:
        parent = (at - 1) // 2
        if heap[parent, BOUND] >= heap[at, BOUND]:
            return
        for k in range(NODE_WIDTH):
            heap[parent, k], heap[at, k] = heap[at, k], heap[parent, k]
        at = parent


@kernel
def sift_down(heap: Array, size: int) -> None:
    """Restore the heap order after row 0 was replaced."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and heap[child + 1, BOUND] > heap[child, BOUND]:
            child += 1
        if heap[at, BOUND] >= heap[child, BOUND]:
            return
        for k in range(NODE_WIDTH):
            heap[child, k], heap[at, k] = heap[at, k], heap[child, k]
        at = child


@kernel
def split(node: Array, children: Array) -> int:
    """Write the children of a node; 0 when its cells are too narrow for floating point to split."""
    f_low, f_high, t_low, t_high = node[FROM_LOW], node[FROM_HIGH], node[TO_LOW], node[TO_HIGH]
    f_mid = 0.5 * (f_low + f_high)
    t_mid = 0.5 * (t_low + t_high)
    if f_low == t_low:
        if not (f_low < f_mid < f_high):
            return 0
        set_cells(children[0], f_low, f_mid, f_low, f_mid)
        set_cells(children[1], f_low, f_mid, f_mid, f_high)
        set_cells(children[2], f_mid, f_high, f_mid, f_high)
        return 3
    if f_high - f_low >= t_high - t_low:
        if not (f_low < f_mid < f_high):
            return 0
        set_cells(children[0], f_low, f_mid, t_low, t_high)
        set_cells(children[1], f_mid, f_high, t_low, t_high)
    else:
        if not (t_low < t_mid < t_high):
            return 0
        set_cells(children[0], f_low, f_high, t_low, t_mid)
        set_cells(children[1], f_low, f_high, t_mid, t_high)
    return 2


@kernel
def set_cells(node: Array, from_low: float, from_high: float, to_low: float, to_high: float) -> None:
    """Write a node's cells."""
    node[FROM_LOW] = from_low
    node[FROM_HIGH] = from_high
    node[TO_LOW] = to_low
    node[TO_HIGH] = to_high


@kernel
def refine(
    root: Array,
    centres: Array,
    amplitudes: Array,
    width: Array,
    changed: int,
    direction: int,
    goal: float,
    budget: int,
    heap: Array,
) -> tuple[float, int, int]:
    """Refine one node, best first, until its bound is at most ``goal`` or ``budget`` nodes were bounded.

    Parameters
    ----------
    root : (5,)
        Cells in scaled coordinates and a bound already proved for them (inf if none).
    centres, amplitudes, width : the scaled model, (M, D), (M,), (D,)
    changed, direction : the input that changes, and +1 or -1
    goal : float
        A node at or below it needs no further work.
    budget : int
        Most nodes to bound.
    heap : (budget + 4, 5)
        Work space; on return its first rows are the nodes still open.

    Returns
    -------
    closed : float
        Highest bound of the part of the root that is closed; 0 when nothing is.
    n_open : int
        Rows of ``heap`` in use. The root's bound is the larger of ``closed`` and their bounds.
    n_nodes : int
        Nodes bounded.
    """
    m, d = centres.shape
    weights = np.empty(m)
    reach = np.empty((4, m))
    lines = np.empty((2, m))
    best = np.empty((2, d))
    children = np.empty((3, NODE_WIDTH))
    centre = centres[:, changed].copy()
    fill_reach(centres, width, changed, reach)
    closed = 0.0
    used = 0
    size = 1
    heap[0, :] = root
    while size > 0 and used + 3 <= budget:
        if heap[0, BOUND] <= goal:
            break
        parent = heap[0, BOUND]
        n = split(heap[0], children)
        size -= 1
        heap[0, :] = heap[size, :]
        sift_down(heap, size)
        if n == 0:
            closed = max(closed, parent)
        for k in range(n):
            node_weights(children[k], centre, amplitudes, direction, width[changed], weights)
            bound = transverse_bound(weights, centres, width, changed, reach, goal, lines, best)
            used += 1
            # A child's bound that is not a number must not vanish in a comparison: the parent's holds.
            if not bound <= parent:
                bound = parent
            if bound <= goal:
                closed = max(closed, bound)
            else:
                children[k, BOUND] = bound
                heap[size, :] = children[k]
                sift_up(heap, size)
                size += 1
    kept = 0
    for k in range(size):
        if heap[k, BOUND] <= goal:
            closed = max(closed, heap[k, BOUND])
        else:
            heap[kept, :] = heap[k]
            kept += 1
    return closed, kept, used
