"""Nodes waiting to be split, the one with the highest bound first: a pool of rows and a heap of row numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel, kernel
from daskab.bound.nodes import BOUND, copy_row

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

N_WAITING, N_ROWS, N_FREE = range(3)  # of Frontier.counts: rows ever used; those of them that are free again


class Frontier(NamedTuple):
    """A pool of nodes, ordered by their column BOUND, and room for the children of one."""

    pool: Array  #: (budget + 4, node width)
    order: Ints  #: (budget + 4,) the heap from the front, freed rows from the back
    counts: Ints  #: (3,)
    children: Array  #: (3, node width)


@kernel
def frontier_of(budget: int, width: int) -> Frontier:
    """Allocate for a node budget: about 8 (budget + 7) (width + 1) bytes."""
    return Frontier(
        np.empty((budget + 4, width)),
        np.empty(budget + 4, dtype=np.int64),
        np.zeros(3, dtype=np.int64),
        np.empty((3, width)),
    )


@inner_kernel
def clear(frontier: Frontier) -> None:
    """Begin with no node."""
    for k in range(3):
        frontier.counts[k] = 0


@inner_kernel
def add(frontier: Frontier, node: Array) -> None:
    """Put a copy of a node in the queue."""
    count, order = frontier.counts, frontier.order
    if count[N_FREE] > 0:
        count[N_FREE] -= 1
        row = order[order.size - 1 - count[N_FREE]]
    else:
        row = count[N_ROWS]
        count[N_ROWS] += 1
    copy_row(node, frontier.pool[row])
    order[count[N_WAITING]] = row
    sift_up(frontier, count[N_WAITING])
    count[N_WAITING] += 1


@inner_kernel
def take(frontier: Frontier) -> int:
    """Take the first node off the queue; its row, which stays as it is until the next `add`."""
    count, order = frontier.counts, frontier.order
    row = order[0]
    count[N_WAITING] -= 1
    order[0] = order[count[N_WAITING]]
    sift_down(frontier, count[N_WAITING])
    order[order.size - 1 - count[N_FREE]] = row
    count[N_FREE] += 1
    return int(row)


@inner_kernel
def close_gaps(frontier: Frontier) -> int:
    """Move the nodes that wait to the first rows of the pool, in the order of their rows; how many there are."""
    count, order, pool = frontier.counts, frontier.order, frontier.pool
    for k in range(count[N_FREE]):
        pool[order[order.size - 1 - k], BOUND] = -1.0  # no bound is negative
    kept = 0
    for row in range(count[N_ROWS]):
        if pool[row, BOUND] >= 0.0:
            if kept != row:
                copy_row(pool[row], pool[kept])
            kept += 1
    return kept


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
