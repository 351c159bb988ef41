from __future__ import annotations

import itertools

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import adversarial, at_thresholds, best_pair
from strategies import models

from daskab import KernelExpansion
from daskab.attack.several import fewest_inputs
from daskab.bound.reach import free_reach
from daskab.errors import ModelError
from daskab.joint.attacks import Attacks
from daskab.joint.midpoint import pairs as rows
from daskab.joint.midpoint.gains import fill_gains, select_largest, sort_largest
from daskab.joint.midpoint.majorant import Weights, excess, fill_majorant, refer
from daskab.joint.midpoint.nodes import EXCLUDED, FIRST, load
from daskab.joint.midpoint.search import can_search, root_node, search_nodes

ctx.prec = 150


def excluded(model: KernelExpansion, most: int, budget: int = 4000) -> int:
    attacks = Attacks.of(model, most)
    return int(search_nodes(root_node(attacks), attacks, budget)[1][:, EXCLUDED].min(initial=most))


def exact_excess(a: Attacks, weights: Weights, y: np.ndarray, d: np.ndarray, z: np.ndarray, margin: float) -> arb:
    """e^phi (lam (f(x') - high) + mu (-f(x) - low)) of a pair, thresholds raised by ``margin`` to the true ones."""
    ends = []
    for side in (1, -1):
        total = arb(0)
        for centre, amplitude in zip(a.centres.tolist(), a.amplitudes.tolist(), strict=True):
            t = arb(0)
            for yj, dj, cj in zip(y.tolist(), d.tolist(), centre, strict=True):
                t += (arb(yj) + side * arb(dj) / 2 - arb(cj)) ** 2
            total += arb(amplitude) * (-t / 2).exp()
        ends.append(total)
    phi = arb(0)
    for yj, dj, zj in zip(y.tolist(), d.tolist(), z.tolist(), strict=True):
        phi += (arb(yj) - arb(zj)) ** 2 / 2 + arb(dj) ** 2 / 8
    high, low = arb(a.high) + arb(margin), arb(a.low) + arb(margin)
    return phi.exp() * (arb(weights.lam) * (ends[0] - high) + arb(weights.mu) * (-ends[1] - low))


