"""Examine a node: lower its bound if the cheap bounds do, try to prove it below a level, choose its split."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inlined_kernel, inner_kernel
from daskab._elementary import exp
from daskab.bound.cancelling import bend, cancels
from daskab.bound.climb import climb, into_box, mixture
from daskab.bound.contributions import bump
from daskab.bound.item import (
    ALONG,
    AMPLITUDE,
    BEST,
    BULGE_FROM,
    BULGE_TO,
    HIGH,
    LOW,
    NEAR,
    POINT,
    SLAB_HIGH,
    SLAB_LOW,
    TRIAL,
    WEIGHT,
    Item,
    n_cuts,
)
from daskab.bound.nodes import (
    BOUND,
    FIRST,
    FROM_HIGH,
    FROM_LOW,
    SPLIT,
    SPLIT_BOTH,
    SPLIT_CUT,
    SPLIT_FROM,
    SPLIT_TO,
    STUCK,
    TO_HIGH,
    TO_LOW,
    corner,
    corner_weights,
    fill_bulges,
    interval_weights,
    is_inside,
    load_box,
    n_corners,
    plain_corner_weights,
    trim,
)
from daskab.bound.projection import projected_bound
from daskab.bound.rounding import EPS
from daskab.bound.shells import below_level
from daskab.bound.transverse import cheap_bound, fill_reach, sign_bound

Array = NDArray[np.float64]

CLIMB_STEPS = 12
LADDER = 6
"""Levels tried, by bisection, for a node that nothing can split any further."""


@inlined_kernel
def examine(node: Array, goal: float, item: Item) -> bool:
    """Bound a node, starting from the bound it has; True when it is at most ``goal``.

    Otherwise its split is chosen, and its bound is the least that was proved.
    """
    if node[BOUND] <= goal:
        return True
    if not trim(node, item):
        node[BOUND] = 0.0
        return True
    load_box(node, FIRST + item.centres.shape[1], item)
    fill_reach(item)
    interval_weights(node, item)
    bound = cheap_bound(item, goal)
    # A bound that is not a number must not win a comparison: what was proved before holds.
    if bound < node[BOUND]:
        node[BOUND] = bound
        if bound <= goal:
            return True
    fill_bulges(node, item)
    if corners_below(node, goal, item):
        node[BOUND] = goal
        return True
    node[SPLIT] = choose_split(node, goal, item)
    below = goal
    for _ in range(LADDER if node[SPLIT] == STUCK else 1):
        middle = math.sqrt(below) * math.sqrt(node[BOUND])
        if not (below < middle and middle < node[BOUND]):
            break
        if corners_below(node, middle, item):
            node[BOUND] = middle
        else:
            below = middle
    return False


@inner_kernel
def corners_below(node: Array, level: float, item: Item) -> bool:
    """Whether every corner of the node is proved at most ``level``; the node's point moves to the best one met."""
    d = item.centres.shape[1]
    inside = is_inside(node)
    bulges_from, bulges_to = bulges_together(node, item)
    if inside and not bulges_from + bulges_to <= level:
        # The corners where nothing moves have nothing but the bulges.
        for i in range(item.term.shape[1]):
            item.term[WEIGHT, i] = item.term[BULGE_FROM, i] + item.term[BULGE_TO, i]
        if not sign_bound(item) <= level:
            return False
    highest = -np.inf
    for k in range(n_corners(node, item)):
        corner_weights(node, k, item)
        if cheap_bound(item, level) <= level:
            continue
        for j in range(d):
            item.axis[POINT, j] = node[FIRST + j]
        start_climb(item)
        value = climb(item, CLIMB_STEPS)
        start, end = corner(node, k, item)
        note_path(start, end, item)
        if value > highest:
            highest = value
            for j in range(d):
                node[FIRST + j] = item.axis[POINT, j]
        if not (value < level and proved_below(item, level)):
            if not bulges_from + bulges_to < level:
                return False
            left = level - (bulges_from + bulges_to) - plain_corner_weights(node, k, item)
            if not (left > 0.0 and projected_bound(item, left) <= left):
                return False
    return True


@inner_kernel
def bulges_together(node: Array, item: Item) -> tuple[float, float]:
    """Bulges of the whole sum over the node's two cells (METHOD 3.6); inf where there are many centres."""
    if item.cuts.shape[0] == 0:
        return np.inf, np.inf
    most = bend(item) / 8.0 * (1.0 + 64.0 * EPS)
    start = node[FROM_HIGH] - node[FROM_LOW]
    end = node[TO_HIGH] - node[TO_LOW]
    return most * start * start, most * end * end


