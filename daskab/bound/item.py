"""One input of a model, as the kernels see it: the other inputs, and all work space, allocated once (METHOD 3).

The arrays are few and wide, with named rows, because numba compiles in proportion to their number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel, kernel
from daskab.bound.reach import Reach

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_AXES = 40
"""With more other inputs than this their box is not cut across single inputs: one cut would tell too little."""

MOST_DIRECTIONS = 8
"""With more directions between the centres than this the box is not cut across them."""

LARGEST_MATRIX = 512
"""Beyond this size the curvature of the shell test is bounded without a matrix."""

# Rows of Item.term, a number a centre.
(
    ALONG,  # coordinate along the input that changes
    AMPLITUDE,  # direction * weight * variance
    SPREAD,  # H_i = sum_j (width_j + |c_ij|)^2 / 2, the size rounding errors are measured by
    WEIGHT,  # w_i of the bound at hand
    BULGE_FROM,  # how far the term may rise above its chord over the node's cells
    BULGE_TO,
    NEAR,  # never above t_i in the node's box
    FAR,  # never below
    NORM,  # sum_j c_ij^2 / 2
    TANGENT,  # where the quadratic's tangent touches
    EXPONENT,  # |A_i|^2 / 2, A_i = c_i - z0
    LENGTH,  # |A_i|
    REACH_LOW,  # never above s_i = A_i . u in the node's box
    REACH_HIGH,  # never below
    VALUE,  # v_i = w_i exp(-|A_i|^2 / 2)
    BEND,  # second-order coefficient of a term's majorant in a shell
    OFF_PLANE,  # error of t_i when distances are split by the cut directions (METHOD, Lemma 9)
    MOVED,  # work space: weights that were moved onto each other's centres
) = range(18)

# Rows of Item.axis, a number an other input.
(
    WIDTH,  # the whole box is [0, width]
    LOW,  # the node's box
    HIGH,
    POINT,  # z0, a good point of the box
    BEST,  # a maximiser of the last quadratic
    U_LOW,  # the node's box as seen from z0
    U_HIGH,
    GRADIENT,  # sum_i v_i A_i
    LINEAR,  # of the majorant in a shell
    TRIAL,  # work space
    SLOPE,
    SLOPE_TRIAL,
) = range(12)

# Rows of Item.slab, a number a direction.
(
    SLAB_LOW,  # the node's box lies in slab_low <= q_k . z <= slab_high
    SLAB_HIGH,
    WHOLE_LOW,  # the range over the whole box
    WHOLE_HIGH,
    P_LOW,  # the node's slab as seen from z0
    P_HIGH,
    MULTIPLIER,  # work space
    PLANE_LOW,  # the node's slab as seen from the first centre
    PLANE_HIGH,
    PLANE_LINEAR,  # work space
    PLANE_POINT,
) = range(11)


class Item(NamedTuple):
    """One input and direction of a scaled model; D' = D - 1 other inputs."""

    direction: int  #: +1 or -1
    width: float  #: of the input that changes
    centres: Array  #: (M, D') over the other inputs
    term: Array  #: (18, M)
    axis: Array  #: (12, D')
    cuts: Array  #: (K, D') orthonormal directions across which the box may be cut; none where axes are
    slab: Array  #: (11, K)
    plane: Array  #: (K, M) the centres along the cut directions, from the first centre
    apart: Array  #: (M, M) distances of the centres, rounded up: of the other inputs above the diagonal, of all below
    offset: Array  #: (M, D') A_i
    matrix: Array  #: (3, n, n) work space, n = min(M, D') up to LARGEST_MATRIX
    vector: Array  #: (2, n) work space
    found: Array  #: (D' + 3,) best path met: its change, start, end, other inputs
    limit: float  #: most the changed input may move
    own: Array  #: its listed values; none: any
    first: Ints  #: (D' + 1,) where those of each other input begin
    values: Array  #: (V,) listed values of the other inputs


