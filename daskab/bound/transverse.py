"""Transverse bounds: T(w) = max over the other inputs z of sum_i w_i kappa_i(z), never from below (METHOD 3).

kappa_i(z) = exp(-t_i(z)) with t_i(z) = |z - c_i|^2 / 2, z in a node's box of the inputs that do not change.
All kernels take the weights as exact numbers and add the error of their own arithmetic.
"""

from __future__ import annotations

import numpy as np

from daskab._compile import inner_kernel
from daskab.bound.item import (
    BEST,
    FAR,
    HIGH,
    LINEAR,
    LOW,
    NEAR,
    NORM,
    SLAB_HIGH,
    SLAB_LOW,
    SPREAD,
    TANGENT,
    WEIGHT,
    Item,
)
from daskab.bound.reach import neighbours
from daskab.bound.rounding import EPS, exp_down, exp_up

ROUNDS = 3
"""Times the tangents of the quadratic are placed."""


@inner_kernel
def fill_reach(item: Item) -> None:
    """Range of t_i over the node's box, rounded outward (METHOD, Lemma 2): rows NEAR and FAR."""
    m, d = item.centres.shape
    for i in range(m):
        near = 0.0
        far = 0.0
        for j in range(d):
            c = item.centres[i, j]
            low = item.axis[LOW, j]
            high = item.axis[HIGH, j]
            outside = max(max(low - c, c - high), 0.0)
            farthest = max(abs(c - low), abs(high - c))
            near += outside * outside
            far += farthest * farthest
        beside = 0.0
        for k in range(item.cuts.shape[0]):
            along = 0.0
            for j in range(d):
                along += item.cuts[k, j] * item.centres[i, j]
            outside = max(max(item.slab[SLAB_LOW, k] - along, along - item.slab[SLAB_HIGH, k]), 0.0)
            beside += outside * outside
        # The directions are orthonormal within 1e-13, so they see no more than the whole distance.
        near = max(near, beside * (1.0 - 1e-12))
        slack = (d + 16.0) * EPS * 4.0 * item.term[SPREAD, i]
        item.term[NEAR, i] = max(0.5 * near - slack, 0.0)
        item.term[FAR, i] = 0.5 * far + slack


@inner_kernel
def sign_bound(item: Item) -> float:
    """Each term at its own largest (METHOD 3.1). Cost O(M)."""
    m = item.term.shape[1]
    total = 0.0
    size = 0.0
    for i in range(m):
        w = item.term[WEIGHT, i]
        part = w * exp_up(item.term[NEAR, i]) if w > 0.0 else w * exp_down(item.term[FAR, i])
        total += part
        size += abs(part)
    return float(total + (m + 4.0) * EPS * size)


@inner_kernel
def quadratic_bound(item: Item, goal: float) -> float:
    """Separable quadratic majorant, maximised in closed form over the box (METHOD 3.2). Cost O(M D').

    Each exp(-t) is replaced by a straight line in t that lies on the right side of it: the chord over
    the range of t for a positive weight, a tangent for a negative one. The sum of lines is a quadratic
    in z with one curvature for all inputs, so it separates. Tangents then move to the maximiser just found.

    Parameters
    ----------
    item : with its weights, and the reach of its box from `fill_reach`
    goal : no further round once the bound is at most this

    Returns
    -------
    float
        The smallest bound over the rounds.
    """
    m, d = item.centres.shape
    answer = np.inf
    for i in range(m):
        item.term[TANGENT, i] = 0.5 * (item.term[NEAR, i] + item.term[FAR, i])
    for _ in range(ROUNDS):
        offset = 0.0  # sum of the lines' values at t = 0 ...
        curvature = 0.0  # ... and of their slopes
        size = 0.0  # magnitudes, for the rounding term
        for j in range(d):
            item.axis[LINEAR, j] = 0.0
        for i in range(m):
            w = item.term[WEIGHT, i]
            if w > 0.0:
                near = item.term[NEAR, i]
                far = item.term[FAR, i]
                top = exp_up(near)
                slope = w * ((exp_up(far) - top) / (far - near)) if far > near else 0.0
                offset += w * top - slope * near
                size += w * top + abs(slope) * near
            else:
                at = item.term[TANGENT, i]
                foot = exp_down(at)
                slope = -w * foot
                offset += w * foot * (1.0 + at)
                size += -w * foot * (1.0 + at)
            curvature += slope
            offset += slope * item.term[NORM, i]
            size += abs(slope) * (1.0 + item.term[SPREAD, i])
            for j in range(d):
                item.axis[LINEAR, j] += slope * item.centres[i, j]
        total = offset
        for j in range(d):
            s = item.axis[LINEAR, j]
            low = item.axis[LOW, j]
            z = item.axis[HIGH, j]
            if curvature < 0.0:
                z = min(max(s / curvature, low), z)
                if item.first[j] < item.first[j + 1]:
                    z, above = neighbours(z, item.values, item.first[j], item.first[j + 1])
                    if above * (0.5 * curvature * above - s) > z * (0.5 * curvature * z - s):
                        z = above
            elif low * (0.5 * curvature * low - s) > z * (0.5 * curvature * z - s):
                z = low
            item.axis[BEST, j] = z
            total += z * (0.5 * curvature * z - s)
        answer = min(answer, total + (m + d + 32.0) * EPS * size)
        if answer <= goal:
            break
        for i in range(m):
            if item.term[WEIGHT, i] <= 0.0:
                t = 0.0
                for j in range(d):
                    step = item.axis[BEST, j] - item.centres[i, j]
                    t += step * step
                item.term[TANGENT, i] = min(max(0.5 * t, item.term[NEAR, i]), item.term[FAR, i])
    return answer


@inner_kernel
def cheap_bound(item: Item, goal: float) -> float:
    """The smaller of the sign bound and the quadratic, at least 0; the second only while the goal is not met."""
    bound = sign_bound(item)
    if bound > goal:
        bound = min(bound, quadratic_bound(item, goal))
    return max(bound, 0.0)