@inner_kernel
def proved_below(item: Item, level: float) -> bool:
    """Whether the sum is proved at most ``level`` in the node's box, by what needs a good point to start from."""
    return bool(projected_bound(item, level) <= level or below_level(item, level))


@inner_kernel
def start_climb(item: Item) -> None:
    """Move the item's point to the quadratic's maximiser or to the strongest centre if the sum is larger there."""
    m, d = item.centres.shape
    into_box(item, POINT)
    highest = mixture(item, WEIGHT, POINT)
    strongest = 0
    most = -np.inf
    for i in range(m):
        most_of_term = item.term[WEIGHT, i] * exp(-item.term[NEAR, i])
        if most_of_term > most:
            most = most_of_term
            strongest = i
    for j in range(d):
        item.axis[TRIAL, j] = item.centres[strongest, j]
    into_box(item, TRIAL)
    into_box(item, BEST)
    for row in (TRIAL, BEST):
        value = mixture(item, WEIGHT, row)
        if value > highest:
            highest = value
            for j in range(d):
                item.axis[POINT, j] = item.axis[row, j]


@inner_kernel
def note_path(start: float, end: float, item: Item) -> None:
    """Keep the path at the item's point if it changes the latent by more than any met before."""
    total = 0.0
    d = item.centres.shape[1]
    for i in range(item.term.shape[1]):
        t = 0.0
        for j in range(d):
            step = item.axis[POINT, j] - item.centres[i, j]
            t += step * step
        rise = bump(end, item.term[ALONG, i]) - bump(start, item.term[ALONG, i])
        total += item.term[AMPLITUDE, i] * rise * exp(-0.5 * t)
    if total > item.found[0]:
        item.found[0] = total
        # A path downwards starts at its upper end.
        item.found[1] = start if item.direction > 0 else end
        item.found[2] = end if item.direction > 0 else start
        for j in range(d):
            item.found[3 + j] = item.axis[POINT, j]


@inlined_kernel
def choose_split(node: Array, level: float, item: Item) -> int:
    """What keeps the node open: a cell, whose bulges cost too much, or the box of the other inputs."""
    for j in range(item.centres.shape[1]):
        item.axis[POINT, j] = node[FIRST + j]
    corner_weights(node, 0, item)
    if n_corners(node, item) == 5:
        # Two corners in the place of one: what is open is about the higher.
        first = mixture(item, WEIGHT, POINT)
        corner_weights(node, 4, item)
        if mixture(item, WEIGHT, POINT) < first:
            corner_weights(node, 0, item)
    lost_from = mixture(item, BULGE_FROM, POINT)
    lost_to = mixture(item, BULGE_TO, POINT)
    room = level - (mixture(item, WEIGHT, POINT) - lost_from - lost_to)
    bulges_from, bulges_to = bulges_together(node, item)
    lost_from = min(lost_from, bulges_from)
    lost_to = min(lost_to, bulges_to)
    lost = lost_from + lost_to
    if item.values.size > 0:
        room = abs(room)  # where others are listed a point above the level may be none of theirs: cut their box
    if lost < 0.2 * room or lost == 0.0:
        cut = choose_cut(item)
        if cut >= 0:
            return SPLIT_CUT + cut
        if lost < 0.02 * room or lost == 0.0:
            return STUCK
    if is_inside(node):
        return SPLIT_BOTH
    return SPLIT_FROM if lost_from >= lost_to else SPLIT_TO


@inner_kernel
def choose_cut(item: Item) -> int:
    """The cut along which the terms vary most over the node's box: range^2 sum_i |w_i| kappa_i (A_i . q)^2."""
    m, d = item.centres.shape
    best = -1
    most = 0.0
    if cancels(item):
        for k in range(item.cuts.shape[0]):
            span = item.slab[SLAB_HIGH, k] - item.slab[SLAB_LOW, k]
            if span > most:
                most = span
                best = k
        return best
    for k in range(n_cuts(m, d)):
        along_axis = item.cuts.shape[0] == 0
        span = (
            item.axis[HIGH, k] - item.axis[LOW, k] if along_axis else item.slab[SLAB_HIGH, k] - item.slab[SLAB_LOW, k]
        )
        total = 0.0
        for i in range(m):
            along = 0.0
            if along_axis:
                along = item.centres[i, k] - item.axis[POINT, k]
            else:
                for j in range(d):
                    along += item.cuts[k, j] * (item.centres[i, j] - item.axis[POINT, j])
            total += abs(item.term[WEIGHT, i]) * exp(-item.term[NEAR, i]) * along * along
        if span * span * total > most:
            most = span * span * total
            best = k
    return best
