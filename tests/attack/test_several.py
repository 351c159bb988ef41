"""The n-input attack: its witnesses are what they claim to be, and it finds small ones (method 6)."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskab import KernelExpansion, load_model
from daskab.attack.ascent import WORK_ROWS, ascend_pair, value_gradient
from daskab.attack.line import MOST, rate_inputs, tried_values
from daskab.attack.several import SeveralWitness, fewest_inputs
from daskab.bound.reach import free_reach
from daskab.errors import ModelError

FOLDER = os.environ.get("DASKAB_PROBLEMS", "")

# Fewest inputs found, where that is not the `k_joint_attack` of the problems' own table. In two it is more:
# that table asks only for a change of Delta, which three inputs make with both ends beyond one threshold.
# (For the second, and for every problem with k <= 5, ascending from all sets of k - 1 inputs finds none.)
MEASURED = {
    "mnist28_0v1_l2.154_m4": 15,
    "mnist8_3v5_l1_m5": 4,
    "mnist3_lowhigh": 2,
    "mnist15_0v1_l4_m4": 31,
    "mnist28_0v1_l10_m4": 121,
    "mnist28_0v1_l21.544_m4": 135,
    "mnist28_0v1_l46.416_m4": 139,
}


def single_bump(n_inputs: int, needed: float, *, sign: float = 1.0) -> KernelExpansion:
    """One centre in a corner; the thresholds are ``needed`` full moves apart, wherever they are made.

    log |f| is -q times the sum of squares and a full move adds q = 0.1 to it, so n inputs are enough
    exactly if n >= needed.
    """
    near, far = math.exp(-0.1 * 2.5), math.exp(-0.1 * (2.5 + needed))
    return KernelExpansion(
        centres=np.zeros((1, n_inputs)),
        weights=[sign],
        lengthscale=math.sqrt(5.0),
        lower=np.zeros(n_inputs),
        upper=np.ones(n_inputs),
        latent_low=far if sign > 0 else -near,
        latent_high=near if sign > 0 else -far,
    )


def random_model(seed: int, *, frozen: int = 0) -> KernelExpansion:
    """Weights of both signs, per-input units, a box away from zero, a constant, some frozen inputs."""
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(2, 12)) + frozen, int(rng.choice([2, 5, 30]))
    lower = rng.normal(size=d) * 100.0
    size = rng.uniform(0.1, 10.0, d)
    upper = lower + np.where(np.arange(d) < frozen, 0.0, size)
    centres = lower + rng.uniform(-0.2, 1.2, (m, d)) * size
    shape: dict[str, Any] = {
        "centres": centres,
        "weights": rng.normal(size=m),
        "lengthscale": size * rng.choice([0.5, 1.0, 3.0]),
        "lower": lower,
        "upper": upper,
        "constant": float(rng.normal()),
        "variance": 2.0,
    }
    f = KernelExpansion(**shape).latent(rng.uniform(lower, upper, (300, d)))
    low, high = np.percentile(f, [5, 95])
    return KernelExpansion(**shape, latent_low=low, latent_high=high)


def check(model: KernelExpansion, witness: SeveralWitness | None) -> SeveralWitness:
    assert witness is not None
    x, x_prime = witness.x, witness.x_prime
    latent = model.latent([x, x_prime])
    assert model.latent_low is not None
    assert model.latent_high is not None
    assert latent[0] <= model.latent_low
    assert latent[1] >= model.latent_high
    assert (witness.latent_x, witness.latent_x_prime) == (latent[0], latent[1])
    assert np.count_nonzero(x != x_prime) == witness.n_inputs > 0
    for point in (x, x_prime):
        assert point.shape == (model.n_inputs,)
        assert np.all((model.lower <= point) & (point <= model.upper))
    return witness


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("n_inputs", "needed", "answer"), [(1, 0.9, 1), (20, 6.5, 7), (20, 6.98, 7), (40, 30.5, 31)])
def test_known_answer(n_inputs: int, needed: float, answer: int, sign: float) -> None:
    if n_inputs == 1:
        # A single input cannot be 2.5 moves from the centre: put the near threshold at half a move.
        model = KernelExpansion([[0.0]], [sign], math.sqrt(5.0), [0.0], [2.0], **_levels(0.5, needed, sign))
    else:
        model = single_bump(n_inputs, needed, sign=sign)
    assert check(model, fewest_inputs(model)).n_inputs == answer


def _levels(near: float, needed: float, sign: float) -> dict[str, Any]:
    ends = sorted((sign * math.exp(-0.1 * near), sign * math.exp(-0.1 * (near + needed))))
    return {"latent_low": ends[0], "latent_high": ends[1]}


def test_nearly_linear() -> None:
    n_inputs = 30
    # Lengthscale 1000: f rises by the same amount along every input, to a few parts in a million.
    centres = np.stack((np.full(n_inputs, 1.0), np.zeros(n_inputs)))
    free = KernelExpansion(centres, [1e6, -1e6], 1e3, np.zeros(n_inputs), np.ones(n_inputs))
    low, high = free.latent(np.vstack((np.zeros(n_inputs), np.ones(n_inputs))))
    step = (high - low) / n_inputs
    levels: dict[str, Any] = {"latent_low": low + 9.6 * step, "latent_high": low + 21.0 * step}
    model = KernelExpansion(centres, [1e6, -1e6], 1e3, free.lower, free.upper, **levels)
    assert check(model, fewest_inputs(model)).n_inputs == 12


@pytest.mark.parametrize("seed", range(12))
def test_witness_is_one(seed: int) -> None:
    model = random_model(seed)
    check(model, fewest_inputs(model, n_starts=6))


@pytest.mark.parametrize("seed", range(4))
def test_units_do_not_matter(seed: int) -> None:
    model = random_model(seed)
    scaled = KernelExpansion(
        (model.centres - model.lower) / model.lengthscale,
        model.weights,
        1.0,
        np.zeros(model.n_inputs),
        (model.upper - model.lower) / model.lengthscale,
        model.variance,
        model.constant,
        model.latent_low,
        model.latent_high,
    )
    a, b = check(model, fewest_inputs(model)), check(scaled, fewest_inputs(scaled))
    assert a.n_inputs == b.n_inputs


def test_large_weights() -> None:
    small = random_model(3)
    assert small.latent_low is not None
    assert small.latent_high is not None
    large = KernelExpansion(
        small.centres,
        small.weights * 1e140,
        small.lengthscale,
        small.lower,
        small.upper,
        small.variance,
        small.constant * 1e140,
        small.latent_low * 1e140,
        small.latent_high * 1e140,
    )
    found = check(large, fewest_inputs(large))
    assert found.n_inputs == check(small, fewest_inputs(small)).n_inputs


def test_frozen_inputs_stay() -> None:
    model = random_model(1, frozen=3)
    witness = check(model, fewest_inputs(model))
    assert np.array_equal(witness.x[:3], model.lower[:3])
    assert np.array_equal(witness.x_prime[:3], model.lower[:3])


def test_same_arguments_same_answer() -> None:
    model = random_model(5)
    starts = np.random.default_rng(0).uniform(model.lower, model.upper, (3, model.n_inputs))
    a, b = (check(model, fewest_inputs(model, starts, seed=7, n_starts=5)) for _ in range(2))
    assert np.array_equal(a.x, b.x)
    assert np.array_equal(a.x_prime, b.x_prime)


def test_given_starts_are_used_and_clipped() -> None:
    model = single_bump(20, 6.5)
    assert fewest_inputs(model, n_starts=0) is None
    assert check(model, fewest_inputs(model, np.full((1, 20), 7.0), n_starts=0)).n_inputs == 7


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.01), (1e-12, 0.9), (-2.0, 3.0)])
def test_unreachable_thresholds(low: float, high: float) -> None:
    levels: dict[str, Any] = {"latent_low": low, "latent_high": high}
    model = KernelExpansion(np.zeros((1, 4)), [1.0], 1.0, np.zeros(4), np.ones(4), **levels)
    assert fewest_inputs(model) is None


def test_zero_weights() -> None:
    model = KernelExpansion([[0.0]], [0.0], 1.0, [0.0], [1.0], latent_low=-1.0, latent_high=1.0)
    assert fewest_inputs(model) is None


def test_refusals() -> None:
    free = KernelExpansion([[0.0, 0.0]], [1.0], 1.0, [0.0, 0.0], [1.0, 1.0])
    with pytest.raises(ModelError, match="needs both"):
        fewest_inputs(free)
    model = single_bump(3, 1.5)
    for starts in (np.zeros((2, 4)), np.zeros(3), np.full((1, 3), np.nan)):
        with pytest.raises(ModelError, match="starts"):
            fewest_inputs(model, starts)
    with pytest.raises(ModelError, match="n_starts"):
        fewest_inputs(model, n_starts=-1)


def test_gradient() -> None:
    rng = np.random.default_rng(2)
    centres, amplitudes, x = rng.random((5, 7)), rng.normal(size=5), rng.random(7)
    gradient, other = np.empty(7), np.empty(7)
    value = value_gradient(x, centres, amplitudes, gradient)
    model = KernelExpansion(centres, amplitudes, 1.0, np.zeros(7), np.ones(7))
    assert value == pytest.approx(model.latent([x])[0], rel=1e-14)
    for j in range(7):
        step = np.eye(7)[j] * 1e-6
        up = value_gradient(x + step, centres, amplitudes, other)
        down = value_gradient(x - step, centres, amplitudes, other)
        assert gradient[j] == pytest.approx((up - down) / 2e-6, abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_ascent_keeps_its_promises(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, m = 6, 8
    centres, amplitudes, width = rng.random((m, d)) * 2, rng.normal(size=m), np.full(d, 2.0)
    x = rng.random(d) * 2
    moved = np.arange(d) < 2
    x_prime = np.where(moved, rng.random(d) * 2, x)
    work = np.empty((WORK_ROWS, d))

    def shortfall() -> float:
        f = value_gradient(x, centres, amplitudes, work[0])
        fp = value_gradient(x_prime, centres, amplitudes, work[0])
        return float(max(0.0, f + 9.0) ** 2 + max(0.0, 9.0 - fp) ** 2)

    before = shortfall()
    after, taken, reached = ascend_pair(
        x, x_prime, moved, centres, amplitudes, width, -8.9, 8.9, 0.1, 300, work, np.empty(5)
    )
    assert after == pytest.approx(shortfall(), rel=1e-12)
    assert after < before
    assert 0 < taken <= 300
    assert not reached
    assert np.array_equal(x[~moved], x_prime[~moved])
    for point in (x, x_prime):
        assert np.all((point >= 0.0) & (point <= width))
        assert not np.array_equal(point, np.clip(point, 0.5, 1.5))


@pytest.mark.parametrize("seed", range(5))
def test_rating_is_what_trying_each_value_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, m = 4, 6
    width = np.array([0.0, 0.3, 2.0, 60.0])  # frozen, narrow, middling, too wide for an even grid
    centres, amplitudes = rng.random((m, d)) * np.array([1.0, 0.3, 2.0, 60.0]), rng.normal(size=m)
    x = rng.random(d) * width
    x_prime = np.where(np.arange(d) % 2 == 0, x, rng.random(d) * width)
    first, values, bumps = tried_values(centres, width, free_reach(width.size))
    worth, choice = np.empty(d), np.empty((3, d))
    low, high = -0.5, 0.5
    rate_inputs(x, x_prime, centres, amplitudes, first, values, bumps, low, high, np.empty((4, m)), worth, choice)
    model = KernelExpansion(centres, amplitudes, 1.0, np.zeros(d), np.full(d, 60.0))
    for j in range(d):
        tried = np.concatenate((values[first[j] : first[j + 1]], [x[j], x_prime[j]]))
        assert {0.0, width[j]} <= set(tried)
        points, points_prime = np.tile(x, (tried.size, 1)), np.tile(x_prime, (tried.size, 1))
        points[:, j] = points_prime[:, j] = tried
        f, fp = model.latent(points), model.latent(points_prime)
        shared = np.maximum(0.0, f - low) ** 2 + np.maximum(0.0, high - fp) ** 2
        split = max(0.0, f.min() - low) ** 2 + max(0.0, high - fp.max()) ** 2
        assert worth[j] == pytest.approx(shared.min() - split, abs=1e-12)
        assert worth[j] >= 0.0
        for row, objective in zip(choice[:, j], (f, -fp, shared), strict=True):
            assert objective[np.flatnonzero(tried == row)].min() == pytest.approx(objective.min(), abs=1e-12)
    assert worth[0] == 0.0
    peaks = set(np.clip(centres[:, 3], 0.0, 60.0))
    assert peaks <= set(values[first[3] :])
    assert np.diff(first).max() <= 3 * MOST


PROBLEMS = sorted(Path(FOLDER).glob("*.npz")) if FOLDER else [Path("absent")]


@pytest.mark.skipif(not FOLDER, reason="DASKAB_PROBLEMS does not name the folder of the fixed problems")
@pytest.mark.parametrize("path", PROBLEMS, ids=lambda p: p.stem)
def test_problems(path: Path) -> None:
    table = json.loads((path.parent / "attained.json").read_text())
    wanted = MEASURED.get(path.stem, table[path.stem]["k_joint_attack"])
    model = load_model(path)
    # Above some 20 inputs a merely local optimum can cost one more where exp rounds differently.
    assert check(model, fewest_inputs(model)).n_inputs <= wanted + (1 if wanted > 20 else 0)
