"""The separable maximum: what every input adds at most, moved or not, and which changes to make (METHOD J4)."""

from __future__ import annotations

import math

from daskab._compile import inner_kernel
from daskab.joint.midpoint.pairs import ARM, BASE, GAIN, MIDPOINT, MOVE, PULL, REFERENCE, REST, SHARE, WIDTH, Pairs


@inner_kernel
def fill_gains(pairs: Pairs, curvature: float, bend: float, probe: int, push: float) -> float:
    """Fill what the inputs add to the majorant: rows BASE, REST, GAIN, MOVE, MIDPOINT; the sum of BASE is returned.

    Input j adds, moved by theta W_j (0 <= theta <= its SHARE) and with its midpoint theta W_j / 2 or more from the
    box's ends, at most

        theta W_j |E_j| + bend W_j^2 theta (1 - theta) / 4 - curvature theta^2 W_j^2 / 8 + r_j u_j - curvature u_j^2 / 2

    which is concave in theta and u_j. The best u_j is a clip; the best theta the vertex of one of two parabolas.

    Parameters
    ----------
    pairs : with rows PULL (r), ARM (E) and REFERENCE (z)
    curvature : positive
    bend : never below |sum of slopes|
    probe, push : ``push`` times the arms of centre ``probe`` is added to E; 0 for none
    """
    axis = pairs.axis
    total = 0.0
    for j in range(axis.shape[1]):
        w = axis[WIDTH, j]
        arm = axis[ARM, j] + 0.5 * push * pairs.arm[probe, j]
        free = axis[REFERENCE, j] + axis[PULL, j] / curvature
        room = min(free, w - free)
        rise = w * (abs(arm) + 0.25 * bend * w)
        fall = w * w * (0.5 * bend + 0.25 * curvature)
        theta = min(rise / fall, axis[SHARE, j]) if w > 0.0 else 0.0
        if theta * w > 2.0 * room and w > 0.0:
            # From here on the midpoint is pushed inwards as the move grows.
            begin = 2.0 * room / w if room > 0.0 else 0.0
            theta = (rise + 0.5 * curvature * w * room) / (fall + 0.25 * curvature * w * w)
            theta = min(max(theta, begin), axis[SHARE, j])
        axis[REST, j] = min(max(free, 0.0), w)
        base = part(axis[PULL, j], curvature, axis[REFERENCE, j], axis[REST, j])
        half = 0.5 * theta * w
        y = min(max(free, half), w - half)
        gain = theta * w * (abs(arm) + 0.25 * bend * w * (1.0 - theta)) - 0.5 * curvature * half * half
        gain += part(axis[PULL, j], curvature, axis[REFERENCE, j], y) - base
        axis[BASE, j] = base
        axis[GAIN, j] = max(gain, 0.0)
        axis[MOVE, j] = math.copysign(theta * w, arm)
        axis[MIDPOINT, j] = y
        total += base
    sum_gains(pairs)
    return total


@inner_kernel
def sum_gains(pairs: Pairs) -> None:
    """Fill what each change adds at most from row GAIN, what its inputs do."""
    for c in range(pairs.gain.size):
        pairs.gain[c] = 0.0
        for at in range(pairs.reach.begin[c], pairs.reach.begin[c + 1]):
            pairs.gain[c] += pairs.axis[GAIN, pairs.reach.member[at]]


@inner_kernel
def part(pull: float, curvature: float, reference: float, y: float) -> float:
    """What an input's midpoint adds: r u - curvature u^2 / 2."""
    u = y - reference
    return u * (pull - 0.5 * curvature * u)


@inner_kernel
def select_largest(pairs: Pairs, n: int) -> float:
    """Put the ``n`` changes of most gain first in ``order`` (quickselect); the sum of their gains."""
    order, gain = pairs.order, pairs.gain
    left = 0
    right = order.size - 1
    while n < order.size and left < right:
        pivot = gain[order[(left + right) // 2]]
        i = left
        j = right
        while i <= j:
            while gain[order[i]] > pivot:
                i += 1
            while gain[order[j]] < pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if n - 1 <= j:
            right = j
        elif n - 1 >= i:
            left = i
        else:
            break
    total = 0.0
    for k in range(min(n, order.size)):
        total += gain[order[k]]
    return total


@inner_kernel
def sort_largest(pairs: Pairs, n: int) -> None:
    """Sort the first ``n`` of ``order`` by gain, the largest first (Shell's sort, which needs no memory)."""
    order, gain = pairs.order, pairs.gain
    gap = n // 2
    while gap > 0:
        for at in range(gap, n):
            j = order[at]
            to = at
            while to >= gap and gain[order[to - gap]] < gain[j]:
                order[to] = order[to - gap]
                to -= gap
            order[to] = j
        gap //= 2
