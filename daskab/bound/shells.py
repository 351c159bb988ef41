"""The shell test: is sum_i w_i kappa_i(z) at most a given level everywhere in a node's box? (METHOD 3.3)

With u = z - z0, v_i = w_i kappa_i(z0), A_i = c_i - z0 and s_i = A_i . u the sum is exp(-|u|^2 / 2) Q(u),
Q(u) = sum_i v_i exp(s_i). It is at most G where Q(u) <= G exp(|u|^2 / 2). In each shell T0 <= |u|^2 <= T1 the
left side has a separable quadratic majorant and the right side a separable quadratic minorant, so their
difference is maximised over the box in closed form. The shells reach to the farthest corner.
"""

from __future__ import annotations

import math

from daskab._compile import inlined_kernel, inner_kernel
from daskab._elementary import exp, log
from daskab.bound.eigen import curvature_bound, factor_gram
from daskab.bound.item import (
    EXPONENT,
    GRADIENT,
    HIGH,
    LENGTH,
    LOW,
    P_HIGH,
    P_LOW,
    POINT,
    REACH_HIGH,
    REACH_LOW,
    SLAB_HIGH,
    SLAB_LOW,
    SPREAD,
    TRIAL,
    U_HIGH,
    U_LOW,
    VALUE,
    WEIGHT,
    Item,
)
from daskab.bound.majorants import by_curvature, by_lines, by_taylor
from daskab.bound.rounding import EPS, TINY

GROWTH = 1.6
"""Ratio of neighbouring shells' outer to inner |u|^2."""

NARROWINGS = 3
"""Times a shell that does not pass is made thinner before the test gives up."""


@inner_kernel
def settle(item: Item) -> tuple[float, float, float]:
    """Fill the item with all that does not depend on the level; V = sum v_i, sum |v_i| |A_i|^3, largest |u|^2."""
    m, d = item.centres.shape
    axis, term = item.axis, item.term
    farthest = 0.0
    for j in range(d):
        axis[U_LOW, j] = axis[LOW, j] - axis[POINT, j]
        axis[U_HIGH, j] = axis[HIGH, j] - axis[POINT, j]
        reach = max(-axis[U_LOW, j], axis[U_HIGH, j])
        farthest += reach * reach
        axis[GRADIENT, j] = 0.0
    place_slabs(item)
    value = 0.0
    third = 0.0
    count = item.cuts.shape[0]
    for i in range(m):
        norm = 0.0
        low = 0.0
        high = 0.0
        for j in range(d):
            a = item.centres[i, j] - axis[POINT, j]
            item.offset[i, j] = a
            norm += a * a
            at_low = a * axis[U_LOW, j]
            at_high = a * axis[U_HIGH, j]
            low += min(at_low, at_high)
            high += max(at_low, at_high)
        if count:
            slab_low, slab_high = reach_through_slabs(item, i)
            low = max(low, slab_low)
            high = min(high, slab_high)
        v = term[WEIGHT, i] * exp(-0.5 * norm)
        slack = (d + 8.0 + 4.0 * (count + 2.0) * (count + 2.0)) * EPS * 2.0 * term[SPREAD, i]
        term[EXPONENT, i] = 0.5 * norm
        term[LENGTH, i] = math.sqrt(norm) * (1.0 + (d + 8.0) * EPS)
        term[REACH_LOW, i] = low - slack
        term[REACH_HIGH, i] = high + slack
        term[VALUE, i] = v
        value += v
        third += abs(v) * norm * math.sqrt(norm)
        for j in range(d):
            axis[GRADIENT, j] += v * item.offset[i, j]
    return value, third, farthest * (1.0 + (d + 8.0) * EPS)


@inner_kernel
def place_slabs(item: Item) -> None:
    """The node's slabs as seen from z0: q_k . u in [p_low, p_high], rounded outward."""
    d = item.centres.shape[1]
    for k in range(item.cuts.shape[0]):
        along = 0.0
        size = 0.0
        for j in range(d):
            along += item.cuts[k, j] * item.axis[POINT, j]
            size += abs(item.cuts[k, j]) * item.axis[HIGH, j]
        slack = (d + 8.0) * EPS * (size + abs(item.slab[SLAB_LOW, k]) + abs(item.slab[SLAB_HIGH, k]))
        item.slab[P_LOW, k] = item.slab[SLAB_LOW, k] - along - slack
        item.slab[P_HIGH, k] = item.slab[SLAB_HIGH, k] - along + slack


@inner_kernel
def reach_through_slabs(item: Item, i: int) -> tuple[float, float]:
    """Range of s_i = sum_k (A_i . q_k)(q_k . u) + (rest of A_i) . u, the first part by slabs, the rest by the box."""
    d = item.centres.shape[1]
    axis = item.axis
    low = 0.0
    high = 0.0
    for j in range(d):
        axis[TRIAL, j] = item.offset[i, j]
    for k in range(item.cuts.shape[0]):
        along = 0.0
        for j in range(d):
            along += item.offset[i, j] * item.cuts[k, j]
        at_low = along * item.slab[P_LOW, k]
        at_high = along * item.slab[P_HIGH, k]
        low += min(at_low, at_high)
        high += max(at_low, at_high)
        for j in range(d):
            axis[TRIAL, j] -= along * item.cuts[k, j]
    for j in range(d):
        at_low = axis[TRIAL, j] * axis[U_LOW, j]
        at_high = axis[TRIAL, j] * axis[U_HIGH, j]
        low += min(at_low, at_high)
        high += max(at_low, at_high)
    return low, high


@inlined_kernel
def below_level(item: Item, level: float) -> bool:
    """Whether sum_i w_i kappa_i(z) <= level is proved for every z in the item's box and slabs.

    The item's point z0 is where the shells are laid about: the nearer to the maximum the better, any point of
    the box is sound.
    """
    m, d = item.centres.shape
    lost = TINY
    for i in range(m):
        lost += abs(item.term[WEIGHT, i]) * 1.1 * EPS * (4.0 + (d + 16.0) * item.term[SPREAD, i])
    # What rounding may hide of the sum itself is taken off the level once and for all.
    level -= lost
    if not level > 0.0:
        return False
    value, third, farthest = settle(item)
    if not value < level:
        return False
    lift = factor_gram(item)
    curvature = curvature_bound(item, VALUE, lift)
    inner = 0.0
    outer = max(exp(2.0 / 3.0 * log(3.0 * (level - value) / max(third, TINY))), 1e-6 * farthest)
    while True:
        passed = False
        for _ in range(NARROWINGS):
            outer = min(outer, farthest)
            passed = by_taylor(item, value, curvature, level, inner, outer) <= 0.0
            if not passed:
                passed = by_lines(item, level, inner, outer) <= 0.0
            if not passed:
                passed = by_curvature(item, value, lift, level, inner, outer) <= 0.0
            if passed:
                break
            outer = inner + 0.3 * (outer - inner)
        if not passed:
            return False
        if outer >= farthest:
            return True
        inner = outer
        outer = inner * GROWTH
