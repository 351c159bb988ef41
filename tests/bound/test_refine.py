"""Adaptive refinement: covers everything, never raises a bound, counts its nodes, hands back what is open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import models

from daskab import KernelExpansion, certify
from daskab.bound.refine import BOUND, NODE_WIDTH, refine
from daskab.bound.scaled import Scaled


def refined(model: KernelExpansion, changed: int, direction: int, goal: float, budget: int) -> tuple[float, int, int]:
    s = Scaled.of(model)
    root = np.array([0.0, s.width[changed], 0.0, s.width[changed], np.inf])
    heap = np.empty((budget + 4, NODE_WIDTH))
    closed, n_open, used = refine(root, s.centres, s.amplitudes, s.width, changed, direction, goal, budget, heap)
    return max(closed, heap[:n_open, BOUND].max(initial=0.0)), n_open, used


@given(model=models(max_centres=8, max_inputs=5), data=st.data())
def test_refining_never_raises_a_bound(model: KernelExpansion, data: st.DataObject) -> None:
    changed = data.draw(st.integers(0, model.n_inputs - 1))
    direction = data.draw(st.sampled_from([1, -1]))
    before = np.inf
    for budget in (3, 9, 30, 100):
        bound, _, used = refined(model, changed, direction, 0.0, budget)
        assert used <= budget
        assert bound <= before
        before = bound


@given(model=models(max_centres=8, max_inputs=5), data=st.data())
def test_a_bound_covers_every_path(model: KernelExpansion, data: st.DataObject) -> None:
    changed = data.draw(st.integers(0, model.n_inputs - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x = model.lower + (model.upper - model.lower) * rng.random((200, model.n_inputs))
    x_prime = x.copy()
    x_prime[:, changed] = model.lower[changed] + (model.upper - model.lower)[changed] * rng.random(200)
    gain = model.latent(x_prime) - model.latent(x)
    slack = 1e-12 * np.abs(model.weights).sum()
    for direction in (1, -1):
        upward = (x_prime[:, changed] - x[:, changed]) * direction >= 0.0
        bound, _, _ = refined(model, changed, direction, 0.0, 60)
        assert bound >= gain[upward].max(initial=0.0) - slack


def test_the_goal_stops_the_work() -> None:
    model = KernelExpansion([[0.2, 0.4], [0.7, 0.1]], [1.0, -2.0], 0.3, [0, 0], [1, 1])
    tight, _, _ = refined(model, 0, 1, 0.0, 5000)
    bound, n_open, used = refined(model, 0, 1, tight * 1.05, 5000)
    assert tight <= bound <= tight * 1.05
    assert n_open == 0
    assert used < 1000


def test_a_budget_leaves_the_rest_open() -> None:
    model = KernelExpansion([[0.2, 0.4], [0.7, 0.1]], [1.0, -2.0], 0.3, [0, 0], [1, 1])
    bound, n_open, used = refined(model, 0, 1, 0.0, 50)
    assert used <= 50
    assert n_open > 0
    assert bound > 0


@pytest.mark.parametrize("width", [0.0, 5e-324, 1e-300])
def test_an_input_without_room_changes_nothing(width: float) -> None:
    model = KernelExpansion([[0.2, 0.4]], [1.0], 0.3, [0, 0], [width, 1])
    certificate = certify(model)
    assert certificate.complete
    assert 0.0 <= certificate.upper_bound[0] < 1e-12
