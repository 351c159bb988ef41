"""The majorant of a node's equation: affine in what mixes inputs, separable in the rest (METHOD J3 and J4)."""

from __future__ import annotations

from typing import NamedTuple

from daskab._compile import inner_kernel
from daskab._elementary import exp
from daskab.bound.rounding import EPS, TINY
from daskab.joint.midpoint.gains import fill_gains
from daskab.joint.midpoint.lines import highest_over_line, slope_above
from daskab.joint.midpoint.pairs import (
    ALONG,
    AMPLITUDE,
    ARM,
    ARMS,
    EFFORT,
    FAINT,
    HALF,
    LINEAR,
    MULTIPLIER,
    PULL,
    REACH,
    REFERENCE,
    S_HIGH,
    S_LOW,
    SLAB_HIGH,
    SLAB_LOW,
    SLOPE,
    SPAN,
    SWING,
    VALUE,
    WIDTH,
    Pairs,
    S,
)

LARGEST_SQUARE = 1200.0
"""exp(-|A|^2 / 2) is taken up to here; beyond, a term is bounded whole."""


class Weights(NamedTuple):
    """How much each end counts, and where exp(phi) is touched by a line: any choice is sound."""

    lam: float  #: of f(x') - c0 >= high
    mu: float  #: of c0 - f(x) >= low
    curvature: float  #: never above T exp(phi), T = lam high + mu low
    phi: float


class Parts(NamedTuple):
    """A majorant of a node's excess: ``fixed + sum of BASE + gains of the moved``, up to ``slack``."""

    fixed: float
    bend: float  #: never below |sum of slopes|
    slack: float  #: never below the rounding error of all of it


@inner_kernel
def refer(pairs: Pairs) -> None:
    """Move the reference point z to the middle of the node's slabs, and measure everything from there (METHOD J2)."""
    axis, slab = pairs.axis, pairs.slab
    k_all, d = pairs.cuts.shape
    m = pairs.centres.shape[0]
    for j in range(d):
        axis[REFERENCE, j] = pairs.centres[0, j]
    for k in range(k_all):
        step = 0.5 * (slab[SLAB_LOW, k] + slab[SLAB_HIGH, k])
        for j in range(d):
            step -= pairs.cuts[k, j] * pairs.centres[0, j]
        for j in range(d):
            axis[REFERENCE, j] += step * pairs.cuts[k, j]
    for j in range(d):
        z = axis[REFERENCE, j]
        axis[SPAN, j] = max(abs(z), abs(axis[WIDTH, j] - z)) * (1.0 + 2.0 * EPS)
    for k in range(k_all):
        at = 0.0
        size = 0.0
        effort = 0.0
        for j in range(d):
            q = pairs.cuts[k, j]
            at += q * axis[REFERENCE, j]
            size += abs(q * axis[REFERENCE, j])
            effort += abs(q) * axis[SPAN, j]
        half = max(abs(slab[SLAB_HIGH, k] - at), abs(at - slab[SLAB_LOW, k]))
        slab[HALF, k] = half + (d + 8.0) * EPS * (size + half)
        slab[EFFORT, k] = effort
    for i in range(m):
        refer_term(i, pairs)


@inner_kernel
def refer_term(i: int, pairs: Pairs) -> None:
    """A_i, its coordinates along the cuts, v_i, and the range of A_i . u: by the slabs, what is off them by the box."""
    k_all, d = pairs.cuts.shape
    square = 0.0
    reach = 0.0
    for j in range(d):
        step = pairs.centres[i, j] - pairs.axis[REFERENCE, j]
        pairs.offset[i, j] = step
        square += step * step
        reach += abs(step) * pairs.axis[SPAN, j]
    swing = 0.0
    size = reach
    for k in range(k_all):
        along = 0.0
        for j in range(d):
            along += pairs.cuts[k, j] * pairs.offset[i, j]
        pairs.along[k, i] = along
        swing += abs(along) * pairs.slab[HALF, k]
        size += abs(along) * pairs.slab[EFFORT, k]
    for j in range(d):
        rest = pairs.offset[i, j]
        for k in range(k_all):
            rest -= pairs.along[k, i] * pairs.cuts[k, j]
        swing += abs(rest) * pairs.axis[SPAN, j]
    pairs.term[SWING, i] = swing + (d + k_all + 8.0) * EPS * size
    pairs.term[REACH, i] = reach
    a = pairs.term[AMPLITUDE, i]
    if square < LARGEST_SQUARE:
        pairs.term[VALUE, i] = a * exp(-0.5 * square)
        pairs.term[FAINT, i] = 0.0
    else:
        pairs.term[VALUE, i] = 0.0
        exponent = pairs.term[SWING, i] - 0.5 * square * (1.0 - (d + 8.0) * EPS)
        pairs.term[FAINT, i] = abs(a) * exp(exponent) * (1.0 + 16.0 * EPS) + TINY


