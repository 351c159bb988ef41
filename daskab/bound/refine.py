"""Best-first refinement: split the node with the highest bound until all are at the goal (METHOD 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inlined_kernel, inner_kernel, kernel
from daskab.bound.examine import examine
from daskab.bound.item import Item
from daskab.bound.nodes import BOUND, SPLIT, SPLIT_FROM, STUCK, copy_row, node_width, split_node

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class Frontier(NamedTuple):
    """Nodes waiting to be split: a pool of rows and a heap of row numbers, the largest bound first."""

    pool: Array  #: (budget + 4, node width)
    order: Ints  #: (budget + 4,) the heap from the front, freed rows from the back
    children: Array  #: (3, node width)


@kernel
def frontier_of(budget: int, m: int, d: int) -> Frontier:
    """Allocate for a node budget, M centres and D' other inputs: about 8 (budget + 7)(D' + 30) bytes."""
    width = node_width(m, d)
    return Frontier(np.empty((budget + 4, width)), np.empty(budget + 4, dtype=np.int64), np.empty((3, width)))


@inner_kernel
def sift_up(frontier: Frontier, at: int) -> None:
    """Restore the heap after an entry was added at its end."""
    order, pool = frontier.order, frontier.pool
    while at > 0:
        parent = (at - 1) // 2
        if pool[order[parent], BOUND] >= pool[order[at], BOUND]:
            return
        order[parent], order[at] = order[at], order[parent]
        at = parent


@inner_kernel
def sift_down(frontier: Frontier, size: int) -> None:
    """Restore the heap after its first entry was replaced."""
    order, pool = frontier.order, frontier.pool
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and pool[order[child + 1], BOUND] > pool[order[child], BOUND]:
            child += 1
        if pool[order[at], BOUND] >= pool[order[child], BOUND]:
            return
        order[child], order[at] = order[at], order[child]
        at = child


@inlined_kernel
def refine(root: Array, item: Item, goal: float, budget: int, frontier: Frontier) -> tuple[float, int, int]:
    """Refine one node until its bound is at most ``goal`` or ``budget`` nodes were examined.

    Parameters
    ----------
    root : a node, with a bound already proved for it
    item : its input and direction
    goal : a node at or below it needs no further work
    budget : most nodes to examine, at least 3
    frontier : from `frontier_of` for at least this budget

    Returns
    -------
    closed : float
        Highest bound of the part of the root that is closed, 0 when nothing is. It exceeds the goal where a
        node could not be split any further.
    n_open : int
        Rows of the frontier's pool in use. The root's bound is the larger of ``closed`` and their bounds.
    used : int
        Nodes examined.
    """
    order, pool, children = frontier.order, frontier.pool, frontier.children
    closed = 0.0
    size = 0
    used = 0
    rows = 0  # rows of the pool that were ever used; freed ones are used again first
    free = 0
    last = order.size - 1
    copy_row(root, children[0])
    n = 1
    if root[SPLIT] >= SPLIT_FROM:
        # Examined in an earlier round, which also chose how to split it.
        n = split_node(root, item, children)
        if n == 0:
            closed = root[BOUND]
    while True:
        for k in range(n):
            used += 1
            if examine(children[k], goal, item) or children[k, SPLIT] == STUCK:
                closed = max(closed, children[k, BOUND])
                continue
            if free > 0:
                free -= 1
                row = order[last - free]
            else:
                row = rows
                rows += 1
            copy_row(children[k], pool[row])
            order[size] = row
            sift_up(frontier, size)
            size += 1
        if size == 0 or used + 3 > budget:
            break
        row = order[0]
        size -= 1
        order[0] = order[size]
        sift_down(frontier, size)
        n = split_node(pool[row], item, children)
        if n == 0:
            closed = max(closed, pool[row, BOUND])
        order[last - free] = row
        free += 1
    # Every row that is not free is open: close the gaps, marking free rows by a bound of -1.
    for k in range(free):
        pool[order[last - k], BOUND] = -1.0
    kept = 0
    for row in range(rows):
        if pool[row, BOUND] >= 0.0:
            if kept != row:
                copy_row(pool[row], pool[kept])
            kept += 1
    return closed, kept, used
