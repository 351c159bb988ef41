"""Majorants of the mixture in one shell, as a separable quadratic, against a minorant of the level (METHOD 3.3).

Three of them, each sound wherever it is used: by Taylor near z0, by lines far from it, and by curvature where
centres lie in many directions. What each returns is the largest excess over the level, 0 or less if it is met.
"""

from __future__ import annotations

import math

import numpy as np

from daskab._compile import inlined_kernel, inner_kernel
from daskab._elementary import exp
from daskab.bound.eigen import curvature_bound
from daskab.bound.item import (
    BEND,
    EXPONENT,
    GRADIENT,
    HIGH,
    LENGTH,
    LINEAR,
    MULTIPLIER,
    P_HIGH,
    P_LOW,
    POINT,
    REACH_HIGH,
    REACH_LOW,
    SPREAD,
    TRIAL,
    U_HIGH,
    U_LOW,
    VALUE,
    WEIGHT,
    Item,
)
from daskab.bound.reach import neighbours
from daskab.bound.rounding import EPS, TINY

MULTIPLIER_STEPS = 5
MULTIPLIER_STEPS_WITH_SLABS = 8


@inner_kernel
def taylor_rest(s: float) -> float:
    """exp(s) - 1 - s - s^2/2, within 4 EPS (|s|^3 + exp(s)); increasing in s."""
    if abs(s) < 0.5:
        # Sum of s^k / k! for k = 3 ... 14 by Horner; what is cut off is below 1e-16 s^3.
        total = 1.0
        for k in range(14, 3, -1):
            total = 1.0 + total * s / k
        return total * s * s * s / 6.0
    return exp(s) - 1.0 - s - 0.5 * s * s


@inner_kernel
def second_order(s: float) -> float:
    """(exp(s) - 1 - s) / s^2, within 8 EPS of itself; increasing in s."""
    if abs(s) < 0.5:
        # Sum of s^k / (k + 2)! for k = 0 ... 12 by Horner; what is cut off is below 1e-16.
        total = 1.0
        for k in range(14, 2, -1):
            total = 1.0 + total * s / k
        return 0.5 * total
    return (exp(s) - 1.0 - s) / (s * s)


@inner_kernel
def touching(inner: float, outer: float) -> float:
    """T, the |u|^2 at which the minorant of exp(|u|^2 / 2) touches it: any is sound.

    The middle of a thin shell; in a thick one so near its inner end that the minorant stays above a half there.
    """
    return inner + min(0.5 * (outer - inner), 1.0)


@inner_kernel
def excess(
    item: Item, constant: float, curvature: float, size: float, level: float, inner: float, outer: float
) -> float:
    """Largest excess of a majorant of exp(-T/2) Q over a minorant of level exp((|u|^2 - T)/2), in a shell.

    The majorant is ``constant + LINEAR . u + curvature |u|^2 / 2``, the minorant ``level (1 + (|u|^2 - T)/2)``, T from
    `touching`. Two kinds of terms that are never negative on the shell and in the slabs are added: mu (T_end -
    |u|^2) / 2, T_end being the outer end where mu > 0 and the inner where mu < 0, and for every slab eta (end - q . u),
    the end being the upper where eta > 0 and the lower where eta < 0. Any mu and eta give a bound; a few are tried.
    Rounded up by a share of the magnitudes, ``size`` being that of the majorant's coefficients.
    """
    m, d = item.centres.shape
    axis, slab = item.axis, item.slab
    count = item.cuts.shape[0]
    listed = item.values.size > 0
    touch = touching(inner, outer)
    stiff = level - curvature
    if not stiff > 0.0:
        norm = 0.0
        for j in range(d):
            norm += axis[LINEAR, j] * axis[LINEAR, j]
        stiff = max(math.sqrt(norm / max(outer, TINY)), 1e-3 * level)
    for k in range(count):
        slab[MULTIPLIER, k] = 0.0
    best = np.inf
    for _ in range(MULTIPLIER_STEPS_WITH_SLABS if count else MULTIPLIER_STEPS):
        mu = stiff - level + curvature
        total = 0.0
        length = 0.0
        parts = 0.0
        for j in range(d):
            axis[TRIAL, j] = axis[LINEAR, j]
        for k in range(count):
            eta = slab[MULTIPLIER, k]
            if eta != 0.0:
                end = eta * (slab[P_HIGH, k] if eta > 0.0 else slab[P_LOW, k])
                total += end
                parts += abs(end)
                for j in range(d):
                    axis[TRIAL, j] -= eta * item.cuts[k, j]
                    parts += abs(eta * item.cuts[k, j]) * axis[HIGH, j]
        for j in range(d):
            u = min(max(axis[TRIAL, j] / stiff, axis[U_LOW, j]), axis[U_HIGH, j])
            if listed and item.first[j] < item.first[j + 1]:
                u = best_listed(item, j, u, stiff)
            gain = axis[TRIAL, j] * u
            loss = 0.5 * stiff * u * u
            total += gain - loss
            parts += abs(gain) + loss
            length += u * u
            axis[TRIAL, j] = u
        shell = 0.5 * mu * (outer if mu > 0.0 else inner)
        reached = constant - level * (1.0 - 0.5 * touch) + shell + total
        magnitude = size + level * (2.0 + touch) + (abs(mu) + abs(curvature) + stiff) * outer + parts
        best = min(best, reached + (m + d + count + 32.0) * EPS * magnitude)
        if best <= 0.0:
            break
        settled = move_multipliers(item, stiff)
        if length > outer:
            stiff *= math.sqrt(length / outer)
        elif length < inner:
            stiff *= max(math.sqrt(length / inner), 0.1)
        elif settled:
            break
    return best