@settings(deadline=None, max_examples=100)
@given(models(max_centres=6, max_inputs=6, lengthscales=(0.3, 10.0), thresholds=True), st.integers(0, 2**32 - 1))
def test_a_nodes_majorant_lies_above_all_its_pairs(model: KernelExpansion, seed: int) -> None:
    rng = np.random.default_rng(seed)
    if not can_search(model.n_centres, model.n_inputs) or not np.any(model.weights):
        return
    n = int(rng.integers(1, model.n_inputs + 1))
    attacks = Attacks.of(model, n)
    width = attacks.width
    d = np.zeros(width.size)
    moved = rng.choice(width.size, n, replace=False)
    d[moved] = width[moved] * (rng.choice([-1.0, 1.0], n) if rng.random() < 0.5 else rng.uniform(-1, 1, n))
    y = 0.5 * width + (rng.random(width.size) - 0.5) * (width - np.abs(d))
    work = rows.pairs_of(attacks)
    node = root_node(attacks)[0]
    # A part of the root around the pair.
    k, m = work.cuts.shape[0], model.n_centres
    at, shrink = work.cuts @ y, rng.choice([1.0, 0.3, 1e-3, 1e-9])
    for low, high, value in (
        (slice(FIRST, FIRST + k), slice(FIRST + k, FIRST + 2 * k), at),
        (
            slice(FIRST + 2 * k, FIRST + 2 * k + m),
            slice(FIRST + 2 * k + m, FIRST + 2 * k + 2 * m),
            0.5 * (attacks.centres - y) @ d,
        ),
    ):
        spare = 1e-12 * (1.0 + np.abs(value))
        assert np.all(node[low] <= value + spare)
        assert np.all(node[high] >= value - spare)
        node[low] = np.minimum(value - shrink * (value - node[low]), value) - spare
        node[high] = np.maximum(value + shrink * (node[high] - value), value) + spare
    node[-m:] = node[-3 * m : -2 * m] + rng.random(m) * (node[-2 * m : -m] - node[-3 * m : -2 * m])
    load(node, work)
    refer(work)
    for _ in range(3):
        lam = float(rng.uniform(0.05, 0.95))
        t = lam * attacks.high + (1.0 - lam) * attacks.low
        if t <= 0.0:
            continue
        phi = float(rng.uniform(0.0, 1.0))
        weights = Weights(lam, 1.0 - lam, t * np.exp(phi) * (1.0 - 1e-14), phi)
        parts = fill_majorant(work, weights, lead=True)
        bound = excess(work, weights, parts, 0, 0.0) + select_largest(work, n)
        margin = float(np.nextafter(model.latent_high - model.constant, -np.inf)) - attacks.high
        exact = exact_excess(attacks, weights, y, d, work.axis[rows.REFERENCE], max(margin, 0.0))
        assert not np.isfinite(bound) or not arb(bound) < exact
        # The same with a multiplier on one s, as ranges are narrowed.
        i, push = int(rng.integers(m)), float(rng.normal())
        pushed = excess(work, weights, parts, i, push) + select_largest(work, n)
        s = sum(((arb(c) - arb(v)) * arb(e) / 2 for c, v, e in zip(attacks.centres[i], y, d, strict=True)), arb(0))
        size = 1e-13 * abs(push) * float(work.term[rows.ARMS, i])
        assert not np.isfinite(pushed) or not arb(pushed) + arb(size) < exact + arb(push) * s


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1))
def test_gains_are_the_maximum_over_moves_and_midpoints(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width = rng.random(5) * 2.0
    work = rows.pairs_of(Attacks(rng.random((2, 5)), np.array([1.0, -1.0]), width, free_reach(5), 1.0, 1.0, 2, False))
    work.axis[rows.PULL] = rng.normal(size=5) * 3.0
    work.axis[rows.ARM] = rng.normal(size=5)
    work.axis[rows.REFERENCE] = rng.normal(size=5)
    curvature, bend = float(rng.uniform(0.1, 5.0)), float(rng.uniform(0.0, 2.0))
    total = fill_gains(work, curvature, bend, 0, 0.0)
    assert total == pytest.approx(work.axis[rows.BASE].sum())
    share = np.linspace(0.0, 1.0, 401)
    for j, w in enumerate(width):
        u = w * share[None, :] - work.axis[rows.REFERENCE, j]
        theta = share[:, None]
        value = (
            theta * w * abs(work.axis[rows.ARM, j])
            + 0.25 * bend * w * w * theta * (1.0 - theta)
            - curvature * (theta * w) ** 2 / 8.0
            + work.axis[rows.PULL, j] * u
            - 0.5 * curvature * u * u
        )
        value[(u + work.axis[rows.REFERENCE, j] < 0.5 * theta * w - 1e-12)] = -np.inf
        value[(u + work.axis[rows.REFERENCE, j] > w - 0.5 * theta * w + 1e-12)] = -np.inf
        assert work.axis[rows.BASE, j] >= value[0].max() - 1e-12
        assert work.axis[rows.BASE, j] + work.axis[rows.GAIN, j] >= value.max() - 1e-12
        assert work.axis[rows.BASE, j] + work.axis[rows.GAIN, j] <= value.max() + 0.02 * (1.0 + w)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 41))
def test_the_largest_gains_come_first(gains: list[int], n: int) -> None:
    d = len(gains)
    work = rows.pairs_of(Attacks(np.zeros((1, d)), np.ones(1), np.ones(d), free_reach(d), 1.0, 1.0, 1, False))
    work.gain[:] = gains
    wanted = sorted(gains, reverse=True)[:n]
    assert select_largest(work, n) == sum(wanted)
    count = min(n, d)
    sort_largest(work, count)
    assert [gains[j] for j in work.order[:count]] == wanted
    assert sorted(work.order) == list(range(d))


@pytest.mark.parametrize("seed", range(30))
def test_children_cover_their_parent_and_no_attack_is_lost(seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    model = adversarial(rng)
    pair = best_pair(model, rng)
    if pair is None or not can_search(model.n_centres, model.n_inputs):
        pytest.skip("no pair to hide")
    tight = at_thresholds(model, *pair)
    n = int(np.sum(pair[0] != pair[1]))
    attacks = Attacks.of(tight, n)
    nodes = root_node(attacks)
    for _ in range(4):  # round after round, as tasks of a run do
        _, nodes = search_nodes(nodes, attacks, 8)
        assert nodes[:, EXCLUDED].min() < n


def test_agrees_with_trying_every_set_of_inputs() -> None:
    """On small boxes: what the search excludes no pair of corners does; and it excludes nearly all else."""
    d = 4
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=d)))
    exact = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 9])
        bare = KernelExpansion(rng.random((3, d)), rng.normal(size=3) * 3.0, 1.5, np.zeros(d), np.ones(d))
        latent = bare.latent(corners)
        low, high = np.quantile(latent, [0.2, 0.8])
        model = bare.replace(latent_low=low, latent_high=high)
        fewest = min(int(np.sum(a != b)) for a in corners[latent <= low] for b in corners[latent >= high])
        assert excluded(model, d) < fewest
        found = fewest_inputs(model)
        assert found is not None
        exact += excluded(model, found.n_inputs - 1) == found.n_inputs - 1
    assert exact >= 38