@inner_kernel
def fill_majorant(pairs: Pairs, weights: Weights, lead: bool) -> Parts:
    """Majorise every term of the node's equation by a plane in (A_i . u, s_i), and add the planes up.

    With ``lead`` the slabs' multipliers are chosen anew, as if the box were no limit; else they follow ALONG.
    Rows LINEAR, PULL and ARM are filled; the rest of the majorant is returned.
    """
    axis, slab, term = pairs.axis, pairs.slab, pairs.term
    k_all, d = pairs.cuts.shape
    m = pairs.centres.shape[0]
    lam, mu = weights.lam, weights.mu
    for j in range(d):
        axis[LINEAR, j] = 0.0
        axis[ARM, j] = 0.0
    fixed = -weights.curvature * (1.0 - weights.phi)
    size = weights.curvature * (1.0 + abs(weights.phi))
    slopes = 0.0
    steep = 0.0
    for i in range(m):
        v = term[VALUE, i]
        low = term[S_LOW, i]
        high = term[S_HIGH, i]
        at = term[S, i]
        if v > 0.0:
            slope = slope_above(lam, mu, low, high, at)
            foot = highest_over_line(lam, mu, slope, low, high)
        else:
            # Below psi is above its mirror image.
            slope = slope_above(mu, lam, -high, -low, -at)
            foot = -highest_over_line(mu, lam, slope, -high, -low)
        swing = term[SWING, i]
        far = max(abs(low), abs(high))
        highest = (lam + mu) * exp(far)  # of |psi|
        faint = term[FAINT, i] * highest
        bulk = abs(v) * (highest * (1.0 + far)) + faint + TINY
        tilt = v * (foot + slope * at)
        fixed += v * foot + faint
        fixed += abs(v) * slope * swing * max(high - at, at - low)
        curve = rest_of_exp(swing)
        fixed += curve * max(max(v * (foot + slope * low), v * (foot + slope * high)), 0.0)
        size += bulk * (4.0 + 2.0 * term[REACH, i] + term[ARMS, i] + 4.0 * swing + 4.0 * curve)
        term[SLOPE, i] = v * slope
        slopes += term[SLOPE, i]
        steep += abs(term[SLOPE, i])
        for j in range(d):
            axis[LINEAR, j] += tilt * pairs.offset[i, j]
            axis[ARM, j] += 0.5 * term[SLOPE, i] * pairs.arm[i, j]
    for j in range(d):
        axis[PULL, j] = axis[LINEAR, j]
        square = axis[SPAN, j] * axis[SPAN, j] + axis[WIDTH, j] * axis[WIDTH, j]
        size += (weights.curvature + steep) * square
    for k in range(k_all):
        choose_multiplier(k, pairs, weights.curvature, lead)
        w = slab[MULTIPLIER, k]
        fixed += abs(w) * slab[HALF, k]
        size += abs(w) * (slab[HALF, k] + slab[EFFORT, k])
        for j in range(d):
            axis[PULL, j] -= w * pairs.cuts[k, j]
    return Parts(fixed, abs(slopes) + 2.0 * (m + 2.0) * EPS * steep, (3.0 * m + d + k_all + 64.0) * EPS * size)


@inner_kernel
def rest_of_exp(t: float) -> float:
    """Never below exp(x) - 1 - x for |x| <= t: without cancellation where t is small."""
    e = exp(t) * (1.0 + 32.0 * EPS)
    return min(0.5 * t * t * e, e - 1.0 - t) + 4.0 * EPS * t * t


@inner_kernel
def choose_multiplier(k: int, pairs: Pairs, curvature: float, lead: bool) -> None:
    """A step towards the slab multiplier for which the maximiser lies in the slab, from 0 or from the last one."""
    slab = pairs.slab
    want = 0.0
    if lead:
        for j in range(pairs.cuts.shape[1]):
            want += pairs.cuts[k, j] * pairs.axis[LINEAR, j]
    else:
        want = slab[MULTIPLIER, k] + curvature * slab[ALONG, k]
    free = curvature * slab[HALF, k]
    slab[MULTIPLIER, k] = want - min(max(want, -free), free)


@inner_kernel
def excess(pairs: Pairs, weights: Weights, parts: Parts, probe: int, push: float) -> float:
    """The majorant's maximum without the gains; fills the gains of the inputs. See `fill_gains` for the probe."""
    bend = parts.bend + abs(push)
    return parts.fixed + fill_gains(pairs, weights.curvature, bend, probe, push) + parts.slack
