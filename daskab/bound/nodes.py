"""Nodes of the search: where a path starts and ends, and which part of the other inputs' box it runs in (METHOD 4).

A node is a row of floats. Two cells of the changed input: a path starts in the lower one and ends in the upper
one; they are equal (a path inside one cell) or the lower lies wholly below the upper. Then its bound, how to
split it, the logical unit it belongs to, a good point of the other inputs, and the part of their box it is about:
a range for every cut, a cut being either one of the other inputs or a direction between centres. Splitting a
cell or a range at a point leaves no gap, so the children of a node cover it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel
from daskab._elementary import exp
from daskab.bound import item as rows
from daskab.bound.contributions import bump, inside_increase, largest, weight_error
from daskab.bound.item import ALONG, AMPLITUDE, BULGE_FROM, BULGE_TO, WEIGHT, Item, n_cuts
from daskab.bound.reach import hull_of
from daskab.bound.rounding import EPS

Array = NDArray[np.float64]

FROM_LOW, FROM_HIGH, TO_LOW, TO_HIGH, BOUND, SPLIT, UNIT, FIRST = range(8)

# Values of SPLIT; SPLIT_CUT + k halves the range of cut k.
UNEXAMINED, STUCK, SPLIT_FROM, SPLIT_TO, SPLIT_BOTH, SPLIT_CUT = -2, -1, 0, 1, 2, 3


@inner_kernel
def node_width(m: int, d: int) -> int:
    """Columns of a node for M centres and D' other inputs."""
    return FIRST + d + 2 * n_cuts(m, d)


@inner_kernel
def copy_row(source: Array, target: Array) -> None:
    """Copy a row of floats; as a loop, which compiles in a fraction of the time of an array assignment."""
    for k in range(source.size):
        target[k] = source[k]


@inner_kernel
def set_cells(node: Array, from_low: float, from_high: float, to_low: float, to_high: float) -> None:
    """Write a node's cells."""
    node[FROM_LOW] = from_low
    node[FROM_HIGH] = from_high
    node[TO_LOW] = to_low
    node[TO_HIGH] = to_high


@inner_kernel
def is_inside(node: Array) -> bool:
    """Whether the path stays inside one cell."""
    return bool(node[FROM_LOW] == node[TO_LOW] and node[FROM_HIGH] == node[TO_HIGH])


@inner_kernel
def set_whole_box(node: Array, first: int, item: Item) -> None:
    """Let a node be about all of the other inputs' box: a range for every cut, from column ``first`` on."""
    m, d = item.centres.shape
    cuts = n_cuts(m, d)
    for k in range(cuts):
        along_axis = item.cuts.shape[0] == 0
        node[first + k] = 0.0 if along_axis else item.slab[rows.WHOLE_LOW, k]
        node[first + cuts + k] = item.axis[rows.WIDTH, k] if along_axis else item.slab[rows.WHOLE_HIGH, k]


@inner_kernel
def trim(node: Array, item: Item) -> bool:
    """Shrink a node to what of it is in the domain; False where nothing is (METHOD 4, Trimming).

    Of ends that are no numbers nothing is said: a node is empty only if one certainly lies above the other.
    """
    # Of a path inside one cell this leaves both ends as they are, so it stays one.
    node[FROM_LOW] = max(node[FROM_LOW], node[TO_LOW] - item.limit)
    node[TO_HIGH] = min(node[TO_HIGH], node[FROM_HIGH] + item.limit)
    own = item.own
    node[FROM_LOW], node[FROM_HIGH] = hull_of(node[FROM_LOW], node[FROM_HIGH], own, 0, own.size)
    node[TO_LOW], node[TO_HIGH] = hull_of(node[TO_LOW], node[TO_HIGH], own, 0, own.size)
    whole = trim_box(node, FIRST + item.centres.shape[1], item)
    return bool(whole and not (node[FROM_LOW] > node[FROM_HIGH] or node[TO_LOW] > node[TO_HIGH]))


