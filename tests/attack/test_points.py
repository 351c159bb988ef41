"""From given points: what is found is a confident misclassification of that very point, with no change to spare."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from examples import mixed_model
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models, points_of

import daskab
from daskab import KernelExpansion, ModelError, attack_points
from daskab.attack.attained import crosses_thresholds
from daskab.attack.points import AttackedPoints, _Lines


def with_thresholds(model: KernelExpansion, points: np.ndarray) -> KernelExpansion:
    """With about a third of the points on either side confident."""
    low, high = np.percentile(model.latent(points), [30, 70])
    return model.replace(latent_low=float(low), latent_high=float(np.nextafter(max(low, high), np.inf)))


def check(model: KernelExpansion, given: np.ndarray, found: AttackedPoints) -> None:
    low, high = model.latent_low, model.latent_high
    assert low is not None
    assert high is not None
    assert found.points.shape == given.shape
    assert np.all((model.lower <= found.points) & (found.points <= model.upper))
    assert np.array_equal(np.count_nonzero(found.points != given, axis=1), found.n_inputs)
    assert not np.any(found.n_inputs[~found.confident])
    for k in np.flatnonzero(found.n_inputs):
        assert crosses_thresholds(model, given[k], found.points[k])
        for j in np.flatnonzero(found.points[k] != given[k]):
            without = found.points[k].copy()
            without[j] = given[k, j]
            latent, spare = float(model.latent([without])[0]), 1e-9 * model.largest_latent
            assert low - spare < latent < high + spare or not crosses_thresholds(model, given[k], without)


@settings(max_examples=20, deadline=None)
@given(model=models(), seed=st.integers(0, 2**32 - 1))
def test_each_is_what_it_is_said_to_be(model: KernelExpansion, seed: int) -> None:
    points = points_of(model, np.random.default_rng(seed), 9)
    model = with_thresholds(model, points)
    check(model, points, attack_points(model, points))


@pytest.mark.parametrize("seed", range(4))
def test_never_fewer_than_certified(seed: int) -> None:
    model = mixed_model(m=5, d=4, seed=seed)
    free = np.random.default_rng(seed).random((40, 4))
    points = model.lower + (model.upper - model.lower) * free
    model = with_thresholds(model, points)
    certificate = daskab.certify(model, method="fixed", slices=3)
    found = attack_points(model, points)
    check(model, points, found)
    assert certificate.inputs_required is not None
    assert 0 < found.n_inputs[found.n_inputs > 0].min() >= certificate.inputs_required


def one_bump(near: float, far: float, *, sign: float = 1.0) -> KernelExpansion:
    """Of 12 inputs, in a corner: the thresholds are where the inputs' squares sum to ``near`` and to ``far``."""
    low, high = sorted(sign * math.exp(-0.1 * t) for t in (near, far))
    return KernelExpansion(
        np.zeros((1, 12)), [sign], math.sqrt(5.0), np.zeros(12), np.ones(12), latent_low=low, latent_high=high
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_known_answer(sign: float) -> None:
    points = np.zeros((5, 12))
    points[1, :2] = 1.0
    points[2, :4] = 1.0
    points[3, :10] = 1.0
    points[4] = 1.0
    found = attack_points(one_bump(2.5, 8.5, sign=sign), points)
    assert found.n_inputs.tolist() == [9, 7, 0, 8, 10]
    assert found.confident.tolist() == [True, True, False, True, True]


def test_a_peak_between_the_tried_values() -> None:
    at, high = 0.1734, 2.0 * math.exp(-0.125)
    shape: dict[str, Any] = {"latent_low": 0.9 * high, "latent_high": high * (1.0 - 1e-7)}
    model = KernelExpansion([[at - 0.05, 0.0], [at + 0.05, 0.0]], [1.0, 1.0], 0.1, [0.0, 0.0], [0.3, 0.0], **shape)
    found = attack_points(model, [[0.3, 0.0]])
    assert found.n_inputs.tolist() == [1]
    assert found.points[0] == pytest.approx([at, 0.0], abs=1e-4)


def test_an_early_change_is_put_back() -> None:
    """The first input alone does the most; the other two, by the time they have done their part, without it."""
    shape: dict[str, Any] = {"latent_low": 1.3, "latent_high": 1.5}
    model = KernelExpansion(
        [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]], [2.0, 0.9], [2.0, 0.7, 0.7], np.zeros(3), np.ones(3), **shape
    )
    first = _Lines(model).furthest(np.zeros(3), np.zeros(3), 1.0)
    assert first is not None
    assert first[0] == 0
    found = attack_points(model, np.zeros((1, 3)))
    assert found.n_inputs.tolist() == [2]
    assert found.points[0, 0] == 0.0


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -0.2], [1e-300, 1e-300]])
def test_where_nothing_is_found_a_point_stays(weights: list[float]) -> None:
    shape: dict[str, Any] = {"constant": -2.0, "latent_low": -1.0, "latent_high": 1.0}
    model = KernelExpansion([[0.0, 0.0], [1.0, 1.0]], weights, 0.5, [0.0, 0.0], [1.0, 1.0], **shape)
    points = np.array([[0.25, 0.75], [1.0, 0.0]])
    found = attack_points(model, points)
    assert np.array_equal(found.points, points)
    assert found.n_inputs.tolist() == [0, 0]
    assert found.confident.all()


def test_no_points() -> None:
    found = attack_points(one_bump(2.5, 8.5), np.empty((0, 12)))
    assert (found.points.shape, found.n_inputs.shape, found.confident.shape) == ((0, 12), (0,), (0,))


def test_refusals() -> None:
    model = one_bump(2.5, 8.5)
    with pytest.raises(ModelError, match="needs both"):
        attack_points(model.replace(latent_low=None, latent_high=None), np.zeros((1, 12)))
    with pytest.raises(ModelError, match="X: has 11 columns, the model 12 inputs"):
        attack_points(model, np.zeros((1, 11)))
    with pytest.raises(ModelError, match="X: nan at index"):
        attack_points(model, np.full((1, 12), np.nan))
    outside = np.zeros((2, 12))
    outside[1, 3] = 1.5
    with pytest.raises(ModelError, match=r"X: row 1 has 1\.5 for input x3, outside the box from 0\.0 to 1\.0; clip it"):
        attack_points(model, outside)
