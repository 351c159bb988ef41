"""The second path: it confirms what is true and near, never what some point exceeds, whatever the scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examples import mixed_model
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models, points_of

from daskab import KernelExpansion, certify
from daskab.attack.attained import attained_change
from daskab.recheck.climb import Path as Steps
from daskab.recheck.climb import best_of, climb
from daskab.recheck.problem import Problem, model_pair
from daskab.recheck.search import Finding, search


def few_centres(seed: int, m: int = 3, d: int = 20) -> KernelExpansion:
    """A model that is searched along the directions between its centres."""
    rng = np.random.default_rng(seed)
    return KernelExpansion(rng.random((m, d)), rng.normal(size=m), rng.uniform(1.0, 3.0), np.zeros(d), np.ones(d))


def dense(seed: int) -> KernelExpansion:
    """A model that is searched input by input."""
    rng = np.random.default_rng(seed)
    return KernelExpansion(rng.random((40, 4)), rng.normal(size=40), 1.0, np.zeros(4), np.ones(4))


@pytest.mark.parametrize("model", [mixed_model(), few_centres(1), few_centres(2, m=4), dense(3)])
def test_it_confirms_certificates_and_finds_what_exceeds_less(model: KernelExpansion) -> None:
    certificate = certify(model, pair_nodes=0, set_nodes=0)
    for d in range(min(model.n_inputs, 4)):
        problem = Problem.of(model, d)
        assert search(problem, certificate.upper_bound[d], 20_000).proved
        finding = search(problem, 0.99 * certificate.attained[d], 20_000)
        assert not finding.proved
        assert finding.path is not None
        pair = model_pair(model, d, finding.path.s, finding.path.e, finding.path.z)
        assert attained_change(model, *pair) > 0.99 * certificate.attained[d]


@settings(max_examples=30)
@given(model=models(max_centres=8, max_inputs=8), seed=st.integers(0, 2**32 - 1))
def test_it_never_confirms_less_than_some_path_attains(model: KernelExpansion, seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(model.n_inputs))
    problem = Problem.of(model, d)
    scaled = (points_of(model, rng, 60) - model.lower) / model.lengthscale
    ends = rng.choice([0.0, 1.0, rng.random()], (2, len(scaled))) * problem.reach
    changes = problem.change(ends[0], ends[1], np.delete(scaled, d, axis=1))
    at = int(np.argmax(changes))
    with np.errstate(all="ignore"):
        path = climb(problem, ends[0, at], ends[1, at], np.delete(scaled, d, axis=1)[at])
    attained = attained_change(model, *model_pair(model, d, path.s, path.e, path.z))
    if attained > 0.0:
        level = attained * (1.0 - rng.choice([0.5, 1e-2, 1e-6, 1e-12]))
        assert not search(problem, level, 300).proved
        assert not blind_search(problem, level, 300).proved


def blind_search(problem: Problem, level: float, most_nodes: int) -> Finding:
    """A search that no path it meets can stop: what it proves it proves by its bounds alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daskab.recheck.search.best_of", lambda *_: Steps(0.0, 0.0, problem.width, 0.0))
        patch.setattr(Problem, "change", lambda *_: np.zeros(1))
        return search(problem, level, most_nodes)


@pytest.mark.parametrize("model", [mixed_model(), few_centres(1), few_centres(2, m=4), dense(3)])
def test_what_is_attained_is_open_without_its_attack_too(model: KernelExpansion) -> None:
    for d in range(2):
        problem = Problem.of(model, d)
        best = best_of(problem, 8, 0)
        attained = attained_change(model, *model_pair(model, d, best.s, best.e, best.z))
        assert not blind_search(problem, (1.0 - 1e-9) * attained, 2000).proved
        assert blind_search(problem, 1.02 * best.change, 20_000).proved


@pytest.mark.parametrize("unit", [1e-120, 1e-9, 1e9, 1e120])
@pytest.mark.parametrize("away", [0.0, 1e6, -1e12])
def test_units_do_not_matter(unit: float, away: float) -> None:
    plain = mixed_model()
    model = KernelExpansion(
        (plain.centres - plain.lower) + away,
        unit * plain.weights,
        plain.lengthscale,
        np.full(3, away),
        (plain.upper - plain.lower) + away,
    )
    problem = Problem.of(model, 1)
    with np.errstate(all="ignore"):
        best = best_of(problem, 8, 0).change
    assert search(problem, 1.01 * best, 20_000).proved
    assert not search(problem, (1.0 - 1e-12) * best, 5000).proved


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e3, 1e9])
def test_no_lengthscale_confirms_too_little(scale: float) -> None:
    rng = np.random.default_rng(4)
    model = KernelExpansion(rng.random((5, 8)), rng.normal(size=5), scale, np.zeros(8), np.ones(8))
    for d in range(2):
        problem = Problem.of(model, d)
        with np.errstate(all="ignore"):
            best = best_of(problem, 8, 0)
        attained = attained_change(model, *model_pair(model, d, best.s, best.e, best.z))
        if attained > 0.0:
            assert not search(problem, 0.999 * attained, 2000).proved


@pytest.mark.parametrize("level", [float("nan"), float("inf"), -1.0, -0.0 - 1e-300])
def test_what_is_no_bound_is_not_confirmed(level: float) -> None:
    finding = search(Problem.of(mixed_model(), 0), level, 100)
    assert finding == (False, 0, None)


def test_numbers_that_are_none_confirm_nothing() -> None:
    problem = Problem.of(mixed_model(), 0)
    for name in ("amplitude", "own"):
        wrong = getattr(problem, name).copy()
        wrong[0] = np.nan
        assert not search(Problem(**(vars(problem) | {name: wrong})), 1e3, 50).proved
    wrong = problem.others.copy()
    wrong[0, 0] = np.nan
    assert not search(Problem(**(vars(problem) | {"others": wrong})), 1e3, 50).proved


def test_an_input_that_cannot_move_and_one_that_is_alone() -> None:
    fixed = KernelExpansion([[0.5, 0.5]], [1.0], 1.0, [0.0, 0.0], [0.0, 1.0])
    assert search(Problem.of(fixed, 0), 0.0, 10).proved
    alone = KernelExpansion([[0.0]], [1.0], 0.5, [0.0], [1.0])
    exact = 1.0 - np.exp(-2.0)
    assert search(Problem.of(alone, 0), exact * (1.0 + 1e-6), 1000).proved
    assert not search(Problem.of(alone, 0), exact * (1.0 - 1e-12), 1000).proved


def test_a_budget_that_ends_decides_nothing() -> None:
    model = mixed_model()
    attained = certify(model, pair_nodes=0, set_nodes=0).attained[0]
    finding = search(Problem.of(model, 0), 1.0001 * attained, 1)
    assert (finding.proved, finding.path) == (False, None)


def test_the_traps(problems: Path) -> None:
    for path in sorted((problems / "traps").glob("*.npz")):
        trap = np.load(path)
        model = KernelExpansion(*(trap[k] for k in ("centres", "weights", "lengthscale", "lower", "upper")))
        model = model.replace(variance=float(trap["variance"]))
        problem = Problem.of(model, int(trap["input"]))
        assert not search(problem, (1.0 - 1e-11) * float(trap["attained"]), 2000).proved, path.name