@inner_kernel
def trim_box(node: Array, first: int, item: Item) -> bool:
    """Shrink the ranges of other inputs that have listed values to those; False where one has none in its range."""
    if item.cuts.shape[0] > 0:
        return True  # slabs hold values of all inputs together
    m, d = item.centres.shape
    cuts = n_cuts(m, d)
    for k in range(cuts):
        low, high = hull_of(node[first + k], node[first + cuts + k], item.values, item.first[k], item.first[k + 1])
        if low > high:
            return False
        node[first + k] = low
        node[first + cuts + k] = high
    return True


@inner_kernel
def load_box(node: Array, first: int, item: Item) -> None:
    """Let the item's box and slabs be the node's, whose ranges begin at column ``first``."""
    m, d = item.centres.shape
    cuts = n_cuts(m, d)
    for k in range(cuts):
        if item.cuts.shape[0] == 0:
            item.axis[rows.LOW, k] = node[first + k]
            item.axis[rows.HIGH, k] = node[first + cuts + k]
        else:
            item.slab[rows.SLAB_LOW, k] = node[first + k]
            item.slab[rows.SLAB_HIGH, k] = node[first + cuts + k]


@inner_kernel
def halve(node: Array, at_low: int, at_high: int, children: Array) -> int:
    """Write the two halves of a node's range as its children; 0 when floating point leaves no room between its ends."""
    low, high = node[at_low], node[at_high]
    middle = 0.5 * (low + high)
    if not low < middle < high:
        return 0
    copy_row(node, children[0])
    copy_row(node, children[1])
    children[0, at_high] = middle
    children[1, at_low] = middle
    return 2


@inner_kernel
def split_node(node: Array, item: Item, children: Array) -> int:
    """Write the children of a node, up to three; 0 when floating point leaves no room between its ends."""
    how = int(node[SPLIT])
    if how < 0:
        return 0
    if how == SPLIT_FROM:
        return halve(node, FROM_LOW, FROM_HIGH, children)
    if how == SPLIT_TO:
        return halve(node, TO_LOW, TO_HIGH, children)
    if how >= SPLIT_CUT:
        m, d = item.centres.shape
        at_low = FIRST + d + how - SPLIT_CUT
        return halve(node, at_low, at_low + n_cuts(m, d), children)
    low, high = node[FROM_LOW], node[FROM_HIGH]
    middle = 0.5 * (low + high)
    if not low < middle < high:
        return 0
    for k in range(3):
        copy_row(node, children[k])
    set_cells(children[0], low, middle, low, middle)
    set_cells(children[1], low, middle, middle, high)
    set_cells(children[2], middle, high, middle, high)
    return 3


@inner_kernel
def interval_weights(node: Array, item: Item) -> None:
    """Weights, each never below the largest increase of its own term from one cell to the other (METHOD 2)."""
    inside = is_inside(node)
    for i in range(item.term.shape[1]):
        a = item.term[AMPLITUDE, i]
        c = item.term[ALONG, i]
        if inside:
            increase = inside_increase(a, c, node[FROM_LOW], node[FROM_HIGH])
        else:
            increase = largest(a, c, node[TO_LOW], node[TO_HIGH]) + largest(-a, c, node[FROM_LOW], node[FROM_HIGH])
        item.term[WEIGHT, i] = increase + weight_error(a, c, item.width)


@inner_kernel
def bulge(amplitude: float, centre: float, low: float, high: float) -> float:
    """How far amplitude * bump may rise above its chord over a cell (METHOD, Lemma 5).

    The second derivative of the bump at distance r from its centre is (r^2 - 1) exp(-r^2/2): from -1 at the centre
    up to 2 exp(-3/2) at r = sqrt(3). A function with second derivative at least -b lies at most b h^2 / 8 above
    its chord.
    """
    near = max(max(low - centre, centre - high), 0.0)
    far = max(abs(centre - low), abs(high - centre))
    if amplitude >= 0.0:
        bend = (1.0 - near * near) * exp(-0.5 * near * near)
    elif near <= 1.7320509 and far >= 1.7320508:
        bend = 0.4462604
    else:
        bend = max((near * near - 1.0) * exp(-0.5 * near * near), (far * far - 1.0) * exp(-0.5 * far * far))
    step = high - low
    return abs(amplitude) * (max(bend, 0.0) + 64.0 * EPS) * step * step * 0.125 * (1.0 + 16.0 * EPS)


