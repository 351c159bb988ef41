from __future__ import annotations

import math

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from daskab.bound.rounding import EPS
from daskab.joint.midpoint.lines import highest_over_line, slope_above
from daskab.joint.midpoint.majorant import rest_of_exp

ctx.prec = 150

SHARES = st.floats(1e-3, 1.0 - 1e-3)
PLACES = st.floats(-6.0, 6.0)


def above(lam: float, mu: float, slope: float, foot: float, s: float) -> float:
    """How far the line lies above lam e^s - mu e^-s, exactly."""
    x = arb(s)
    return float(arb(foot) + arb(slope) * x - arb(lam) * x.exp() + arb(mu) * (-x).exp())


@given(SHARES, PLACES, PLACES, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20), st.floats(0.0, 1.0))
def test_the_line_lies_above(lam: float, a: float, b: float, shares: list[float], at: float) -> None:
    low, high = sorted((a, b))
    mu = 1.0 - lam
    slope = slope_above(lam, mu, low, high, low + at * (high - low))
    foot = highest_over_line(lam, mu, slope, low, high)
    size = 64.0 * EPS * math.exp(max(abs(low), abs(high))) * (1.0 + max(abs(low), abs(high)))
    for share in (0.0, 1.0, *shares):
        s = min(max(low + share * (high - low), low), high)
        assert above(lam, mu, slope, foot, s) >= -size


@pytest.mark.parametrize("at", [-690.0, -400.0, -356.0, -200.0, 200.0, 356.0, 690.0])
@pytest.mark.parametrize("half", [0.1, 1.0, 3.0])
def test_the_line_lies_above_where_squares_overflow(at: float, half: float) -> None:
    low, high = at - half, at + half
    slope = slope_above(0.5, 0.5, low, high, at)
    foot = highest_over_line(0.5, 0.5, slope, low, high)
    x = arb(at)
    exact = x.exp() / 2 - (-x).exp() / 2
    assert arb(foot) + arb(slope) * x >= exact - abs(exact) * 1e-11


@given(SHARES, PLACES, PLACES, st.floats(0.0, 1.0))
def test_the_line_touches(lam: float, a: float, b: float, at: float) -> None:
    low, high = sorted((a, b))
    mu = 1.0 - lam
    s = low + at * (high - low)
    slope = slope_above(lam, mu, low, high, s)
    foot = highest_over_line(lam, mu, slope, low, high)
    # No line can be below the chord of the ends, and this one is not far above the function at its place.
    spread = (high - low) ** 2 * math.exp(max(abs(low), abs(high)))
    assert above(lam, mu, slope, foot, min(max(s, low), high)) <= 0.5 * spread + 1e-9 * math.exp(6.0)


@pytest.mark.parametrize("exponent", range(-12, 3))
def test_the_rest_of_exp(exponent: int) -> None:
    t = 1.7 * 10.0**exponent
    rest = rest_of_exp(t)
    for x in (arb(t), -arb(t)):
        assert arb(rest) >= x.exp() - 1 - x
    assert rest <= float(arb(t).exp() - 1 - arb(t)) * (1.0 + 0.5 * t) + 1e-15 * t * t + 1e-13 * math.exp(t)
