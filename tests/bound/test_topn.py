"""Sums of the n largest, and what follows from them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskab import BoundError
from daskab.bound.goals import goals, trivial_bound
from daskab.bound.topn import inputs_required, largest_sums

positive = st.lists(st.floats(0, 1e6), min_size=1, max_size=30)


@given(values=positive)
def test_sums_are_on_their_side_of_the_exact_sum(values: list[float]) -> None:
    up = largest_sums(values, towards=math.inf)
    down = largest_sums(values, towards=-math.inf)
    exact = Fraction(0)
    for n, value in enumerate(sorted(values, reverse=True)):
        exact += Fraction(value)
        assert Fraction(float(down[n])) < exact < Fraction(float(up[n]))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1e-300])
def test_a_value_that_is_no_bound_is_refused(bad: float) -> None:
    with pytest.raises(BoundError, match="nothing is certified"):
        largest_sums([1.0, bad, 2.0], towards=math.inf)


def test_inputs_required() -> None:
    sums = np.array([1.0, 1.5, 1.75])
    assert inputs_required(sums, 0.5) == 1
    assert inputs_required(sums, 1.0) == 1
    assert inputs_required(sums, 1.2) == 2
    assert inputs_required(sums, 1.75) == 3
    assert inputs_required(sums, 2.0) is None
    assert inputs_required(sums, math.nan) == 1


@given(attained=positive, delta=st.floats(0.01, 1e7), rtol=st.floats(1e-4, 0.5))
def test_goals_keep_the_sum_within_tolerance(attained: list[float], delta: float, rtol: float) -> None:
    values = np.array(attained)
    goal = goals(values, np.array([0.0]), delta, rtol)
    assert np.all(goal >= values)
    n = inputs_required(largest_sums(values, towards=-math.inf), delta) or len(attained)
    best = np.sort(values)[::-1][:n].sum()
    assert np.sort(goal)[::-1][:n].sum() <= best * (1 + rtol) * (1 + 1e-12)


def test_a_close_delta_tightens_the_goals() -> None:
    values = np.array([1.0, 0.5, 0.25])
    delta = 1.5 * (1 + 1e-4)
    goal = goals(values, np.array([0.0]), delta, 0.01)
    assert np.sort(goal)[::-1][:2].sum() < delta
    assert np.sort(goals(values, np.array([0.0]), 1.6, 0.01))[::-1][:2].sum() == pytest.approx(1.515)


def test_trivial_bound_covers_every_change() -> None:
    amplitudes = np.array([3.0, -1.0, 1e-3])
    assert trivial_bound(amplitudes) > 4.001
    assert trivial_bound(amplitudes) == pytest.approx(4.001)