def test_excludes_everything_where_no_threshold_can_be_reached() -> None:
    model = KernelExpansion(
        [[0.2, 0.4], [0.7, 0.6]], [1.0, -1.0], 1.0, [0, 0], [1, 1], latent_low=-2.0, latent_high=2.0
    )
    assert excluded(model, 2) == 2


@pytest.mark.parametrize("shift", [0.0, 3.0, -40.0])
def test_thresholds_on_one_side_of_the_constant(shift: float) -> None:
    """Both thresholds above or below c0: no share but those near one end is allowed."""
    centres = [[0.2, 0.3, 0.4], [0.7, 0.6, 0.9]]
    bare = KernelExpansion(centres, [1.0, 0.8], 1.0, [0] * 3, [1] * 3, constant=shift)
    pair = np.array([[0.4, 0.4, 0.6], [0.0, 1.0, 0.0]])
    low, high = sorted(bare.latent(pair).tolist())
    model = bare.replace(latent_low=low, latent_high=high)
    found = fewest_inputs(model)
    assert found is not None
    assert found.n_inputs > 1
    assert excluded(model, 3) == found.n_inputs - 1


def test_an_input_that_cannot_change_and_far_centres() -> None:
    centres = [[0.1, 0.5, 0.2], [0.9, 0.5, 0.1], [90.0, 0.5, -80.0]]
    model = KernelExpansion(centres, [1.0, -1.0, 5.0], 0.5, [0, 0.5, 0], [1, 0.5, 1], latent_low=-0.4, latent_high=0.4)
    found = fewest_inputs(model)
    assert found is not None
    assert excluded(model, 3) == found.n_inputs - 1


def test_thresholds_lost_in_rounding_exclude_nothing() -> None:
    """The error of f is larger than the thresholds' distance: no share of the two ends proves anything."""
    attacks = Attacks(
        np.array([[0.2], [0.7]]), np.array([1e-3, -1e-3]), np.ones(1), free_reach(1), -0.5, -0.25, 1, False
    )
    assert search_nodes(root_node(attacks), attacks, 50)[1][:, EXCLUDED].max() == 0.0
    attacks = attacks._replace(low=0.5)  # T = 0 at the very end of the range only
    assert search_nodes(root_node(attacks), attacks, 50)[1][:, EXCLUDED].max(initial=0.0) <= 1.0


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e-200, 1e-260, 1e140])
def test_amplitudes_of_any_size(scale: float) -> None:
    model = KernelExpansion(
        [[37.0], [0.0]], [scale, -scale], 1.0, [0], [37], latent_low=-0.5 * scale, latent_high=0.5 * scale
    )
    assert excluded(model, 1) == 0


def test_a_share_out_of_range_excludes_nothing() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        high, low = (-rng.random(2)).tolist()
        attacks = Attacks(rng.random((3, 3)), rng.normal(size=3), np.ones(3), free_reach(3), high, low, 3, False)
        assert search_nodes(root_node(attacks), attacks, 20)[1][:, EXCLUDED].max() == 0.0


def test_needs_thresholds() -> None:
    with pytest.raises(ModelError, match="latent_low"):
        Attacks.of(KernelExpansion([[0.0]], [1.0], 1.0, [0], [1]), 1)


def test_many_directions_are_refused() -> None:
    assert can_search(1, 400)
    assert can_search(9, 400)
    assert can_search(400, 8)
    assert not can_search(10, 9)


@pytest.mark.parametrize("width", [40.0, 60.0, 200.0])
def test_in_a_wide_box_what_is_left_open_is_made_of_numbers(width: float) -> None:
    rng = np.random.default_rng(1)
    centres, ends = width * rng.random((4, 6)), ([0.0] * 6, [width] * 6)
    model = KernelExpansion(centres, rng.normal(size=4), 1.0, *ends, latent_low=-0.3, latent_high=0.3)
    attacks = Attacks.of(model, 5)
    left = search_nodes(root_node(attacks), attacks, 60)[1]
    assert left.shape[0] > 0
    assert np.all(np.isfinite(left))