@inner_kernel
def cuts_axes(m: int, d: int) -> bool:
    """Whether nodes cut the box of D' inputs across single inputs, rather than across directions between centres."""
    return d <= MOST_AXES and d < m


@inner_kernel
def n_directions(m: int, d: int) -> int:
    """Directions between M centres in D inputs that a box may be cut across; 0 where there would be too many."""
    k = min(m - 1, d)
    return k if k <= MOST_DIRECTIONS else 0


@inner_kernel
def n_cuts(m: int, d: int) -> int:
    """Directions across which a node's box may be cut, for M centres and D' other inputs."""
    return d if cuts_axes(m, d) else n_directions(m, d)


@kernel
def item_space(m: int, d: int, direction: int, width: float, limit: float, own: Array, listed: int) -> Item:
    """Allocate for M centres and D' other inputs with ``listed`` values at most."""
    n = min(m, d) if min(m, d) <= LARGEST_MATRIX else 0
    k = 0 if cuts_axes(m, d) else n_cuts(m, d)
    return Item(
        direction,
        width,
        np.empty((m, d)),
        np.zeros((18, m)),
        np.zeros((12, d)),
        np.zeros((k, d)),
        np.zeros((11, k)),
        np.zeros((k, m)),
        np.zeros((m, m) if k > 0 else (0, 0)),
        np.empty((m, d)),
        np.empty((3, n, n)),
        np.empty((2, n)),
        np.zeros(d + 3),
        limit,
        own,
        np.zeros(d + 1, dtype=np.int64),
        np.empty(listed),
    )


@kernel
def item_of(centres: Array, amplitudes: Array, width: Array, reach: Reach, changed: int, direction: int) -> Item:
    """Set up one input of a scaled model (M, D), (M,), (D,); the node's box is the whole one to begin with."""
    m, dimensions = centres.shape
    own = reach.values[reach.first[changed] : reach.first[changed + 1]]
    item = item_space(m, dimensions - 1, direction, width[changed], reach.limit[changed], own, reach.values.size)
    others = np.empty(dimensions - 1, dtype=np.int64)
    for at in range(others.size):
        others[at] = at if at < changed else at + 1
    fill_others(centres, width, reach, others, item)
    for i in range(m):
        item.term[ALONG, i] = centres[i, changed]
        item.term[AMPLITUDE, i] = direction * amplitudes[i]
    for i in range(item.apart.shape[0]):
        for j in range(i):
            own = item.term[ALONG, i] - item.term[ALONG, j]
            item.apart[i, j] = math.sqrt(item.apart[j, i] * item.apart[j, i] + own * own) * (1.0 + 8.0 * 2.0**-52)
    return item


@inner_kernel
def fill_others(centres: Array, width: Array, reach: Reach, others: Ints, item: Item) -> None:
    """Copy in the inputs that do not change, ``others`` (D',), and lay the cut directions through the centres."""
    for i in range(centres.shape[0]):
        item.term[SPREAD, i] = 0.0
        item.term[NORM, i] = 0.0
    for at in range(others.size):
        j = others[at]
        item.axis[WIDTH, at] = width[j]
        item.axis[LOW, at] = 0.0
        item.axis[HIGH, at] = width[j]
        for i in range(centres.shape[0]):
            item.centres[i, at] = centres[i, j]
            size = width[j] + abs(centres[i, j])
            item.term[SPREAD, i] += 0.5 * size * size
            item.term[NORM, i] += 0.5 * centres[i, j] * centres[i, j]
        item.first[at + 1] = item.first[at]
        for k in range(reach.first[j], reach.first[j + 1]):
            item.values[item.first[at + 1]] = reach.values[k]
            item.first[at + 1] += 1
        if item.first[at] < item.first[at + 1]:
            item.axis[LOW, at] = item.values[item.first[at]]
            item.axis[HIGH, at] = item.values[item.first[at + 1] - 1]
    lay_directions(item)
    place_centres(item)
    place_apart(item)


