"""Examine a node: is there room for a confident misclassification in it, and by how few inputs? (METHOD J5)"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel
from daskab._elementary import exp
from daskab.bound.nodes import BOUND
from daskab.bound.rounding import EPS
from daskab.joint.attacks import required, shares
from daskab.joint.midpoint.gains import select_largest, sort_largest
from daskab.joint.midpoint.majorant import Parts, Weights, excess, fill_majorant, refer
from daskab.joint.midpoint.nodes import EXCLUDED, FIRST_PHI, LAM, PHI, SPLIT, STUCK, load, save
from daskab.joint.midpoint.pairs import (
    ALONG,
    ARMS,
    HALF,
    MIDPOINT,
    MOVE,
    MULTIPLIER,
    PUSH_DOWN,
    PUSH_UP,
    REFERENCE,
    REST,
    S_HIGH,
    S_LOW,
    SLOPE,
    SWING,
    VALUE,
    Pairs,
    S,
)

Array = NDArray[np.float64]

PASSES = 3
"""Times the ranges of s are narrowed and everything is tried again."""

STEPS = 9
STRIDE = 0.15
"""Steps to the best share between the two ends of a pair, and the first stride."""

LEADS = 3
"""Steps to the best multipliers of the slabs, after that."""

PROBES = 3
"""Multipliers tried to narrow a range."""


@inner_kernel
def examine(node: Array, pairs: Pairs) -> bool:
    """Whether no attack in the node changes ``most`` inputs or fewer. If not, EXCLUDED, BOUND and SPLIT are set."""
    load(node, pairs)
    refer(pairs)
    for i in range(pairs.term.shape[1]):
        pairs.term[PUSH_UP, i] = 1.0
        pairs.term[PUSH_DOWN, i] = 1.0
    least, most = shares(pairs.high, pairs.low)
    best = min(max(node[LAM], least), most)
    phi = node[PHI]
    for turn in range(PASSES):
        lowest = np.inf
        stride = STRIDE * (most - least)
        for step in range(STEPS + LEADS):
            # A search along lam with ever shorter strides, back and forth; then the slabs' multipliers for the best.
            lam = best
            if 0 < step < STEPS:
                lam = min(max(best + stride, least), most)
            total = attempt(pairs, lam, phi, step <= STEPS)[2]
            if total < 0.0:
                return True
            if total < lowest:
                lowest = total
                best = lam
                stride *= 1.5
            else:
                stride *= -0.5
            phi = follow(pairs)
        if not math.isfinite(lowest):
            break
        weights, parts, total, _ = attempt(pairs, best, phi, False)
        if total < 0.0:
            return True
        if turn == PASSES - 1:
            break
        narrowed = narrow(pairs, weights, parts, total)
        if narrowed >= 1.0:
            return True
        if narrowed < 0.1:
            break
    conclude(node, pairs, best, phi)
    return False


@inner_kernel
def weigh(pairs: Pairs, lam: float, phi: float) -> Weights:
    """The weights for a share and a place to touch exp, the curvature rounded down; where T is not proved positive
    it is NaN, and so is everything that follows: nothing is excluded."""
    mu = 1.0 - lam
    t = required(lam, pairs.high, pairs.low)
    curvature = t * exp(phi) * (1.0 - 16.0 * EPS) if t > 0.0 else np.nan
    return Weights(lam, mu, curvature, phi)


@inner_kernel
def attempt(pairs: Pairs, lam: float, phi: float, lead: bool) -> tuple[Weights, Parts, float, float]:
    """Bound the excess over the node for one share: its majorant, the most it can be, and that with nothing moved."""
    weights = weigh(pairs, lam, phi)
    parts = fill_majorant(pairs, weights, lead)
    base = excess(pairs, weights, parts, 0, 0.0)
    return weights, parts, base + select_largest(pairs, pairs.most), base


@inner_kernel
def follow(pairs: Pairs) -> float:
    """Move to the maximiser just found: rows S and ALONG; phi there is returned."""
    axis, term, slab, order = pairs.axis, pairs.term, pairs.slab, pairs.order
    k_all, d = pairs.cuts.shape
    n = min(pairs.most, order.size)
    begin, member = pairs.reach.begin, pairs.reach.member
    # The inputs that do not move have their midpoint wherever it is best.
    for at in range(n, order.size):
        for k in range(begin[order[at]], begin[order[at] + 1]):
            axis[MOVE, member[k]] = 0.0
            axis[MIDPOINT, member[k]] = axis[REST, member[k]]
    energy = 0.0
    for j in range(d):
        u = axis[MIDPOINT, j] - axis[REFERENCE, j]
        energy += 0.5 * u * u + 0.125 * axis[MOVE, j] * axis[MOVE, j]
    for k in range(k_all):
        along = 0.0
        for j in range(d):
            along += pairs.cuts[k, j] * (axis[MIDPOINT, j] - axis[REFERENCE, j])
        slab[ALONG, k] = along
    for i in range(term.shape[1]):
        s = 0.0
        for at in range(n):
            for k in range(begin[order[at]], begin[order[at] + 1]):
                j = member[k]
                s += 0.5 * axis[MOVE, j] * (pairs.centres[i, j] - axis[MIDPOINT, j])
        term[S, i] = min(max(s, term[S_LOW, i]), term[S_HIGH, i])
    return energy


@inner_kernel
def narrow(pairs: Pairs, weights: Weights, parts: Parts, total: float) -> float:
    """Narrow the ranges of s to where the excess, now ``total``, can be positive; the largest share cut off.

    Wherever the equation holds, s_i <= (maximum of majorant + push s_i) / push, for any push > 0. 1 means that a
    range is empty.
    """
    term, d = pairs.term, pairs.cuts.shape[1]
    most = 0.0
    for i in range(term.shape[1]):
        width = term[S_HIGH, i] - term[S_LOW, i]
        if not width > 1e-9:
            continue
        for side in (1.0, -1.0):
            row = PUSH_UP if side > 0.0 else PUSH_DOWN
            push = term[row, i] * total / width
            kept = push
            edge = np.inf
            for probe in range(PROBES):
                found = excess(pairs, weights, parts, i, side * push) + select_largest(pairs, pairs.most)
                # The push itself is rounded too: its own share of the arms.
                found = found / push
                found += 8.0 * EPS * abs(found) + 4.0 * (d + 64.0) * EPS * term[ARMS, i]
                if found < edge:
                    edge = found
                    kept = push
                push = 3.0 * push if probe == 0 or kept == push else kept / 3.0
            term[row, i] = kept * width / total
            if side > 0.0:
                term[S_HIGH, i] = min(term[S_HIGH, i], edge)
            else:
                term[S_LOW, i] = max(term[S_LOW, i], -edge)
        left = term[S_HIGH, i] - term[S_LOW, i]
        if left < 0.0:
            return 1.0
        most = max(most, 1.0 - left / width)
        term[S, i] = min(max(term[S, i], term[S_LOW, i]), term[S_HIGH, i])
    return min(most, 0.999)


@inner_kernel
def conclude(node: Array, pairs: Pairs, lam: float, phi: float) -> None:
    """Keep what was proved of an open node, where it stands in the queue, and the slab that blurs it most."""
    term, slab = pairs.term, pairs.slab
    _, _, total, base = attempt(pairs, lam, phi, True)
    count = min(pairs.most, pairs.order.size)
    sort_largest(pairs, count)
    n = 0
    while n < count:
        base += pairs.gain[pairs.order[n]]
        if not base < 0.0:
            break
        n += 1
    node[EXCLUDED] = max(node[EXCLUDED], float(n))
    node[BOUND] = pairs.most - node[EXCLUDED] + (total / (1.0 + total) if 0.0 <= total < np.inf else 1.0)
    node[LAM] = lam
    node[PHI] = phi if math.isfinite(phi) else FIRST_PHI
    save(node, pairs)
    node[SPLIT] = STUCK
    highest = 0.0
    for k in range(pairs.cuts.shape[0]):
        cost = abs(slab[MULTIPLIER, k]) * slab[HALF, k]
        for i in range(term.shape[1]):
            blur = abs(term[SLOPE, i]) * (term[S_HIGH, i] - term[S_LOW, i]) + abs(term[VALUE, i]) * term[SWING, i]
            cost += abs(pairs.along[k, i]) * slab[HALF, k] * blur
        if not cost < highest:  # a number that is none counts as the highest
            highest = cost
            node[SPLIT] = float(k)
