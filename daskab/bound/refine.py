"""Best-first refinement: split the node with the highest bound until all are at the goal (METHOD 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inlined_kernel
from daskab.bound.examine import examine
from daskab.bound.frontier import N_WAITING, Frontier, add, clear, close_gaps, take
from daskab.bound.item import Item
from daskab.bound.nodes import BOUND, SPLIT, SPLIT_FROM, STUCK, copy_row, split_node

Array = NDArray[np.float64]


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
    children = frontier.children
    clear(frontier)
    closed = 0.0
    used = 0
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
            add(frontier, children[k])
        if frontier.counts[N_WAITING] == 0 or used + 3 > budget:
            break
        row = take(frontier)
        n = split_node(frontier.pool[row], item, children)
        if n == 0:
            closed = max(closed, frontier.pool[row, BOUND])
    return closed, close_gaps(frontier), used
