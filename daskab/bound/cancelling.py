"""Few centres whose weights cancel: what they come to together, where each alone would be worth far more (METHOD 3.6).

Moving a weight from one centre to another changes a sum of derivatives of bumps by no more than the weight times the
distance times the next derivative; what is left at the other centre may be little.
"""

from __future__ import annotations

import math

from daskab._compile import inner_kernel
from daskab._elementary import exp
from daskab.bound.item import (
    AMPLITUDE,
    MOVED,
    PLANE_HIGH,
    PLANE_LINEAR,
    PLANE_LOW,
    PLANE_POINT,
    TANGENT,
    WEIGHT,
    Item,
)
from daskab.bound.rounding import EPS

SECOND, THIRD, FOURTH = 1.0, 1.3802, 3.0001
"""Never below the second and third derivative of exp(-r^2 / 2) along one direction, and the fourth, three times along
one and once along any (METHOD, Lemma 11)."""

CANCEL = 0.25
"""Of what the terms are worth alone: less than that, they cancel."""

THIRD_MIXED = 1.4
"""The same, twice along one direction and once along any."""


@inner_kernel
def together(item: Item, row: int, most: float, slope: float) -> float:
    """Never below |sum_i w_i T_i|, w a row of terms, for |T_i| <= most and |T_i - T_j| <= slope |c_i - c_j|.

    The distances are those of all inputs for the amplitudes, else those of the other inputs.
    """
    m = item.term.shape[1]
    size = 0.0
    for i in range(m):
        item.term[MOVED, i] = item.term[row, i]
        size += abs(item.term[row, i])
    cost = 0.0
    for _ in range(m - 1):
        best = 0.0
        low = -1
        high = -1
        for i in range(m):
            for j in range(i):
                a = item.term[MOVED, i]
                b = item.term[MOVED, j]
                apart = item.apart[i, j] if row == AMPLITUDE else item.apart[j, i]
                gain = most * (abs(a) + abs(b) - abs(a + b)) - slope * min(abs(a), abs(b)) * apart
                if gain > best:
                    best = gain
                    low = j
                    high = i
        if low < 0:
            break
        a = item.term[MOVED, high]
        b = item.term[MOVED, low]
        apart = item.apart[high, low] if row == AMPLITUDE else item.apart[low, high]
        cost += slope * min(abs(a), abs(b)) * apart
        item.term[MOVED, high] = a + b if abs(a) >= abs(b) else 0.0
        item.term[MOVED, low] = 0.0 if abs(a) >= abs(b) else a + b
    left = 0.0
    for i in range(m):
        left += abs(item.term[MOVED, i])
    return float((cost + most * left) * (1.0 + 64.0 * EPS) + most * (4.0 * m) * EPS * size)


@inner_kernel
def cancels(item: Item) -> bool:
    """Whether the terms come to far less together than each alone."""
    if item.apart.shape[0] == 0:
        return False
    alone = 0.0
    for i in range(item.term.shape[1]):
        alone += abs(item.term[AMPLITUDE, i])
    return bend(item) < CANCEL * alone


@inner_kernel
def bend(item: Item) -> float:
    """Never below the second derivative of the sum along the input that changes, at any point, either way."""
    return together(item, AMPLITUDE, SECOND, THIRD_MIXED)


@inner_kernel
def taylor_bound(item: Item) -> float:
    """Never below G, the sum in the plane of the centres, over the node's slabs: by its second-order expansion there.

    Of the middle of the slabs; the slabs are those of `place_slabs_in_plane`.
    """
    count, m = item.plane.shape
    slab = item.slab
    value = 0.0
    error = 0.0
    radius = 0.0
    for k in range(count):
        low = slab[PLANE_LOW, k]
        high = slab[PLANE_HIGH, k]
        slab[PLANE_POINT, k] = 0.5 * (low + high)
        slab[PLANE_LINEAR, k] = 0.5 * (high - low) * (1.0 + 8.0 * EPS) + 4.0 * EPS * (abs(low) + abs(high))
        radius += slab[PLANE_LINEAR, k] * slab[PLANE_LINEAR, k]
    for i in range(m):
        t = 0.0
        spread = 0.0
        for k in range(count):
            step = slab[PLANE_POINT, k] - item.plane[k, i]
            t += 0.5 * step * step
            reach = max(abs(slab[PLANE_LOW, k]), abs(slab[PLANE_HIGH, k])) + abs(item.plane[k, i])
            spread += 0.5 * reach * reach
        item.term[TANGENT, i] = item.term[WEIGHT, i] * exp(-t)
        value += item.term[TANGENT, i]
        error += abs(item.term[WEIGHT, i]) * 2.0 * (1.0 + spread) * (1.0 + spread) * (1.0 + spread)
    for k in range(count):
        r = slab[PLANE_LINEAR, k]
        slope = 0.0
        curve = 0.0
        for i in range(m):
            step = slab[PLANE_POINT, k] - item.plane[k, i]
            slope += item.term[TANGENT, i] * step
            curve += item.term[TANGENT, i] * (step * step - 1.0)
        slope = abs(slope)
        if curve < 0.0 and slope < -curve * r:
            value += 0.5 * slope * slope / -curve
        else:
            value += r * (slope + 0.5 * curve * r)
        for n in range(k):
            cross = 0.0
            for i in range(m):
                along = slab[PLANE_POINT, k] - item.plane[k, i]
                across = slab[PLANE_POINT, n] - item.plane[n, i]
                cross += item.term[TANGENT, i] * along * across
            value += abs(cross) * r * slab[PLANE_LINEAR, n]
    rest = together(item, WEIGHT, THIRD, FOURTH) * radius * math.sqrt(radius) / 6.0
    return float(value + rest * (1.0 + 64.0 * EPS) + (m + count * count + count + 64.0) * EPS * error)
