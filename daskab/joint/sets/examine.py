"""Examine a node of a set: is there room in it for a confident misclassification? (METHOD J7)"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inlined_kernel, inner_kernel
from daskab.bound.climb import climb, mixture
from daskab.bound.examine import choose_cut, proved_below, start_climb
from daskab.bound.item import BULGE_FROM, POINT, Item
from daskab.bound.nodes import BOUND
from daskab.bound.reach import values_from
from daskab.bound.transverse import cheap_bound, fill_reach, quadratic_bound, sign_bound
from daskab.joint.attacks import required, shares
from daskab.joint.sets.moves import (
    EITHER,
    LOWER,
    UPPER,
    Moves,
    best_corners,
    choose_corners,
    corner_weights,
    latent_in_corners,
    load,
    raise_weights,
    sort_cells,
    trim,
)
from daskab.joint.sets.nodes import FIRST, FOUND, SHARE, SPLIT, STUCK, UNEXAMINED, cells_at, point_at

Array = NDArray[np.float64]

CLIMB_STEPS = 15

FIRST_STEPS, STEPS = 6, 2
"""Shares tried for the root of a set, and for any other node, beginning with its parent's."""

FIRST_STRIDE, STRIDE = 0.25, 0.05

FIRST_IN_QUEUE = 1e300


@inlined_kernel
def examine(node: Array, moves: Moves) -> bool:
    """Whether no attack moves the node's set from its cells to its cells. If not, BOUND and SPLIT are set."""
    if not trim(node, moves):
        return True
    load(node, moves)
    fill_reach(moves.item)
    take_point(node, moves)
    value = choose_share(node, moves)
    keep_point(node, moves)
    if node[SPLIT] == FOUND:
        node[BOUND] = FIRST_IN_QUEUE
        return False
    level = required(node[SHARE], moves.high, moves.low)
    start, end = best_corners(moves)
    if value < level and level > 0.0 and corners_below(node, moves, level, start, end):
        return True
    take_point(node, moves)
    node[BOUND] = min(value / level, FIRST_IN_QUEUE) if level > 0.0 and value > 0.0 else 1.0
    node[SPLIT] = choose_split(node, moves, level, start, end)
    return False


@inner_kernel
def take_point(node: Array, moves: Moves) -> None:
    """Let the item's point be the node's."""
    for j in range(moves.others.size):
        moves.item.axis[POINT, j] = node[point_at(moves.n) + j]


@inner_kernel
def keep_point(node: Array, moves: Moves) -> None:
    """Let the node's point be the item's."""
    for j in range(moves.others.size):
        node[point_at(moves.n) + j] = moves.item.axis[POINT, j]


@inlined_kernel
def choose_share(node: Array, moves: Moves) -> float:
    """Move the item's point and the node's share to where the excess over T is highest and lowest; the sum there.

    The excess is convex in the share; at the best one the two thresholds are missed, or passed, by the same. Where
    both are passed the point is an attack. Where only the distance counts the share is a half.
    """
    least, most = (0.5, 0.5) if moves.apart else shares(moves.high, moves.low)
    first = node[SPLIT] == UNEXAMINED
    share = 0.5 * (least + most) if first else min(max(node[SHARE], least), most)
    stride = (FIRST_STRIDE if first else STRIDE) * (most - least)
    value = np.inf
    for step in range(FIRST_STEPS if first else STEPS):
        if step > 0:
            latent_in_corners(moves)
            start, end = best_corners(moves)
            share += stride if moves.latent[1, end] - moves.high < -moves.low - moves.latent[0, start] else -stride
            share = min(max(share, least), most)
            stride *= 0.5
        raise_weights(moves, share)
        for _ in range(2):
            latent_in_corners(moves)
            start, end = best_corners(moves)
            choose_corners(moves, start, end)
            corner_weights(moves, share)
            if step == 0:
                quadratic_bound(moves.item, -np.inf)
                start_climb(moves.item)
            value = climb(moves.item, CLIMB_STEPS)
        latent_in_corners(moves)
        start, end = best_corners(moves)
        if (
            is_attack(moves, moves.latent[0, start], moves.latent[1, end])
            and is_listed(moves.item)
            # Levels just above what a limit leaves would take too many nodes.
            and (moves.apart or is_in_reach(node, moves, start, end))
        ):
            node[SPLIT] = FOUND
            break
        if moves.apart:
            break
    node[SHARE] = share
    return value


