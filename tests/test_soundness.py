"""Properties of whole certificates on random models (issue SPINE, "must hold")."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models, points_of

from daskab import Certificate, KernelExpansion, certify
from daskab.bound.contributions import input_table, slice_edges
from daskab.bound.nodes import BOUND
from daskab.bound.scaled import Scaled
from daskab.bound.sequences import count, ends
from daskab.bound.units import bound_units

METHODS: dict[str, dict[str, object]] = {
    "adaptive": {"node_budget": 300},
    "fixed": {"method": "fixed", "slices": 4, "enhance": 2},
    "grid": {"method": "grid", "slices": 3, "resolution": 15, "enhance": 1},
}


def run(model: KernelExpansion, method: str) -> Certificate:
    return certify(model, **METHODS[method])  # type: ignore[arg-type]


def attacked(model: KernelExpansion, d: int, rng: np.random.Generator, n: int = 400) -> float:
    """Largest change over many pairs that differ in one input, some of them at the ends of its range."""
    x = points_of(model, rng, n)
    x_prime = x.copy()
    x_prime[:, d] = points_of(model, rng, n)[:, d]
    return float(np.max(model.latent(x_prime) - model.latent(x)))


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=10)
@given(model=models(), seed=st.integers(0, 2**32 - 1))
def test_no_attacked_pair_exceeds_the_bound(method: str, model: KernelExpansion, seed: int) -> None:
    certificate = run(model, method)
    rng = np.random.default_rng(seed)
    slack = 1e-13 * model.variance * np.abs(model.weights).sum() * (1 + model.n_inputs)
    assert np.all(certificate.upper_bound >= certificate.attained)
    for d in range(model.n_inputs):
        assert certificate.upper_bound[d] >= attacked(model, d, rng) - slack


def once(model: KernelExpansion, slices: int = 5) -> np.ndarray:
    """Bound (D,) of every input from fixed slices by the bounds that do not search: nothing is left to chance."""
    s, d = Scaled.of(model), model.n_inputs
    edges = np.stack([slice_edges(w, slices) for w in s.width])
    tables = np.stack([input_table(s.centres[:, j], s.amplitudes, s.width[j], slices) for j in range(d)], axis=1)
    n = 2 * d * count(slices)
    points, goal = np.zeros((d, d)), np.zeros(d)
    nodes = bound_units(0, n, ends(slices), edges, tables, points, 0, s.centres, s.amplitudes, s.width, s.reach, goal)
    return nodes[:, BOUND].reshape(d, -1).max(axis=1)


@settings(max_examples=4)
@given(model=models(max_centres=8, max_inputs=6))
def test_an_enhanced_bound_is_never_larger(model: KernelExpansion) -> None:
    plain = certify(model, method="fixed", slices=3)
    before = plain.upper_bound
    for enhance in (1, 4):
        enhanced = certify(model, method="fixed", slices=3, enhance=enhance)
        assert np.all(enhanced.upper_bound <= before)
        assert np.array_equal(enhanced.attained, plain.attained)
        before = enhanced.upper_bound


def reordered(model: KernelExpansion, seed: int) -> tuple[KernelExpansion, np.ndarray]:
    """The same model with its centres and inputs in another order, and that order of the inputs."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(model.n_centres), rng.permutation(model.n_inputs)
    other = model.replace(
        centres=model.centres[rows][:, columns],
        weights=model.weights[rows],
        lengthscale=model.lengthscale[columns],
        lower=model.lower[columns],
        upper=model.upper[columns],
        input_names=[model.input_names[j] for j in columns],
    )
    return other, columns


@settings(max_examples=10)
@given(model=models(max_centres=6, max_inputs=6, thresholds=True), seed=st.integers(0, 2**32 - 1))
def test_order_does_not_matter(model: KernelExpansion, seed: int) -> None:
    other, columns = reordered(model, seed)
    expected = once(model)[columns]
    assert once(other) == pytest.approx(expected, rel=1e-9, abs=1e-11 * np.abs(model.weights).sum())


@settings(max_examples=5)
@given(
    model=models(max_centres=6, max_inputs=4, lengthscales=(0.3, 10), thresholds=True), seed=st.integers(0, 2**32 - 1)
)
def test_order_does_not_matter_to_what_was_closed(model: KernelExpansion, seed: int) -> None:
    """Refinement may stop anywhere below a goal, and the goals are the same."""
    other, columns = reordered(model, seed)
    a, b = certify(model, node_budget=2000), certify(other, node_budget=2000)
    if not (a.complete and b.complete):
        return
    assert b.attained == pytest.approx(a.attained[columns], rel=1e-6, abs=1e-9 * np.abs(model.weights).sum())
    n = a.inputs_required_at_best or model.n_inputs
    sums = [np.sort(c.upper_bound)[::-1][:n].sum() for c in (a, b)]
    assert sums[0] == pytest.approx(sums[1], rel=0.0021, abs=1e-9 * np.abs(model.weights).sum())


@settings(max_examples=10)
@given(model=models(max_centres=6, max_inputs=6), factor=st.sampled_from([1e-3, 7.0, 1e4]))
def test_scaling_the_weights_scales_the_bound(model: KernelExpansion, factor: float) -> None:
    scaled = once(model.replace(weights=model.weights * factor))
    scale = factor * np.abs(model.weights).sum()
    assert scaled == pytest.approx(factor * once(model), rel=1e-9, abs=1e-11 * scale)


@settings(max_examples=10)
@given(model=models(max_centres=6, max_inputs=6), split=st.integers(0, 5))
def test_two_halves_are_one_centre(model: KernelExpansion, split: int) -> None:
    i = split % model.n_centres
    halves = model.replace(
        centres=np.vstack([model.centres, model.centres[i]]),
        weights=np.append(np.where(np.arange(model.n_centres) == i, 0.5, 1.0) * model.weights, 0.5 * model.weights[i]),
    )
    assert once(halves) == pytest.approx(once(model), rel=1e-9, abs=1e-11 * np.abs(model.weights).sum())


@settings(max_examples=10)
@given(model=models(max_centres=6, max_inputs=6))
def test_more_slices_hardly_ever_raise_a_bound(model: KernelExpansion) -> None:
    """The weights fall, but where the tangents settle may cost up to an eighth. Refinement never raises a bound."""
    before = once(model, 1)
    for slices in (2, 4, 8, 16):
        bound = once(model, slices)
        assert np.all(bound <= before * 1.25 + 1e-10 * np.abs(model.weights).sum())
        before = bound


def test_no_thresholds_no_number() -> None:
    certificate = certify(KernelExpansion([[0.5]], [1.0], 1.0, [0.0], [1.0]))
    assert certificate.inputs_required is None
    assert not certificate.no_attack_exists
    assert certificate.delta is None


def test_an_unreachable_threshold_means_no_attack_exists() -> None:
    model = KernelExpansion([[0.5, 0.5]], [1.0], 1.0, [0, 0], [1, 1], latent_low=-9.0, latent_high=9.0)
    certificate = certify(model)
    assert certificate.no_attack_exists
    assert certificate.inputs_required is None
    assert certificate.attack_inputs is None
