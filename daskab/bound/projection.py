"""Few centres, many inputs: the mixture in the plane of the centres times what lies off it (METHOD 3.4).

With p the coordinates of z along the directions between centres and r what is left, the sum is
exp(-|r|^2 / 2) G(p), G a mixture in as many dimensions as there are directions. In a node's slabs G is bounded by
the separable quadratic and |r| from below by a dual that separates over the inputs of the box.
"""

from __future__ import annotations

import numpy as np

from daskab._compile import inner_kernel
from daskab.bound.cancelling import taylor_bound
from daskab.bound.item import (
    HIGH,
    LOW,
    OFF_PLANE,
    PLANE_HIGH,
    PLANE_LINEAR,
    PLANE_LOW,
    PLANE_POINT,
    SLAB_HIGH,
    SLAB_LOW,
    SPREAD,
    TRIAL,
    WEIGHT,
    Item,
)
from daskab.bound.reach import neighbours
from daskab.bound.rounding import EPS, exp_down, exp_up

TANGENT_ROUNDS = 3
DUAL_STEPS = 12


@inner_kernel
def projected_bound(item: Item, level: float) -> float:
    """Never below sum_i w_i kappa_i(z) for z in the node's box and slabs; inf where there are no cut directions."""
    if item.cuts.shape[0] == 0:
        return np.inf
    place_slabs_in_plane(item)
    lost = 0.0
    for i in range(item.term.shape[1]):
        lost += abs(item.term[WEIGHT, i]) * 1.1 * (item.term[OFF_PLANE, i] + 8.0 * EPS * (1.0 + item.term[SPREAD, i]))
    in_plane = plane_bound(item)
    if in_plane > level:
        in_plane = min(in_plane, taylor_bound(item))
    if in_plane > level:
        # Only then is it worth knowing how far off the plane the box lies.
        in_plane *= exp_up(0.5 * off_plane_distance(item))
    return max(in_plane, 0.0) * (1.0 + 8.0 * EPS) + lost


@inner_kernel
def place_slabs_in_plane(item: Item) -> None:
    """The node's slabs as seen from the first centre, rounded outward."""
    d = item.centres.shape[1]
    for k in range(item.cuts.shape[0]):
        origin = 0.0
        size = 0.0
        for j in range(d):
            origin += item.cuts[k, j] * item.centres[0, j]
            size += abs(item.cuts[k, j] * item.centres[0, j])
        slack = (d + 8.0) * EPS * (size + abs(item.slab[SLAB_LOW, k]) + abs(item.slab[SLAB_HIGH, k]))
        item.slab[PLANE_LOW, k] = item.slab[SLAB_LOW, k] - origin - slack
        item.slab[PLANE_HIGH, k] = item.slab[SLAB_HIGH, k] - origin + slack


@inner_kernel
def plane_bound(item: Item) -> float:
    """The separable quadratic of METHOD 3.2 in the plane: never below G over the node's slabs."""
    count, m = item.plane.shape
    slab = item.slab
    answer = np.inf
    for rounds in range(TANGENT_ROUNDS):
        offset = 0.0
        curvature = 0.0
        size = 0.0
        for k in range(count):
            slab[PLANE_LINEAR, k] = 0.0
        for i in range(m):
            w = item.term[WEIGHT, i]
            near = 0.0
            far = 0.0
            norm = 0.0
            spread = 0.0
            at = 0.0
            for k in range(count):
                c = item.plane[k, i]
                low = slab[PLANE_LOW, k]
                high = slab[PLANE_HIGH, k]
                outside = max(max(low - c, c - high), 0.0)
                farthest = max(abs(c - low), abs(high - c))
                near += 0.5 * outside * outside
                far += 0.5 * farthest * farthest
                norm += 0.5 * c * c
                reach = max(abs(low), abs(high)) + abs(c)
                spread += 0.5 * reach * reach
                step = slab[PLANE_POINT, k] - c
                at += 0.5 * step * step
            near = max(near - (count + 8.0) * EPS * spread, 0.0)
            far += (count + 8.0) * EPS * spread
            if w > 0.0:
                top = exp_up(near)
                slope = w * ((exp_up(far) - top) / (far - near)) if far > near else 0.0
                offset += w * top - slope * near
                size += w * top + abs(slope) * near
            else:
                at = min(max(at, near), far) if rounds > 0 else 0.5 * (near + far)
                foot = exp_down(at)
                slope = -w * foot
                offset += w * foot * (1.0 + at)
                size += -w * foot * (1.0 + at)
            curvature += slope
            offset += slope * norm
            size += abs(slope) * (1.0 + spread)
            for k in range(count):
                slab[PLANE_LINEAR, k] += slope * item.plane[k, i]
        total = offset
        for k in range(count):
            s = slab[PLANE_LINEAR, k]
            low = slab[PLANE_LOW, k]
            p = slab[PLANE_HIGH, k]
            if curvature < 0.0:
                p = min(max(s / curvature, low), p)
            elif low * (0.5 * curvature * low - s) > p * (0.5 * curvature * p - s):
                p = low
            slab[PLANE_POINT, k] = p
            total += p * (0.5 * curvature * p - s)
        answer = min(answer, total + (m + count + 32.0) * EPS * size)
    return answer


@inner_kernel
def off_plane_distance(item: Item) -> float:
    """Never above |r|^2 = |y|^2 - |p|^2, y = z - c_0, for z in the node's box with p in its slabs.

    For any eta, |r|^2 = |y|^2 - 2 eta.(Q y) + 2 eta.p - |p|^2 there. The part in y is least at a clip, input by
    input; the part in p, concave, at an end of each slab. Eta climbs by gradient steps, each of which is sound.
    """
    d = item.centres.shape[1]
    count = item.cuts.shape[0]
    slab, axis = item.slab, item.axis
    best = 0.0
    for k in range(count):
        slab[PLANE_POINT, k] = 0.5 * (slab[PLANE_LOW, k] + slab[PLANE_HIGH, k])
    for _ in range(DUAL_STEPS):
        total = 0.0
        size = 0.0
        for j in range(d):
            pull = 0.0
            strength = 0.0
            for k in range(count):
                pull += slab[PLANE_POINT, k] * item.cuts[k, j]
                strength += abs(slab[PLANE_POINT, k] * item.cuts[k, j])
            low = axis[LOW, j] - item.centres[0, j]
            high = axis[HIGH, j] - item.centres[0, j]
            y = min(max(pull, low), high)
            if item.first[j] < item.first[j + 1]:
                begin = item.centres[0, j]
                below, above = neighbours(begin + y, item.values, item.first[j], item.first[j + 1])
                y, above = below - begin, above - begin
                if above * (above - 2.0 * pull) < y * (y - 2.0 * pull):
                    y = above
            total += y * y - 2.0 * pull * y
            size += y * y + 2.0 * strength * (abs(y) + abs(low) + abs(high))
            axis[TRIAL, j] = y
        for k in range(count):
            eta = slab[PLANE_POINT, k]
            low = slab[PLANE_LOW, k]
            high = slab[PLANE_HIGH, k]
            total += min(low * (2.0 * eta - low), high * (2.0 * eta - high))
            size += (2.0 * abs(eta) + abs(low) + abs(high)) * (abs(low) + abs(high))
        best = max(best, total - (d + count + 32.0) * EPS * size)
        for k in range(count):
            along = 0.0
            for j in range(d):
                along += item.cuts[k, j] * axis[TRIAL, j]
            slab[PLANE_POINT, k] += 0.5 * (slab[PLANE_LOW, k] + slab[PLANE_HIGH, k]) - along
    return best