@inner_kernel
def best_listed(item: Item, j: int, u: float, stiff: float) -> float:
    """Where TRIAL u - stiff u^2 / 2 is largest over the listed values of an other input, given where it is over all."""
    point, trial = item.axis[POINT, j], item.axis[TRIAL, j]
    below, above = neighbours(point + u, item.values, item.first[j], item.first[j + 1])
    u, other = below - point, above - point
    return float(other if other * (trial - 0.5 * stiff * other) > u * (trial - 0.5 * stiff * u) else u)


@inner_kernel
def move_multipliers(item: Item, stiff: float) -> bool:
    """A dual step for every slab that the maximiser in row TRIAL leaves; True when none moved."""
    d = item.centres.shape[1]
    slab = item.slab
    settled = True
    for k in range(item.cuts.shape[0]):
        along = 0.0
        for j in range(d):
            along += item.cuts[k, j] * item.axis[TRIAL, j]
        eta = slab[MULTIPLIER, k]
        if eta > 0.0 or (eta == 0.0 and along > slab[P_HIGH, k]):
            moved = max(eta + stiff * (along - slab[P_HIGH, k]), 0.0)
        elif eta < 0.0 or along < slab[P_LOW, k]:
            moved = min(eta + stiff * (along - slab[P_LOW, k]), 0.0)
        else:
            continue
        if abs(moved - eta) > 1e-6 * stiff * (slab[P_HIGH, k] - slab[P_LOW, k]):
            settled = False
        slab[MULTIPLIER, k] = moved
    return settled


@inner_kernel
def worst_end(item: Item, i: int, reach: float) -> float:
    """The end of the range of s_i where a remainder that rises with s_i is worst, where |s_i| <= ``reach``."""
    if item.term[WEIGHT, i] > 0.0:
        return float(min(item.term[REACH_HIGH, i], reach))
    return float(max(item.term[REACH_LOW, i], -reach))


@inner_kernel
def scale_gradient(item: Item, unit: float) -> None:
    """Let the majorant's linear part be that of Q at z0, times ``unit``."""
    for j in range(item.axis.shape[1]):
        item.axis[LINEAR, j] = unit * item.axis[GRADIENT, j]


