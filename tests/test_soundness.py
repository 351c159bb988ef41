"""Properties of whole certificates on random models (issue SPINE, "must hold")."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models, points_of

from daskab import Certificate, KernelExpansion, certify

METHODS: dict[str, dict[str, object]] = {
    "adaptive": {"node_budget": 300},
    "fixed": {"method": "fixed", "slices": 5},
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
@settings(max_examples=20)
@given(model=models(), seed=st.integers(0, 2**32 - 1))
def test_no_attacked_pair_exceeds_the_bound(method: str, model: KernelExpansion, seed: int) -> None:
    certificate = run(model, method)
    rng = np.random.default_rng(seed)
    slack = 1e-13 * model.variance * np.abs(model.weights).sum() * (1 + model.n_inputs)
    assert np.all(certificate.upper_bound >= certificate.attained)
    for d in range(model.n_inputs):
        assert certificate.upper_bound[d] >= attacked(model, d, rng) - slack


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
    a, b = run(model, "fixed"), run(other, "fixed")
    assert b.upper_bound == pytest.approx(a.upper_bound[columns], rel=1e-9, abs=1e-11 * np.abs(model.weights).sum())
    assert b.inputs_required == a.inputs_required


@settings(max_examples=10)
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
    a = run(model, "fixed")
    b = run(model.replace(weights=model.weights * factor), "fixed")
    scale = factor * np.abs(model.weights).sum()
    assert b.upper_bound == pytest.approx(factor * a.upper_bound, rel=1e-9, abs=1e-11 * scale)


@settings(max_examples=10)
@given(model=models(max_centres=6, max_inputs=6), split=st.integers(0, 5))
def test_two_halves_are_one_centre(model: KernelExpansion, split: int) -> None:
    i = split % model.n_centres
    halves = model.replace(
        centres=np.vstack([model.centres, model.centres[i]]),
        weights=np.append(np.where(np.arange(model.n_centres) == i, 0.5, 1.0) * model.weights, 0.5 * model.weights[i]),
    )
    a, b = run(model, "fixed"), run(halves, "fixed")
    assert b.upper_bound == pytest.approx(a.upper_bound, rel=1e-9, abs=1e-11 * np.abs(model.weights).sum())


@settings(max_examples=10)
@given(model=models(max_centres=6, max_inputs=6))
def test_more_slices_never_raise_a_bound(model: KernelExpansion) -> None:
    before = np.full(model.n_inputs, np.inf)
    for slices in (1, 2, 4, 8):
        bound = certify(model, method="fixed", slices=slices).upper_bound
        assert np.all(bound <= before * (1 + 1e-9) + 1e-10 * np.abs(model.weights).sum())
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
