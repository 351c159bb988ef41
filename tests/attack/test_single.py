"""One-input attacks: they find what brute force finds, and their witnesses are what they claim to be."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models

from daskab import KernelExpansion, certify, load_model
from daskab.attack.attained import attained_change
from daskab.attack.single import attack_input, change, start_points
from daskab.bound.scaled import Scaled, to_model_units

FOLDER = os.environ.get("DASKAB_PROBLEMS", "")
NAMES = sorted(json.loads((Path(FOLDER) / "attained.json").read_text())) if FOLDER else ["none"]

POINTS = {1: 1, 2: 401, 3: 61}  # a side of the grid of the other inputs, by D
ZOOMS = 6


def attack(model: KernelExpansion, d: int, count: int = 16, seed: int = 0) -> tuple[float, np.ndarray]:
    """F and the point found (D + 1,), scaled."""
    s = Scaled.of(model)
    best = np.empty(model.n_inputs + 1)
    starts = start_points(s.centres, s.amplitudes, s.width, count, seed)
    value = attack_input(s.centres, s.amplitudes, s.width, d, starts, best)
    return value, best


def brute_force(model: KernelExpansion, d: int) -> float:
    """Largest change by input ``d``: an even grid over all inputs, then finer grids around the best point."""
    s = Scaled.of(model)
    others = [j for j in range(model.n_inputs) if j != d]
    low, high = np.zeros(model.n_inputs), s.width.copy()
    own_low = np.zeros(2)
    own_high = np.full(2, s.width[d])
    found = -np.inf
    for _ in range(ZOOMS):
        n = POINTS[model.n_inputs]
        axes = [np.linspace(low[j], high[j], n) for j in others]
        grid = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1) if axes else np.zeros((1, 0))
        outside = np.sum((grid[:, None, :] - s.centres[None, :, others]) ** 2, axis=2)
        factor = np.exp(-0.5 * outside) * s.amplitudes
        own = [np.linspace(own_low[k], own_high[k], 401) for k in range(2)]
        values = [factor @ np.exp(-0.5 * (t[:, None] - s.centres[None, :, d]) ** 2).T for t in own]
        gain = values[1].max(axis=1) - values[0].min(axis=1)
        row = int(np.argmax(gain))
        found = max(found, float(gain[row]))
        at = [own[0][np.argmin(values[0][row])], own[1][np.argmax(values[1][row])]]
        for k in range(2):
            reach = 3.0 * (own_high[k] - own_low[k]) / 400
            own_low[k], own_high[k] = max(at[k] - reach, 0.0), min(at[k] + reach, s.width[d])
        for column, j in enumerate(others):
            reach = 3.0 * (high[j] - low[j]) / (n - 1)
            low[j], high[j] = max(grid[row, column] - reach, 0.0), min(grid[row, column] + reach, s.width[j])
    return found


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_it_finds_the_brute_force_optimum(d: int, seed: int) -> None:
    rng = np.random.default_rng(100 * d + seed)
    m = int(rng.integers(1, 9))
    model = KernelExpansion(
        rng.uniform(-0.3, 1.3, (m, d)), rng.normal(size=m), 10.0 ** rng.uniform(-0.7, 0.5, d), np.zeros(d), np.ones(d)
    )
    scale = float(np.abs(model.weights).sum())
    for changed in range(d):
        value, _ = attack(model, changed)
        assert value == pytest.approx(brute_force(model, changed), abs=1e-6 * scale)


@settings(max_examples=40)
@given(model=models(), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_the_point_found_is_in_the_box_and_worth_what_is_said(
    model: KernelExpansion, seed: int, data: st.DataObject
) -> None:
    d = data.draw(st.integers(0, model.n_inputs - 1))
    s = Scaled.of(model)
    value, best = attack(model, d, count=4, seed=seed)
    assert np.all((best[:-1] >= 0.0) & (best[:-1] <= s.width))
    assert 0.0 <= best[-1] <= s.width[d]
    gradient = np.empty(model.n_inputs + 1)
    # The last climb may have gained less than is worth noting.
    assert change(best, s.centres, s.amplitudes, d, gradient) == pytest.approx(value, rel=1e-11)
    assert value >= 0.0
    x, moved = best[:-1].copy(), best[:-1].copy()
    moved[d] = best[-1]
    latent = model.latent(to_model_units(model, np.stack([x, moved])))
    # In the model's units a box far from zero leaves the coordinates fewer digits.
    far = float(np.max(np.abs(np.concatenate([model.lower, model.upper])) / model.lengthscale.min()))
    assert latent[1] - latent[0] == pytest.approx(value, abs=(1e-12 + 1e-14 * far) * np.abs(model.weights).sum())


@settings(max_examples=40)
@given(model=models(max_centres=8, max_inputs=5), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_the_gradient_is_that_of_the_change(model: KernelExpansion, seed: int, data: st.DataObject) -> None:
    d = data.draw(st.integers(0, model.n_inputs - 1))
    s = Scaled.of(model)
    rng = np.random.default_rng(seed)
    point = np.append(s.width, s.width[d]) * rng.random(model.n_inputs + 1)
    gradient, scrap = np.empty(point.size), np.empty(point.size)
    change(point, s.centres, s.amplitudes, d, gradient)
    step = 1e-5
    for j in range(point.size):
        sides = []
        for sign in (-1.0, 1.0):
            moved = point.copy()
            moved[j] += sign * step
            sides.append(change(moved, s.centres, s.amplitudes, d, scrap))
        numeric = (sides[1] - sides[0]) / (2.0 * step)
        assert gradient[j] == pytest.approx(numeric, abs=1e-7 * np.abs(s.amplitudes).sum())


@settings(max_examples=6)
@given(model=models(max_centres=8, max_inputs=6))
def test_witnesses_are_pairs_of_the_box_that_differ_in_one_input(model: KernelExpansion) -> None:
    certificate = certify(model, method="fixed", slices=1)
    assert certificate.witnesses is not None
    for d in range(model.n_inputs):
        x, x_prime = certificate.witnesses.pair(d)
        for point in (x, x_prime):
            assert np.all((point >= model.lower) & (point <= model.upper))
        others = np.arange(model.n_inputs) != d
        assert x[others].tobytes() == x_prime[others].tobytes()
        assert attained_change(model, x, x_prime) == certificate.attained[d]


def test_an_input_that_cannot_move_attains_nothing() -> None:
    model = KernelExpansion([[0.2, 0.5], [0.8, 0.1]], [1.0, -1.0], 0.4, [0.0, 0.3], [1.0, 0.3])
    value, best = attack(model, 1)
    assert value == 0.0
    assert best[1] == best[2] == 0.0
    assert attack(model, 0)[0] > 0.5


def test_both_directions_are_found() -> None:
    """A bump at either end of the box: the best move is towards it, wherever it is."""
    for at, sign in ((0.0, 1.0), (1.0, 1.0), (0.0, -1.0), (1.0, -1.0)):
        model = KernelExpansion([[at]], [sign], 0.3, [0.0], [1.0])
        value, best = attack(model, 0)
        assert value == pytest.approx(1.0 - np.exp(-0.5 / 0.09), rel=1e-12)
        towards = at if sign > 0 else 1.0 - at
        assert best[1] == pytest.approx(towards / 0.3)


def test_it_is_the_same_every_time() -> None:
    rng = np.random.default_rng(3)
    model = KernelExpansion(rng.random((20, 6)), rng.normal(size=20), 0.7, np.zeros(6), np.ones(6))
    first, again, other = attack(model, 2), attack(model, 2), attack(model, 2, seed=9)
    assert first[0] == again[0]
    assert first[1].tobytes() == again[1].tobytes()
    assert other[0] == pytest.approx(first[0], rel=0.05)


@given(model=models(), count=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
def test_starts_lie_in_the_box(model: KernelExpansion, count: int, seed: int) -> None:
    s = Scaled.of(model)
    points = start_points(s.centres, s.amplitudes, s.width, count, seed)
    assert points.shape[1] == model.n_inputs
    assert points.shape[0] >= 2
    assert np.all((points >= 0.0) & (points <= s.width))
    assert points.flags.c_contiguous


@pytest.mark.parametrize("name", NAMES)
def test_it_attains_what_is_known_to_be_attainable(name: str, problems: Path) -> None:
    table = json.loads((problems / "attained.json").read_text())[name]
    model = load_model(problems / f"{name}.npz")
    attained = [attack(model, d)[0] for d in range(model.n_inputs)]
    k = table["k_attained"]
    known = np.sort(table["attained"])[::-1][:k].sum()
    assert np.sort(attained)[::-1][:k].sum() >= 0.9999 * known
