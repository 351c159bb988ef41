"""The moves of a set of inputs as a mixture over the other inputs, exact from corner to corner (METHOD J7)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel, kernel
from daskab._elementary import exp
from daskab.bound.contributions import bump, weight_error
from daskab.bound.item import POINT, WEIGHT, Item, fill_others, item_space
from daskab.bound.nodes import bulge, load_box, trim_box
from daskab.bound.reach import Reach, hull_of
from daskab.bound.rounding import EPS
from daskab.joint.attacks import Attacks
from daskab.joint.sets.nodes import FIRST, box_at, cells_at

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class Moves(NamedTuple):
    """The moves of n inputs of a scaled model; the rows of two are of x and of x'."""

    centres: Array  #: (M, D)
    amplitudes: Array  #: (M,)
    width: Array  #: (D,)
    reach: Reach  #: what else the domain says
    high: float  #: an attack has f(x') - c0 >= high and c0 - f(x) >= low
    low: float
    n: int
    apart: bool  #: whether it is only that f(x') - f(x) >= high + low
    item: Item  #: the other inputs
    others: Ints  #: (D - n,) which they are
    along: Array  #: (n, M) centres along the inputs that move
    error: Array  #: (M,) of a term's computed weight, the amplitude in it
    bulge: Array  #: (2 n, M) how far a term may rise above its interpolation across a cell, without share
    ends: Array  #: (2 n, 2, M) a centre's bump at the lower and the upper end of a cell
    most: Array  #: (2 n, M) never below its bump over the cell
    raised: Array  #: (M,) the error and the bulges, of the share at hand
    corner: Ints  #: (2 n,) which end of a cell: LOWER, UPPER or EITHER
    order: Ints  #: (2 n,) cells, the one whose ends differ most first
    product: Array  #: (2, 2^n, M) factor of the inputs that move, in every corner
    latent: Array  #: (2, 2^n) f - c0 there, at the item's point


LOWER, UPPER, EITHER = range(3)


@kernel
def moves_of(attacks: Attacks) -> Moves:
    """Allocate for the sets of as many inputs as the attacks may change."""
    m, d = attacks.centres.shape
    n, reach = attacks.most, attacks.reach
    return Moves(
        attacks.centres,
        attacks.amplitudes,
        attacks.width,
        reach,
        attacks.high,
        attacks.low,
        n,
        attacks.apart,
        item_space(m, d - n, 1, 0.0, np.inf, reach.values, reach.values.size),
        np.empty(d - n, dtype=np.int64),
        np.empty((n, m)),
        np.empty(m),
        np.empty((2 * n, m)),
        np.empty((2 * n, 2, m)),
        np.empty((2 * n, m)),
        np.empty(m),
        np.empty(2 * n, dtype=np.int64),
        np.empty(2 * n, dtype=np.int64),
        np.empty((2, 2**n, m)),
        np.empty((2, 2**n)),
    )


@inner_kernel
def choose_set(node: Array, moves: Moves) -> None:
    """Let the work space be about a node's set."""
    m, d = moves.centres.shape
    n = moves.n
    for i in range(m):
        moves.error[i] = 0.0
    at = 0
    for j in range(d):
        moved = -1
        for k in range(n):
            if int(node[FIRST + k]) == j:
                moved = k
        if moved < 0:
            moves.others[at] = j
            at += 1
            continue
        for i in range(m):
            moves.along[moved, i] = moves.centres[i, j]
            # Once for the corner, once for the move itself.
            moves.error[i] += 2.0 * weight_error(moves.amplitudes[i], moves.centres[i, j], moves.width[j])
    fill_others(moves.centres, moves.width, moves.reach, moves.others, moves.item)


@inner_kernel
def trim(node: Array, moves: Moves) -> bool:
    """Shrink a node to what of it is in the domain; False where nothing is (METHOD of bounds, 4)."""
    n, reach = moves.n, moves.reach
    if not trim_box(node, box_at(n, moves.others.size), moves.item):
        return False
    for k in range(n):
        j = int(node[FIRST + k])
        for side in range(2):
            low = cells_at(n) + side * n + k
            high = low + 2 * n
            node[low], node[high] = hull_of(node[low], node[high], reach.values, reach.first[j], reach.first[j + 1])
            if node[low] > node[high]:
                return False
        start, end = cells_at(n) + k, cells_at(n) + n + k
        apart = max(node[end] - node[start + 2 * n], node[start] - node[end + 2 * n])
        if apart > reach.limit[j]:
            return False
    return True


