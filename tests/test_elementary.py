"""exp, log and log1p against ball arithmetic, and that nothing else decides the bits of a result."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from daskab._elementary import LEAST, MOST, PARTS, POWERS, exp, exp_each, log, log1p

U = 2.0**-53
SMALLEST = 2.0**-1074


@pytest.fixture(autouse=True)
def precise():
    """Balls of 200 bits."""
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


def error(value: float, exact: arb) -> arb:
    return abs(arb(value) - exact)


@given(st.floats(LEAST, MOST))
def test_exp_anywhere(x: float) -> None:
    exact = arb(x).exp()
    assert error(exp(x), exact) <= 2.2 * U * exact + SMALLEST


@given(st.integers(round(LEAST * PARTS * 1.4427) + 1, round(MOST * PARTS * 1.4427) - 1), st.integers(-40, 40))
def test_exp_where_its_parts_meet(part: int, away: int) -> None:
    x = (part + 0.5) * math.log(2.0) / PARTS
    x += away * math.ulp(x)
    exact = arb(x).exp()
    assert error(exp(x), exact) <= 2.2 * U * exact + SMALLEST


def test_exp_at_its_ends() -> None:
    assert exp(0.0) == exp(-0.0) == 1.0
    assert exp(MOST) == pytest.approx(math.exp(MOST), rel=1e-15)
    assert exp(math.nextafter(MOST, math.inf)) == exp(math.inf) == math.inf
    assert exp(-745.1) == SMALLEST
    assert exp(math.nextafter(LEAST, -math.inf)) == exp(-1e300) == exp(-math.inf) == 0.0
    assert math.isnan(exp(math.nan))


def test_exp_of_what_is_at_most_zero_is_at_most_one() -> None:
    assert np.all(exp_each(-(10.0 ** np.linspace(-320.0, 3.0, 20_000))) <= 1.0)


def test_the_table_is_rounded_to_nearest() -> None:
    for j, power in enumerate(POWERS.tolist()):
        assert error(power, (arb(2).log() * j / PARTS).exp()) <= 0.5 * math.ulp(power)


@given(st.floats(SMALLEST, 1e308))
def test_log_anywhere(x: float) -> None:
    exact = arb(x).log()
    assert error(log(x), exact) <= 6.0 * U * abs(exact)


@given(st.floats(-0.4, 0.5))
def test_log_near_one(x: float) -> None:
    exact = arb(1.0 + x).log()
    assert error(log(1.0 + x), exact) <= 6.0 * U * abs(exact)


@given(st.floats(0.0, 1e300) | st.floats(0.0, 1e-14))
def test_log1p_anywhere(x: float) -> None:
    exact = arb(x).log1p()
    assert error(log1p(x), exact) <= 9.0 * U * exact


def test_logs_at_their_ends() -> None:
    assert log(1.0) == log1p(0.0) == 0.0
    assert log(0.0) == -math.inf
    assert log(math.inf) == log1p(math.inf) == math.inf
    assert math.isnan(log(-1.0))
    assert math.isnan(log(math.nan))


def test_exp_of_each_keeps_the_shape() -> None:
    values = np.linspace(-3.0, 3.0, 24).reshape(2, 3, 4)
    np.testing.assert_array_equal(exp_each(values[:, ::2]), np.vectorize(exp)(values[:, ::2]))
    assert exp_each(np.empty((0, 3))).shape == (0, 3)
