"""Search of sets of inputs, each on its own: halve what is open until nothing is (METHOD J7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab._elementary import exp_each
from daskab.bound.frontier import N_WAITING, Frontier, add, clear, close_gaps, frontier_of, take
from daskab.bound.nodes import BOUND, copy_row, set_whole_box
from daskab.joint.attacks import Attacks
from daskab.joint.sets.examine import examine
from daskab.joint.sets.moves import Moves, choose_set, moves_of
from daskab.joint.sets.nodes import (
    FIRST,
    FOUND,
    SHARE,
    SPLIT,
    STUCK,
    UNEXAMINED,
    box_at,
    cells_at,
    node_width,
    point_at,
    split_node,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def root_nodes(sets: Ints, attacks: Attacks) -> Array:
    """The node (1 a set, node width) of every set (number of sets, ``attacks.most``) that holds all its moves."""
    moves = moves_of(attacks)
    m, d = attacks.centres.shape
    nodes = np.empty((sets.shape[0], node_width(m, d, attacks.most)))
    for node, inputs in zip(nodes, sets, strict=True):
        set_root(node, inputs, moves)
    return nodes


def search_sets(nodes: Array, attacks: Attacks, allowance: int) -> tuple[Array, Array]:
    """Prove of nodes that no attack moves their set of ``attacks.most`` inputs within them, each on its own.

    Parameters
    ----------
    nodes : (n, node width), from `root_nodes` or left open by a search for the same attacks
    attacks : what is to be excluded
    allowance : most nodes examined for one of these nodes, at least 2

    Returns
    -------
    used : (n,) nodes examined
    open_nodes : (n_open, node width) what is still open, in order. Every attack in the given nodes lies in one of
        them. A node whose column SPLIT is FOUND holds an attack, as far as can be told without regard to rounding.
    """
    moves = moves_of(attacks)
    frontier = frontier_of(allowance, nodes.shape[1])
    used = np.empty(nodes.shape[0])
    parts = [nodes[:0].copy()]
    for k in range(nodes.shape[0]):
        used[k], n_open = search_set(nodes[k], moves, allowance, frontier)
        parts.append(frontier.pool[:n_open].copy())
    return used, np.concatenate(parts)


def pair_in(node: Array, attacks: Attacks) -> tuple[Array, Array]:
    """The two points (D,) of a node at its own point of the other inputs, from corner to corner, that miss least."""
    d, size = attacks.width.size, attacks.most
    moved = node[FIRST : FIRST + size].astype(np.int64)
    point = np.empty(d)
    point[np.setdiff1d(np.arange(d), moved)] = node[point_at(size) : point_at(size) + d - size]
    ends = node[cells_at(size) : cells_at(size) + 4 * size].reshape(2, 2, size)
    pair = []
    for side, sign in enumerate((-1.0, 1.0)):
        corners = np.tile(point, (2**size, 1))
        corners[:, moved] = np.stack([ends[(np.arange(2**size) >> k) & 1, side, k] for k in range(size)], axis=1)
        squares = np.sum((corners[:, None] - attacks.centres) ** 2, axis=2)
        pair.append(corners[np.argmax(sign * np.sum(exp_each(-0.5 * squares) * attacks.amplitudes, axis=1))])
    return pair[0], pair[1]


@kernel
def set_root(node: Array, inputs: Ints, moves: Moves) -> None:
    """Let a node hold every move of a set of inputs (n,)."""
    n = moves.n
    node[SHARE] = 0.5
    node[SPLIT] = UNEXAMINED
    node[SPLIT + 1] = 0.0
    node[SPLIT + 2] = 0.0
    node[BOUND] = 1.0
    for k in range(n):
        node[FIRST + k] = inputs[k]
        width = moves.width[inputs[k]]
        for side in range(2):
            node[cells_at(n) + side * n + k] = 0.0
            node[cells_at(n) + 2 * n + side * n + k] = width
    choose_set(node, moves)
    for at in range(moves.others.size):
        node[point_at(n) + at] = 0.5 * moves.width[moves.others[at]]
    set_whole_box(node, box_at(n, moves.others.size), moves.item)


@kernel
def search_set(root: Array, moves: Moves, budget: int, frontier: Frontier) -> tuple[int, int]:
    """Search one node until nothing is open, an attack is found, or ``budget`` nodes were examined.

    Returns the number of nodes examined, and the rows of the frontier's pool that are still open.
    """
    children = frontier.children
    m, d = moves.centres.shape
    choose_set(root, moves)
    clear(frontier)
    used = 0
    n = 0
    if root[SPLIT] == UNEXAMINED:
        n = 1
        copy_row(root, children[0])
    else:
        add(frontier, root)
    found = False
    while not found:
        for k in range(n):
            used += 1
            if not examine(children[k], moves):
                add(frontier, children[k])
                found = found or children[k, SPLIT] == FOUND
        if found or frontier.counts[N_WAITING] == 0 or used + 2 > budget:
            break
        row = take(frontier)
        n = split_node(frontier.pool[row], m, d, moves.n, children)
        if n == 0:
            # All nodes have to close, and this one never will. take left its row as it was.
            copy_row(frontier.pool[row], children[2])
            if children[2, SPLIT] != FOUND:
                children[2, SPLIT] = STUCK
            add(frontier, children[2])
            break
    return used, close_gaps(frontier)