@inner_kernel
def is_listed(item: Item) -> bool:
    """Whether every other input that has listed values is at one, at the item's point."""
    for j in range(item.centres.shape[1]):
        begin, end = item.first[j], item.first[j + 1]
        point = item.axis[POINT, j]
        if begin < end and values_from(point, item.values, begin, end) != point:
            return False
    return True


@inner_kernel
def is_in_reach(node: Array, moves: Moves, start: int, end: int) -> bool:
    """Whether no input moves farther than it may from one corner, by its number, to another."""
    n = moves.n
    for k in range(n):
        before = node[cells_at(n) + k + 2 * n * ((start >> k) & 1)]
        after = node[cells_at(n) + n + k + 2 * n * ((end >> k) & 1)]
        if abs(after - before) > moves.reach.limit[int(node[FIRST + k])]:
            return False
    return True


@inner_kernel
def is_attack(moves: Moves, f: float, fp: float) -> bool:
    """Whether two latents, less c0, are those of an attack, without regard to rounding."""
    if moves.apart:
        return bool(fp - f >= moves.high + moves.low)
    return bool(fp >= moves.high and -f >= moves.low)


@inlined_kernel
def corners_below(node: Array, moves: Moves, level: float, start: int, end: int) -> bool:
    """Whether every move from corner to corner is proved below the level, the likeliest first, then in groups.

    A group leaves some ends open; if the sign bound does not close it as a whole, the next cell is told apart.
    """
    cells = 2 * moves.n
    choose_corners(moves, start, end)
    sort_cells(moves)
    depth = cells
    first = True
    while True:
        corner_weights(moves, node[SHARE])
        below = sign_bound(moves.item) <= level
        if not below and depth == cells:
            # A bound that is not a number is not below anything.
            below = cheap_bound(moves.item, level) <= level
            if not below:
                take_point(node, moves)
                start_climb(moves.item)
                below = climb(moves.item, CLIMB_STEPS) < level and proved_below(moves.item, level)
            if not below:
                return False
        if first:
            first = False
            depth = 0
            for k in range(cells):
                moves.corner[k] = EITHER
        elif below:
            # On to the next group: the other end of the last cell whose lower one is done.
            while depth > 0 and moves.corner[moves.order[depth - 1]] == UPPER:
                depth -= 1
                moves.corner[moves.order[depth]] = EITHER
            if depth == 0:
                return True
            moves.corner[moves.order[depth - 1]] = UPPER
        else:
            moves.corner[moves.order[depth]] = LOWER
            depth += 1


@inlined_kernel
def choose_split(node: Array, moves: Moves, level: float, start: int, end: int) -> int:
    """What keeps the node open: a cell, whose bulges cost too much, or the box of the other inputs."""
    item, n = moves.item, moves.n
    share = node[SHARE]
    choose_corners(moves, start, end)
    corner_weights(moves, share)
    value = share * moves.latent[1, end] - (1.0 - share) * moves.latent[0, start]
    worst = STUCK
    most = 0.0
    lost = 0.0
    for k in range(2 * n):
        total = (1.0 - share if k < n else share) * bulge_at_point(moves, k)
        lost += total
        if total > most:
            most = total
            worst = k
    room = level - value
    if moves.item.values.size > 0:
        room = abs(room)  # a point above the level may be none of the listed ones: cut the box
    if lost < 0.2 * room or lost == 0.0:
        cut = choose_cut(item)
        if cut >= 0:
            return 2 * n + cut
    return worst


@inner_kernel
def bulge_at_point(moves: Moves, k: int) -> float:
    """The sum of cell k's bulges at the item's point."""
    for i in range(moves.amplitudes.size):
        moves.item.term[BULGE_FROM, i] = moves.bulge[k, i]
    return mixture(moves.item, BULGE_FROM, POINT)
