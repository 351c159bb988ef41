"""The optimiser of the marginal likelihood: where it stalls it begins elsewhere, keeps the best seen, and says so."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from daskab import DaskabError, DataError, GPClassifier
from daskab.datasets import drop_constant, load_digits, rescale, split
from daskab.model.marginal import RANDOM_STARTS, Climber

POINTS = np.array([[0.0], [1.0], [3.0]])  # 2 apart in the median
BOUNDS = np.log([[1e-3, 1e3], [1e-3, 1e3]])
START = np.zeros(2)


def bowl(theta):
    """Least at a variance and lengthscale of e and 1 / e."""
    away = theta - [1.0, -1.0]
    return float(away @ away) - 7.0, 2.0 * away


def broken_at_first(theta):
    """Nothing near the given values."""
    return (math.nan, theta) if np.all(np.abs(theta) < 0.5) else bowl(theta)


def flat_at_first(theta):
    """Without a gradient along the lengthscale unless that is long."""
    value, gradient = bowl(np.array([theta[0], -1.0]))
    return (
        (value, gradient) if theta[1] < 0.5 else (value - (theta[1] - 0.5) ** 2, gradient - [0.0, 2 * theta[1] - 1.0])
    )


def rough(theta):
    """A gradient that does not belong to the value, so that no step is long enough short."""
    value, gradient = bowl(theta)
    return value, -gradient


def singular(theta):
    raise np.linalg.LinAlgError("3-th leading minor\nnot positive definite")


def climbed(objective, seed=0):
    climber = Climber(POINTS, seed)
    theta, value = climber(objective, START, BOUNDS)
    return theta, value, climber.notes


def test_a_climb_that_converges_says_nothing():
    theta, value, notes = climbed(bowl)
    assert np.allclose(theta, [1.0, -1.0], atol=1e-4)
    assert value == pytest.approx(-7.0)
    assert notes == []


def test_a_start_that_is_not_finite_is_left_for_others():
    theta, _, notes = climbed(broken_at_first)
    assert np.allclose(theta, [1.0, -1.0], atol=1e-4)
    (note,) = notes
    assert note.startswith(
        "the optimiser of the marginal likelihood stalled at the given values (the likelihood or its gradient is not "
        "finite at lengthscale 1 and variance 1); of 5 other starts "
    )
    assert note.endswith(
        "; kept the best point seen, lengthscale 0.367879 and variance 2.71828, log likelihood 7 against no finite one"
    )


def test_a_plateau_is_no_maximum():
    theta, value, notes = climbed(flat_at_first)
    assert theta[1] == pytest.approx(BOUNDS[1, 1])
    assert value < -7.0 - 5.0**2
    assert "(it is flat there along the lengthscale); of 5 other starts" in notes[0]
    assert notes[1] == (
        "the marginal likelihood is highest at the largest lengthscale that was tried, 1000; another given lengthscale "
        "may find better"
    )


def test_a_failed_line_search_is_a_stall():
    theta, value, notes = climbed(rough)
    assert "stalled at the given values (ABNORMAL" in notes[0]
    assert "of 5 other starts 0 converged" in notes[0]
    assert np.array_equal(theta, START)
    assert value == bowl(START)[0]


def test_nothing_finite_anywhere_is_an_error():
    for objective in (singular, lambda theta: (math.inf, theta), lambda theta: (0.0, theta * math.nan)):
        with pytest.raises(DataError) as caught:
            climbed(objective)
        assert str(caught.value) == (
            "lengthscale, variance: the marginal likelihood is not a finite number at lengthscale 1 and variance 1, "
            "nor at 5 other starts; give values that fit the data"
        )


def test_other_starts_are_repeatable_and_in_the_range():
    starts = Climber(POINTS, 3).other_starts(BOUNDS)
    assert np.allclose(starts[0], [0.0, math.log(2.0)])
    assert len(starts) == 1 + RANDOM_STARTS
    assert all(np.all((BOUNDS[:, 0] <= start) & (start <= BOUNDS[:, 1])) for start in starts)
    assert np.array_equal(starts, Climber(POINTS, 3).other_starts(BOUNDS))
    assert not np.array_equal(starts, Climber(POINTS, 4).other_starts(BOUNDS))
    alike = Climber(np.ones((3, 2)), 3).other_starts(BOUNDS)
    assert np.allclose(alike[0], 0.0)


@pytest.fixture(scope="module")
def train():
    return split(rescale(drop_constant(load_digits((3, 5)), 0.5), 0.0, 16.0), 40, seed=0)[0]


def test_a_hopeless_lengthscale_is_left_and_told(train):
    """Far shorter than any two points are apart: the likelihood does not change with it."""
    with pytest.warns(
        ConvergenceWarning, match=r"stalled at the given values \(it is flat there along the lengthscale"
    ):
        classifier = GPClassifier(0.02, optimise=True).fit(train.X, train.y)
    assert classifier.lengthscale_ > 1.0
    again = GPClassifier(1.0, optimise=True).fit(train.X, train.y)
    assert classifier.lengthscale_ == pytest.approx(again.lengthscale_, rel=0.05)
    assert again.notes_ == ()


def test_the_edge_of_the_range_is_told_once_and_in_our_words(train):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier = GPClassifier(1e4, optimise=True).fit(train.X, train.y)
    told = [str(one.message) for one in caught]
    assert told == list(classifier.notes_)
    assert any("highest at the" in note for note in told)
    assert not any("k1__constant_value" in note for note in told)


@pytest.mark.parametrize("optimise", [False, True])
def test_what_no_kernel_can_be_made_of_is_one_line(train, optimise):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DaskabError) as caught:
            GPClassifier(1e-160, optimise=optimise).fit(train.X, train.y)
    assert "\n" not in str(caught.value)
    assert "lengthscale" in str(caught.value)


def test_a_mode_that_is_missed_is_told(train):
    with pytest.warns(ConvergenceWarning, match="latent mode stopped short of it: probabilities are off by up to"):
        GPClassifier(1e4, 1e9).fit(train.X, train.y)
