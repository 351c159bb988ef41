"""Transverse bounds: T(w) = max over the other inputs z of sum_i w_i kappa_i(z), never from below (METHOD 3).

kappa_i(z) = exp(-t_i(z)) with t_i(z) = |z - c_i|^2 / 2 over every input but the one that changes.
All kernels take the weights as exact numbers and add the error of their own arithmetic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab.bound.rounding import EPS, exp_down, exp_up

Array = NDArray[np.float64]

# Rows of the (4, M) array `reach`.
NEAR, FAR, SPREAD, NORM = range(4)


@kernel
def fill_reach(centres: Array, width: Array, changed: int, reach: Array) -> None:
    """Range of t_i over the box of the inputs other than ``changed``, rounded outward (METHOD, Lemma 2).

    Parameters
    ----------
    centres : (M, D)
    width : (D,)
    changed : index of the input that changes
    reach : (4, M), overwritten
        Rows NEAR and FAR: bounds below and above t_i. SPREAD: H_i = sum_j (width_j + |c_ij|)^2 / 2, the
        size every rounding error of t_i is measured by. NORM: sum_j c_ij^2 / 2.
    """
    m, d = centres.shape
    for i in range(m):
        near = 0.0
        far = 0.0
        spread = 0.0
        norm = 0.0
        for j in range(d):
            if j == changed:
                continue
            c = centres[i, j]
            w = width[j]
            outside = max(max(-c, c - w), 0.0)
            farthest = max(abs(c), abs(w - c))
            near += outside * outside
            far += farthest * farthest
            spread += (w + abs(c)) * (w + abs(c))
            norm += c * c
        slack = (d + 16.0) * EPS * 0.5 * spread
        reach[NEAR, i] = max(0.5 * near - slack, 0.0)
        reach[FAR, i] = 0.5 * far + slack
        reach[SPREAD, i] = 0.5 * spread
        reach[NORM, i] = 0.5 * norm


@kernel
def sign_bound(weights: Array, reach: Array) -> float:
    """Each term at its own largest (METHOD 3.1). Cost O(M)."""
    total = 0.0
    size = 0.0
    for i in range(weights.size):
        w = weights[i]
        term = w * exp_up(reach[NEAR, i]) if w > 0.0 else w * exp_down(reach[FAR, i])
        total += term
        size += abs(term)
    return total + (weights.size + 4.0) * EPS * size


@kernel
def quadratic_bound(
    weights: Array,
    centres: Array,
    width: Array,
    changed: int,
    reach: Array,
    rounds: int,
    lines: Array,
    best: Array,
) -> float:
    """Separable quadratic majorant, maximised in closed form over the box (METHOD 3.2). Cost O(rounds M D).

    Each exp(-t) is replaced by a straight line in t that lies on the right side of it: the chord over
    the range of t for a positive weight, a tangent for a negative one. The sum of lines is a quadratic
    in z with one curvature for all inputs, so it separates. Tangents then move to the maximiser just found.

    Parameters
    ----------
    weights : (M,)
    centres : (M, D)
    width : (D,)
    changed : index of the input left out
    reach : (4, M) from `fill_reach`
    rounds : times the tangents are placed, at least 1
    lines : (2, M) work space
    best : (2, D), overwritten; row 0 is a maximiser of the last quadratic, row 1 work space

    Returns
    -------
    float
        The smallest bound over the rounds.
    """
    m, d = centres.shape
    answer = np.inf
    slope = lines[0]
    tangent = lines[1]
    linear = best[1]
    for i in range(m):
        tangent[i] = 0.5 * (reach[NEAR, i] + reach[FAR, i])
    for _ in range(rounds):
        offset = 0.0  # sum of the lines' values at t = 0 ...
        curvature = 0.0  # ... and of their slopes
        size = 0.0  # magnitudes, for the rounding term
        for j in range(d):
            linear[j] = 0.0
        for i in range(m):
            w = weights[i]
            if w > 0.0:
                near = reach[NEAR, i]
                far = reach[FAR, i]
                top = exp_up(near)
                b = w * ((exp_up(far) - top) / (far - near)) if far > near else 0.0
                offset += w * top - b * near
                size += w * top + abs(b) * near
            else:
                at = tangent[i]
                low = exp_down(at)
                b = -w * low
                offset += w * low * (1.0 + at)
                size += -w * low * (1.0 + at)
            slope[i] = b
            curvature += b
            offset += b * reach[NORM, i]
            size += abs(b) * (1.0 + reach[SPREAD, i])
            for j in range(d):
                linear[j] += b * centres[i, j]
        total = offset
        for j in range(d):
            if j == changed:
                best[0, j] = 0.0
                continue
            z = width[j]
            if curvature < 0.0:
                z = min(max(linear[j] / curvature, 0.0), z)
            elif z * (0.5 * curvature * z - linear[j]) < 0.0:
                z = 0.0
            best[0, j] = z
            total += z * (0.5 * curvature * z - linear[j])
        answer = min(answer, total + (m + d + 32.0) * EPS * size)
        for i in range(m):
            if weights[i] <= 0.0:
                t = 0.0
                for j in range(d):
                    if j != changed:
                        t += (best[0, j] - centres[i, j]) * (best[0, j] - centres[i, j])
                tangent[i] = min(max(0.5 * t, reach[NEAR, i]), reach[FAR, i])
    return answer
