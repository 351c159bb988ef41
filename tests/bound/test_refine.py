"""Adaptive refinement: covers everything, never raises a bound, counts its nodes, hands back what is open."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models

from daskab import KernelExpansion, certify
from daskab.bound.contributions import bump
from daskab.bound.frontier import frontier_of
from daskab.bound.item import item_of
from daskab.bound.nodes import (
    BOUND,
    FIRST,
    SPLIT,
    SPLIT_BOTH,
    SPLIT_CUT,
    SPLIT_FROM,
    SPLIT_TO,
    STUCK,
    UNEXAMINED,
    bulge,
    node_width,
    set_cells,
    set_whole_box,
    split_node,
)
from daskab.bound.refine import refine
from daskab.bound.scaled import Scaled


def whole_node(model: KernelExpansion, changed: int, direction: int) -> tuple[np.ndarray, object]:
    s = Scaled.of(model)
    item = item_of(s.centres, s.amplitudes, s.width, s.reach, changed, direction)
    root = np.zeros(node_width(model.n_centres, model.n_inputs - 1))
    set_cells(root, 0.0, s.width[changed], 0.0, s.width[changed])
    set_whole_box(root, FIRST + item.centres.shape[1], item)
    root[SPLIT] = UNEXAMINED
    root[BOUND] = 2.0 * np.abs(s.amplitudes).sum()
    return root, item


def refined(model: KernelExpansion, changed: int, direction: int, goal: float, budget: int) -> tuple[float, int, int]:
    root, item = whole_node(model, changed, direction)
    frontier = frontier_of(budget, node_width(model.n_centres, model.n_inputs - 1))
    closed, n_open, used = refine(root, item, goal, budget, frontier)
    return max(closed, frontier.pool[:n_open, BOUND].max(initial=0.0)), n_open, used


@settings(max_examples=50)
@given(model=models(max_centres=8, max_inputs=5), data=st.data())
def test_refining_never_raises_a_bound(model: KernelExpansion, data: st.DataObject) -> None:
    changed = data.draw(st.integers(0, model.n_inputs - 1))
    direction = data.draw(st.sampled_from([1, -1]))
    before = np.inf
    for budget in (3, 9, 30, 100):
        bound, _, used = refined(model, changed, direction, 1e-9, budget)
        assert used <= budget
        assert bound <= before
        before = bound


@given(model=models(max_centres=8, max_inputs=5), share=st.floats(0.9, 1.5), data=st.data())
def test_a_bound_covers_every_path(model: KernelExpansion, share: float, data: st.DataObject) -> None:
    changed = data.draw(st.integers(0, model.n_inputs - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x = model.lower + (model.upper - model.lower) * rng.random((200, model.n_inputs))
    x_prime = x.copy()
    x_prime[:, changed] = model.lower[changed] + (model.upper - model.lower)[changed] * rng.random(200)
    gain = model.latent(x_prime) - model.latent(x)
    slack = 1e-12 * np.abs(model.weights).sum()
    for direction in (1, -1):
        upward = (x_prime[:, changed] - x[:, changed]) * direction >= 0.0
        best = gain[upward].max(initial=0.0)
        # Also goals below what is attained, which must never be claimed.
        bound, _, _ = refined(model, changed, direction, max(share * best, 1e-9), 60)
        assert bound >= best - slack


def test_the_goal_stops_the_work() -> None:
    model = KernelExpansion([[0.2, 0.4], [0.7, 0.1]], [1.0, -2.0], 0.3, [0, 0], [1, 1])
    attained = certify(model).attained[0]
    bound, n_open, used = max(refined(model, 0, sign, 1.05 * attained, 5000) for sign in (1, -1))
    assert attained <= bound <= 1.05 * attained
    assert n_open == 0
    assert used < 1000


def test_a_budget_leaves_the_rest_open() -> None:
    model = KernelExpansion([[0.2, 0.4], [0.7, 0.1]], [1.0, -2.0], 0.3, [0, 0], [1, 1])
    bound, n_open, used = max(refined(model, 0, sign, 1e-9, 50) for sign in (1, -1))
    assert used <= 50
    assert n_open > 0
    assert bound > 0


@pytest.mark.parametrize("width", [0.0, 5e-324, 1e-300])
def test_an_input_without_room_changes_nothing(width: float) -> None:
    model = KernelExpansion([[0.2, 0.4]], [1.0], 0.3, [0, 0], [width, 1])
    certificate = certify(model)
    assert certificate.complete
    assert 0.0 <= certificate.upper_bound[0] < 1e-10


@given(model=models(max_centres=6, max_inputs=4), seed=st.integers(0, 2**32 - 1))
def test_children_cover_their_node(model: KernelExpansion, seed: int) -> None:
    rng = np.random.default_rng(seed)
    changed = int(rng.integers(model.n_inputs))
    root, item = whole_node(model, changed, 1)
    width = model.n_inputs - 1
    children = np.empty((3, root.size))
    n_cuts = (root.size - 7 - width) // 2
    for how in (SPLIT_BOTH, *(SPLIT_CUT + k for k in range(n_cuts))):
        root[SPLIT] = how
        n = split_node(root, item, children)
        if n == 0:
            continue
        t = np.sort(rng.random((200, 2)), axis=1) * root[1]
        for a, b in t:
            holding = [c for c in children[:n] if c[0] <= a <= c[1] and c[2] <= b <= c[3]]
            assert holding
        for k in range(n_cuts):
            low, high = 7 + width + k, 7 + width + n_cuts + k
            ranges = sorted({(c[low], c[high]) for c in children[:n]})
            assert ranges[0][0] == root[low]
            assert ranges[-1][1] == root[high]
            assert all(left[1] >= right[0] for left, right in pairwise(ranges))
    set_cells(root, 0.0, 0.25 * root[1], 0.5 * root[1], root[1])
    for how, column in ((SPLIT_FROM, 0), (SPLIT_TO, 2)):
        root[SPLIT] = how
        n = split_node(root, item, children)
        if n:
            assert children[0, column] == root[column]
            assert children[0, column + 1] == children[1, column]
            assert children[1, column + 1] == root[column + 1]
    root[SPLIT] = STUCK
    assert split_node(root, item, children) == 0


@given(
    amplitude=st.floats(-10, 10),
    centre=st.floats(-3, 6),
    low=st.floats(0, 3),
    step=st.floats(1e-6, 3),
)
def test_the_bulge_covers_the_rise_above_the_chord(amplitude: float, centre: float, low: float, step: float) -> None:
    high = low + step
    most = bulge(amplitude, centre, low, high)
    at_low, at_high = amplitude * bump(low, centre), amplitude * bump(high, centre)
    for share in np.linspace(0.0, 1.0, 41):
        t = (1.0 - share) * low + share * high
        chord = (1.0 - share) * at_low + share * at_high
        assert amplitude * bump(t, centre) - chord <= most + 1e-14 * abs(amplitude) + 1e-300
    assert most <= abs(amplitude) * step * step / 8 * 1.0001
    assert math.isfinite(most)