@inner_kernel
def fill_bulges(node: Array, item: Item) -> None:
    """Bulges over the node's two cells: of the start's, whose term counts negatively, and of the end's."""
    for i in range(item.term.shape[1]):
        a = item.term[AMPLITUDE, i]
        c = item.term[ALONG, i]
        item.term[BULGE_FROM, i] = bulge(-a, c, node[FROM_LOW], node[FROM_HIGH])
        item.term[BULGE_TO, i] = bulge(a, c, node[TO_LOW], node[TO_HIGH])


@inner_kernel
def n_corners(node: Array, item: Item) -> int:
    """Corners of a node at which its path may change the latent most (METHOD 4, Theorem 2)."""
    if is_inside(node):
        return 1
    return 5 if is_cut(node, item) else 4


@inner_kernel
def is_cut(node: Array, item: Item) -> bool:
    """Whether the longest path of a node is longer than the input may move; not told where values are listed."""
    return bool(node[TO_HIGH] - node[FROM_LOW] > item.limit and item.own.size == 0)


@inner_kernel
def corner(node: Array, k: int, item: Item) -> tuple[float, float]:
    """Start and end of the k-th corner of a node's pair of cells."""
    start, end = node[FROM_LOW], node[TO_HIGH]
    if k == 0 and is_cut(node, item):
        end = max(start + item.limit, node[TO_LOW])
    elif k == 4:
        start = min(end - item.limit, node[FROM_HIGH])
    if k == 1 or k == 3:
        end = node[TO_LOW]
    if k == 2 or k == 3:
        start = node[FROM_HIGH]
    return start, end


@inner_kernel
def along_chord(t: float, low: float, high: float, centre: float) -> float:
    """The bump at an end of a cell; in between, its chord."""
    if t <= low:
        return bump(low, centre)
    if t >= high:
        return bump(high, centre)
    share = (t - low) / (high - low)
    return (1.0 - share) * bump(low, centre) + share * bump(high, centre)


@inner_kernel
def plain_corner_weights(node: Array, k: int, item: Item) -> float:
    """Weights of the path of the k-th corner without bulges; what their errors may add to the sum, at most."""
    start, end = corner(node, k, item)
    error = 0.0
    for i in range(item.term.shape[1]):
        a = item.term[AMPLITUDE, i]
        c = item.term[ALONG, i]
        error += 2.0 * weight_error(a, c, item.width)
        arrived = along_chord(end, node[TO_LOW], node[TO_HIGH], c)
        left = along_chord(start, node[FROM_LOW], node[FROM_HIGH], c)
        item.term[WEIGHT, i] = a * (arrived - left)
    return error * (1.0 + 64.0 * EPS)


@inner_kernel
def corner_weights(node: Array, k: int, item: Item) -> None:
    """Weights of the path of the k-th corner exactly, raised by the cells' bulges (METHOD 4, Theorem 2)."""
    start, end = corner(node, k, item)
    for i in range(item.term.shape[1]):
        a = item.term[AMPLITUDE, i]
        c = item.term[ALONG, i]
        raised = item.term[BULGE_FROM, i] + item.term[BULGE_TO, i] + 2.0 * weight_error(a, c, item.width)
        arrived = along_chord(end, node[TO_LOW], node[TO_HIGH], c)
        left = along_chord(start, node[FROM_LOW], node[FROM_HIGH], c)
        item.term[WEIGHT, i] = a * (arrived - left) + raised
