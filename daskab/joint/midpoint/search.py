"""Best-first search over the pairs: the node proved for the fewest inputs is split next (METHOD J5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab.bound.frontier import N_WAITING, Frontier, add, clear, close_gaps, frontier_of, take
from daskab.bound.item import n_directions
from daskab.bound.nodes import copy_row
from daskab.joint.attacks import Attacks
from daskab.joint.midpoint.examine import examine
from daskab.joint.midpoint.nodes import SPLIT, STUCK, UNEXAMINED, node_width, set_root, split_node
from daskab.joint.midpoint.pairs import Pairs, pairs_of

Array = NDArray[np.float64]


def can_search(n_centres: int, n_inputs: int) -> bool:
    """Whether the centres span few enough directions for the search."""
    return n_centres == 1 or n_directions(n_centres, n_inputs) > 0


def root_node(attacks: Attacks) -> Array:
    """The node (1, node width) that holds every pair of points."""
    node = np.empty((1, node_width(attacks.centres.shape[0], n_directions(*attacks.centres.shape))))
    set_root(node[0], pairs_of(attacks))
    return node


def search_nodes(nodes: Array, attacks: Attacks, allowance: int) -> tuple[Array, Array]:
    """Prove of nodes that they hold no attack, each on its own.

    Parameters
    ----------
    nodes : (n, node width), from `root_node` or left open by a search for the same attacks
    attacks : what is to be excluded
    allowance : most nodes examined for one of these nodes, at least 2

    Returns
    -------
    used : (n,) nodes examined
    open_nodes : (n_open, node width) what is still open, in order. Every attack in the given nodes lies in one of
        them, and changes more inputs than its column EXCLUDED says.
    """
    pairs = pairs_of(attacks)
    frontier = frontier_of(allowance, nodes.shape[1])
    used = np.empty(nodes.shape[0])
    parts = [nodes[:0].copy()]
    for k in range(nodes.shape[0]):
        used[k], n_open = search_node(nodes[k], pairs, allowance, frontier)
        parts.append(frontier.pool[:n_open].copy())
    return used, np.concatenate(parts)


@kernel
def search_node(root: Array, pairs: Pairs, budget: int, frontier: Frontier) -> tuple[int, int]:
    """Search one node until nothing is open or ``budget`` nodes were examined.

    Returns the number of nodes examined, and the rows of the frontier's pool that are still open.
    """
    children = frontier.children
    clear(frontier)
    used = 0
    n = 0
    if root[SPLIT] == UNEXAMINED:
        n = 1
        copy_row(root, children[0])
    else:
        add(frontier, root)
    while True:
        for k in range(n):
            used += 1
            if not examine(children[k], pairs):
                add(frontier, children[k])
        if frontier.counts[N_WAITING] == 0 or used + 2 > budget:
            break
        row = take(frontier)
        n = split_node(frontier.pool[row], pairs, children)
        if n == 0:
            # It was the first in the queue, so nothing more can be proved of the root. take left its row as it was.
            copy_row(frontier.pool[row], children[2])
            children[2, SPLIT] = STUCK
            add(frontier, children[2])
            break
    return used, close_gaps(frontier)