@inlined_kernel
def by_taylor(item: Item, value: float, curvature: float, level: float, inner: float, outer: float) -> float:
    """Excess in a shell with Q expanded to second order about z0 and the rest bounded term by term."""
    term = item.term
    half = 0.5 * touching(inner, outer)
    radius = math.sqrt(outer) * (1.0 + 8.0 * EPS)
    unit = exp(-half)
    rest = 0.0
    size = 0.0
    for i in range(term.shape[1]):
        w = term[WEIGHT, i]
        reach = radius * term[LENGTH, i]
        end = worst_end(item, i, reach)
        v = unit * term[VALUE, i]
        if abs(end) < 0.5:
            part = v * taylor_rest(end)
        else:
            # v may have gone to 0 where the term itself has not, so the exponents are added first.
            part = w * exp(end - term[EXPONENT, i] - half) - v * (1.0 + end + 0.5 * end * end)
        rest += part
        size += (abs(part) + 2.0 * abs(v) * (1.0 + abs(end) + end * end)) * (4.0 + 4.0 * term[SPREAD, i])
    scale_gradient(item, unit)
    return excess(item, unit * value + rest, unit * curvature, size, level, inner, outer)


@inlined_kernel
def by_curvature(item: Item, value: float, lift: float, level: float, inner: float, outer: float) -> float:
    """Excess in a shell with each exponential bent upwards as much as its range asks for.

    exp(s) <= 1 + s + b(end) s^2 for s <= end, b being `second_order`, and >= for s >= end: the sum's second-order
    part is then a quadratic form in u, at most |u|^2 times its largest eigenvalue. Where centres lie in many
    directions u cannot lean towards all of them at once, and only this sees it.
    """
    term = item.term
    half = 0.5 * touching(inner, outer)
    radius = math.sqrt(outer) * (1.0 + 8.0 * EPS)
    unit = exp(-half)
    size = 0.0
    for i in range(term.shape[1]):
        w = term[WEIGHT, i]
        reach = radius * term[LENGTH, i]
        end = worst_end(item, i, reach)
        v = unit * term[VALUE, i]
        if abs(end) < 0.5:
            bend = v * second_order(end)
        else:
            # v may have gone to 0 where the term itself has not, so the exponents are added first.
            bend = (w * exp(end - term[EXPONENT, i] - half) - v * (1.0 + end)) / (end * end)
        term[BEND, i] = bend
        grown = abs(w) * exp(end - term[EXPONENT, i] - half) + abs(v) * (1.0 + abs(end))
        size += (abs(v) + grown * (1.0 + reach * reach / max(end * end, 0.25))) * (4.0 + 4.0 * term[SPREAD, i])
    scale_gradient(item, unit)
    curvature = 2.0 * curvature_bound(item, BEND, lift)
    return excess(item, unit * value, curvature, size, level, inner, outer)


@inlined_kernel
def by_lines(item: Item, level: float, inner: float, outer: float) -> float:
    """Excess in a shell with each exponential replaced by a line in s_i: chord, or tangent where w_i < 0."""
    m, d = item.offset.shape
    term = item.term
    half = 0.5 * touching(inner, outer)
    radius = math.sqrt(outer) * (1.0 + 8.0 * EPS)
    constant = 0.0
    size = 0.0
    for j in range(d):
        item.axis[LINEAR, j] = 0.0
    for i in range(m):
        w = term[WEIGHT, i]
        reach = radius * term[LENGTH, i]
        low = max(term[REACH_LOW, i], -reach)
        high = min(term[REACH_HIGH, i], reach)
        base = term[EXPONENT, i] + half
        if low > high:
            # The shell, the slabs and the box have no point in common.
            return -1.0
        if w > 0.0:
            at_low = w * exp(low - base)
            at_high = w * exp(high - base)
            slope = (at_high - at_low) / (high - low) if high > low else 0.0
            constant += at_low - slope * low
            size += (at_low + at_high + abs(slope) * (1.0 + abs(low))) * (4.0 + 4.0 * term[SPREAD, i])
        else:
            at = min(max(0.0, low), high)
            slope = w * exp(at - base)
            constant += slope * (1.0 - at)
            size += abs(slope) * (2.0 + abs(at)) * (4.0 + 4.0 * term[SPREAD, i])
        for j in range(d):
            item.axis[LINEAR, j] += slope * item.offset[i, j]
    return excess(item, constant, 0.0, size, level, inner, outer)
