"""All pairs (x, x') of a model that may be a confident misclassification, as the kernels see them (METHOD J1).

A pair is its midpoint y and its move d = x' - x. The arrays are few and wide, with named rows, because numba
compiles in proportion to their number; all work space is allocated once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel, kernel
from daskab.bound.item import between_centres, n_directions
from daskab.bound.reach import Reach
from daskab.bound.rounding import EPS
from daskab.joint.attacks import Attacks

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rows of Pairs.term, a number a centre.
(
    AMPLITUDE,  # a_i
    ARMS,  # never below sum_j W_j (|c_ij - m_j| / 2 + W_j / 16), the most that |s_i| can be with all inputs moved
    VALUE,  # v_i = a_i exp(-|A_i|^2 / 2), A_i = c_i - z; 0 where that may underflow
    FAINT,  # then never below |a_i| exp(A_i . u - |A_i|^2 / 2) in the node, else 0
    SWING,  # never below |A_i . u| in the node
    REACH,  # never below sum_j |A_ij u_j| in the box
    S_LOW,  # range of s_i = d . (c_i - y) / 2 in the node
    S_HIGH,
    S,  # where the lines touch
    SLOPE,  # b_i, of the term's majorant, in s_i
    PUSH_UP,  # multipliers tried last when the range of s_i was narrowed from above, and from below
    PUSH_DOWN,
) = range(12)

# Rows of Pairs.axis, a number an input.
(
    WIDTH,  # W_j; the box is [0, W_j]
    SHARE,  # of W_j that a move may be
    REFERENCE,  # z, the node's reference point
    SPAN,  # the most that |u_j| can be, u = y - z
    LINEAR,  # e_j, of the majorant, in u_j
    PULL,  # what the slabs' multipliers leave of it
    ARM,  # E_j = sum_i b_i (c_ij - m_j) / 2
    BASE,  # the majorant's part in this input when it does not move
    GAIN,  # what moving it adds at most
    MOVE,  # d_j where that is attained
    MIDPOINT,  # y_j where that is attained
    REST,  # y_j where BASE is
) = range(12)

# Rows of Pairs.slab, a number a direction.
(
    SLAB_LOW,  # the node holds the pairs with slab_low <= q_k . y <= slab_high
    SLAB_HIGH,
    HALF,  # never below |q_k . u| in the node
    EFFORT,  # sum_j |q_kj| SPAN_j
    MULTIPLIER,  # of the slab
    ALONG,  # q_k . u at the maximiser
) = range(6)


class Pairs(NamedTuple):
    """The pairs of a scaled model with f(x') - c0 >= high and c0 - f(x) >= low."""

    high: float
    low: float
    most: int  #: changes that may be made
    centres: Array  #: (M, D)
    arm: Array  #: (M, D) c_ij - m_j, m the middle of the box
    cuts: Array  #: (K, D) directions a node is cut across
    term: Array  #: (12, M)
    axis: Array  #: (12, D)
    slab: Array  #: (6, K)
    along: Array  #: (K, M) q_k . A_i
    offset: Array  #: (M, D) A_i
    reach: Reach  #: which inputs are one change
    gain: Array  #: (C,) what each change adds at most
    order: Ints  #: (C,) changes, those of most gain first


@inner_kernel
def most_of_s(arm: float, width: float) -> float:
    """The most an input can add to |s_i|: W (|c - m| / 2 + W / 16)."""
    return width * (0.5 * abs(arm) + width / 16.0)


@kernel
def pairs_of(attacks: Attacks) -> Pairs:
    """Set up the pairs that may be one of the attacks, each by both thresholds."""
    centres, width, reach = attacks.centres, attacks.width, attacks.reach
    m, d = centres.shape
    k = n_directions(m, d)
    pairs = Pairs(
        attacks.high,
        attacks.low,
        attacks.most,
        centres,
        np.empty((m, d)),
        np.zeros((k, d)),
        np.zeros((12, m)),
        np.zeros((12, d)),
        np.zeros((6, k)),
        np.zeros((k, m)),
        np.empty((m, d)),
        reach,
        np.empty(reach.begin.size - 1),
        np.arange(reach.begin.size - 1),
    )
    if k == d:
        for j in range(d):
            pairs.cuts[j, j] = 1.0
    else:
        between_centres(centres, pairs.cuts)
    for j in range(d):
        pairs.axis[WIDTH, j] = width[j]
        pairs.axis[SHARE, j] = min(reach.limit[j] / width[j], 1.0) if width[j] > 0.0 else 0.0
    for i in range(m):
        pairs.term[AMPLITUDE, i] = attacks.amplitudes[i]
        for j in range(d):
            pairs.arm[i, j] = centres[i, j] - 0.5 * width[j]
            pairs.term[ARMS, i] += most_of_s(pairs.arm[i, j], width[j])
        pairs.term[ARMS, i] *= 1.0 + (d + 8.0) * EPS
    return pairs