@inner_kernel
def load(node: Array, moves: Moves) -> None:
    """Let the work space be about a node of the set: its box, what its corners are worth, its bulges."""
    n = moves.n
    load_box(node, box_at(n, moves.others.size), moves.item)
    for side in range(2):
        low = cells_at(n) + side * n
        high = low + 2 * n
        for i in range(moves.amplitudes.size):
            for k in range(n):
                moves.ends[side * n + k, LOWER, i] = bump(node[low + k], moves.along[k, i])
                moves.ends[side * n + k, UPPER, i] = bump(node[high + k], moves.along[k, i])
                moves.most[side * n + k, i] = most_of_bump(moves.along[k, i], node[low + k], node[high + k])
            for corner in range(2**n):
                value = 1.0
                for k in range(n):
                    value *= moves.ends[side * n + k, (corner >> k) & 1, i]
                moves.product[side, corner, i] = value
            amplitude = moves.amplitudes[i] if side == 1 else -moves.amplitudes[i]
            for k in range(n):
                rise = bulge(amplitude, moves.along[k, i], node[low + k], node[high + k])
                for r in range(n):
                    if r != k:
                        rise *= moves.most[side * n + r, i]
                moves.bulge[side * n + k, i] = rise * (1.0 + 16.0 * n * EPS)


@inner_kernel
def most_of_bump(centre: float, low: float, high: float) -> float:
    """Never below the bump of a centre over a cell."""
    nearest = min(max(centre, low), high)
    return min(bump(nearest, centre) + EPS * (16.0 + 2.0 * (high + abs(centre))), 1.0)


@inner_kernel
def latent_in_corners(moves: Moves) -> None:
    """f - c0 in every corner, at the item's point: what the search is steered by."""
    item = moves.item
    m, d = item.centres.shape
    corners = moves.latent.shape[1]
    for side in range(2):
        for corner in range(corners):
            moves.latent[side, corner] = 0.0
    for i in range(m):
        t = 0.0
        for j in range(d):
            step = item.axis[POINT, j] - item.centres[i, j]
            t += step * step
        value = moves.amplitudes[i] * exp(-0.5 * t)
        for side in range(2):
            for corner in range(corners):
                moves.latent[side, corner] += value * moves.product[side, corner, i]


@inner_kernel
def best_corners(moves: Moves) -> tuple[int, int]:
    """The corner of x where f is lowest, and that of x' where it is highest."""
    start = 0
    end = 0
    for corner in range(1, moves.latent.shape[1]):
        if moves.latent[0, corner] < moves.latent[0, start]:
            start = corner
        if moves.latent[1, corner] > moves.latent[1, end]:
            end = corner
    return start, end


@inner_kernel
def choose_corners(moves: Moves, start: int, end: int) -> None:
    """Let the corner be one of x and one of x', by their numbers."""
    n = moves.n
    for k in range(n):
        moves.corner[k] = (start >> k) & 1
        moves.corner[n + k] = (end >> k) & 1


@inner_kernel
def raise_weights(moves: Moves, share: float) -> None:
    """Fill what the weights of every corner are raised by: the error and the bulges."""
    n = moves.n
    for i in range(moves.amplitudes.size):
        moves.raised[i] = moves.error[i]
        for k in range(n):
            moves.raised[i] += (1.0 - share) * moves.bulge[k, i] + share * moves.bulge[n + k, i]


@inner_kernel
def corner_weights(moves: Moves, share: float) -> None:
    """Weights of share (f(x') - c0) - (1 - share) (f(x) - c0) in the corner, raised; after `raise_weights`.

    Where the corner leaves an end open every term takes the one that is worse: never below the weight at either.
    """
    n = moves.n
    for i in range(moves.amplitudes.size):
        amplitude = moves.amplitudes[i]
        start = 1.0
        end = 1.0
        for k in range(n):
            start *= end_of(moves, k, i, amplitude < 0.0)
            end *= end_of(moves, n + k, i, amplitude > 0.0)
        moves.item.term[WEIGHT, i] = amplitude * (share * end - (1.0 - share) * start) + moves.raised[i]


@inner_kernel
def end_of(moves: Moves, cell: int, i: int, larger: bool) -> float:
    """A centre's bump at the corner's end of a cell; the larger or the smaller one where it is open."""
    at = moves.corner[cell]
    if at != EITHER:
        return float(moves.ends[cell, at, i])
    lower, upper = moves.ends[cell, LOWER, i], moves.ends[cell, UPPER, i]
    return float(max(lower, upper) if larger else min(lower, upper))


@inner_kernel
def sort_cells(moves: Moves) -> None:
    """Order the cells by how much the ends differ, sum_i |a_i| |difference|: a dozen at most, by insertion."""
    for cell in range(2 * moves.n):
        spread = spread_of(moves, cell)
        at = cell
        while at > 0 and spread_of(moves, moves.order[at - 1]) < spread:
            moves.order[at] = moves.order[at - 1]
            at -= 1
        moves.order[at] = cell


@inner_kernel
def spread_of(moves: Moves, cell: int) -> float:
    """How much the ends of a cell differ."""
    total = 0.0
    for i in range(moves.amplitudes.size):
        total += abs(moves.amplitudes[i] * (moves.ends[cell, UPPER, i] - moves.ends[cell, LOWER, i]))
    return total
