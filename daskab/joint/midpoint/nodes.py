"""Nodes of the pair search: a slab of midpoints for every direction, a range of s for every centre (METHOD J2).

A node is a row of floats. Halving a slab at a point leaves no gap, so the children of a node cover it; ranges of
s are only ever narrowed to what a proof leaves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel
from daskab.bound.item import range_along
from daskab.bound.nodes import BOUND, halve
from daskab.bound.rounding import EPS
from daskab.joint.midpoint.gains import select_largest, sum_gains
from daskab.joint.midpoint.pairs import (
    ALONG,
    GAIN,
    S_HIGH,
    S_LOW,
    SLAB_HIGH,
    SLAB_LOW,
    WIDTH,
    Pairs,
    S,
    most_of_s,
)

Array = NDArray[np.float64]

# BOUND, in the place the heap of `bound.frontier` orders by: above 0 while the node is open, the higher the fewer
# inputs it is proved for; EXCLUDED: no attack in the node changes that many inputs or fewer; SPLIT: the direction
# to be halved, or one of the two below.
EXCLUDED, LAM, PHI, SPLIT, _, FIRST = range(6)
assert BOUND == 4

UNEXAMINED, STUCK = -2, -1

FIRST_PHI = 0.3
"""Where exp(phi) is touched before anything is known of a node: some hundred inputs moved."""


@inner_kernel
def node_width(m: int, k: int) -> int:
    """Columns of a node for M centres and K directions."""
    return FIRST + 2 * k + 3 * m


@inner_kernel
def set_root(node: Array, pairs: Pairs) -> None:
    """Let a node hold every pair."""
    k_all, d = pairs.cuts.shape
    m = pairs.centres.shape[0]
    node[EXCLUDED] = 0.0
    node[LAM] = 0.5
    node[PHI] = FIRST_PHI
    node[SPLIT] = UNEXAMINED
    node[BOUND] = pairs.most + 1.0
    for k in range(k_all):
        low, high = range_along(pairs.cuts[k], pairs.axis[WIDTH])
        slack = (d + 8.0) * EPS * (high - low)
        node[FIRST + k] = low - slack
        node[FIRST + k_all + k] = high + slack
    at = FIRST + 2 * k_all
    for i in range(m):
        for j in range(d):
            pairs.axis[GAIN, j] = most_of_s(pairs.arm[i, j], pairs.axis[WIDTH, j])
        sum_gains(pairs)
        most = select_largest(pairs, pairs.most) * (1.0 + (d + 8.0) * EPS)
        node[at + i] = -most
        node[at + m + i] = most
        node[at + 2 * m + i] = 0.0


@inner_kernel
def load(node: Array, pairs: Pairs) -> None:
    """Let the work space be about a node."""
    k_all = pairs.cuts.shape[0]
    m = pairs.centres.shape[0]
    for k in range(k_all):
        pairs.slab[SLAB_LOW, k] = node[FIRST + k]
        pairs.slab[SLAB_HIGH, k] = node[FIRST + k_all + k]
        pairs.slab[ALONG, k] = 0.0
    at = FIRST + 2 * k_all
    for i in range(m):
        pairs.term[S_LOW, i] = node[at + i]
        pairs.term[S_HIGH, i] = node[at + m + i]
        pairs.term[S, i] = min(max(node[at + 2 * m + i], node[at + i]), node[at + m + i])


@inner_kernel
def save(node: Array, pairs: Pairs) -> None:
    """Keep the ranges of s, and where the lines touched."""
    m = pairs.centres.shape[0]
    at = FIRST + 2 * pairs.cuts.shape[0]
    for i in range(m):
        low, high, touch = pairs.term[S_LOW, i], pairs.term[S_HIGH, i], pairs.term[S, i]
        node[at + i] = low
        node[at + m + i] = high
        # In a wide box the maximiser may be no number: any place will do.
        node[at + 2 * m + i] = touch if low <= touch <= high else 0.5 * (low + high)


@inner_kernel
def split_node(node: Array, pairs: Pairs, children: Array) -> int:
    """Write the two children of a node; 0 when floating point leaves no room between its ends."""
    if node[SPLIT] == STUCK:
        return 0
    at_low = FIRST + int(node[SPLIT])
    return halve(node, at_low, at_low + pairs.cuts.shape[0], children)