@inner_kernel
def between_centres(centres: Array, directions: Array) -> None:
    """Fill orthonormal directions (K, D) spanning the centres' differences, by Gram-Schmidt done twice.

    Directions the differences do not fill stay zero.
    """
    m, d = centres.shape
    count = directions.shape[0]
    kept = 0
    for k in range(count):
        for j in range(d):
            directions[k, j] = 0.0
    for i in range(1, m):
        if kept == count:
            break
        before = 0.0
        for j in range(d):
            directions[kept, j] = centres[i, j] - centres[0, j]
            before += directions[kept, j] * directions[kept, j]
        for _ in range(2):
            for k in range(kept):
                along = 0.0
                for j in range(d):
                    along += directions[k, j] * directions[kept, j]
                for j in range(d):
                    directions[kept, j] -= along * directions[k, j]
        after = 0.0
        for j in range(d):
            after += directions[kept, j] * directions[kept, j]
        scale = 0.0
        if after > 1e-12 * before and after > 0.0:
            scale = 1.0 / math.sqrt(after)
            kept += 1
        row = kept - 1 if scale > 0.0 else kept
        for j in range(d):
            directions[row, j] *= scale


@inner_kernel
def range_along(direction: Array, width: Array) -> tuple[float, float]:
    """Range of q . z over the box [0, width], up to the rounding of D additions."""
    low = 0.0
    high = 0.0
    for j in range(width.size):
        reach = direction[j] * width[j]
        low += min(reach, 0.0)
        high += max(reach, 0.0)
    return low, high


@inner_kernel
def lay_directions(item: Item) -> None:
    """Directions between the centres, those of no length never cut across, and the box's ranges along them."""
    count = item.cuts.shape[0]
    between_centres(item.centres, item.cuts)
    for k in range(count):
        low, high = range_along(item.cuts[k], item.axis[WIDTH])
        item.slab[WHOLE_LOW, k] = low - 1e-12 * (high - low)
        item.slab[WHOLE_HIGH, k] = high + 1e-12 * (high - low)
        item.slab[SLAB_LOW, k] = item.slab[WHOLE_LOW, k]
        item.slab[SLAB_HIGH, k] = item.slab[WHOLE_HIGH, k]


@inner_kernel
def place_centres(item: Item) -> None:
    """Coordinates of the centres along the cut directions, and how far splitting distances by them can be wrong."""
    m, d = item.centres.shape
    count = item.cuts.shape[0]
    defect = 0.0  # how far the directions are from orthonormal
    for k in range(count):
        for r in range(k + 1):
            product = 0.0
            for j in range(d):
                product += item.cuts[k, j] * item.cuts[r, j]
            if r == k and product > 0.0:
                product -= 1.0
            defect += 2.0 * abs(product)
    for i in range(m):
        rest = 0.0
        for k in range(count):
            along = 0.0
            for j in range(d):
                along += item.cuts[k, j] * (item.centres[i, j] - item.centres[0, j])
            item.plane[k, i] = along
        for j in range(d):
            step = item.centres[i, j] - item.centres[0, j]
            for k in range(count):
                step -= item.plane[k, i] * item.cuts[k, j]
            rest += step * step
        rest = math.sqrt(rest)
        size = item.term[SPREAD, 0] + item.term[SPREAD, i]
        item.term[OFF_PLANE, i] = rest * (math.sqrt(2.0 * size) + rest) + (4.0 * defect + 1e-13) * size


@inner_kernel
def place_apart(item: Item) -> None:
    """Distances of the centres without the inputs that change, rounded up, and not below those in the plane."""
    d = item.centres.shape[1]
    for i in range(item.apart.shape[0]):
        for j in range(i):
            square = 0.0
            for k in range(d):
                step = item.centres[i, k] - item.centres[j, k]
                square += step * step
            in_plane = 0.0
            for k in range(item.plane.shape[0]):
                step = item.plane[k, i] - item.plane[k, j]
                in_plane += step * step
            item.apart[j, i] = math.sqrt(max(square, in_plane)) * (1.0 + (d + 8.0) * 2.0**-52)
