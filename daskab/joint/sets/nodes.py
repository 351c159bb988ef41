"""Nodes of the search over sets: which inputs move, from which cells to which, in which part of the others' box.

A node is a row of floats: one set of n inputs, a cell for each where x may lie and one for x', a good point of the
other inputs, and a range for every cut of their box. Halving a cell or a range leaves no gap (METHOD J7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel
from daskab.bound.item import n_cuts
from daskab.bound.nodes import BOUND, halve

Array = NDArray[np.float64]

# SHARE: lam of the inequality that was tried last; SPLIT: what is halved next, cell k of the 2 n (those of x first),
# or 2 n + the cut, or one of the three below; BOUND, in the place the heap of `bound.frontier` orders by.
SHARE, SPLIT, _, _, _, FIRST = range(6)
assert BOUND == 4

FOUND, UNEXAMINED, STUCK = -3, -2, -1


@inner_kernel
def cells_at(n: int) -> int:
    """First column of the cells' lower ends, 2 n of them; the upper ends follow."""
    return FIRST + n


@inner_kernel
def point_at(n: int) -> int:
    """First column of the point of the other inputs."""
    return FIRST + 5 * n


@inner_kernel
def box_at(n: int, d: int) -> int:
    """First column of the box's ranges, for D' = d other inputs."""
    return FIRST + 5 * n + d


@inner_kernel
def node_width(m: int, d: int, n: int) -> int:
    """Columns of a node for M centres, D inputs, and sets of n."""
    return FIRST + 5 * n + (d - n) + 2 * n_cuts(m, d - n)


@inner_kernel
def split_node(node: Array, m: int, d: int, n: int, children: Array) -> int:
    """Write the two children of a node; 0 when it cannot be split."""
    how = int(node[SPLIT])
    if how < 0:
        return 0
    if how < 2 * n:
        return halve(node, cells_at(n) + how, cells_at(n) + 2 * n + how, children)
    at_low = box_at(n, d - n) + how - 2 * n
    return halve(node, at_low, at_low + n_cuts(m, d - n), children)
