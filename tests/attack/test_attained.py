"""What a witness attains, against ball arithmetic: never too much, and hardly less than the truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models, points_of

from daskab import BoundError, KernelExpansion
from daskab.attack.attained import attained_change, crosses_thresholds, latent_range

ctx.prec = 160


def exact_latent(model: KernelExpansion, x: np.ndarray) -> arb:
    total = arb(model.constant)
    for i in range(model.n_centres):
        t = arb(0)
        for j in range(model.n_inputs):
            t += ((arb(float(x[j])) - arb(float(model.centres[i, j]))) / arb(float(model.lengthscale[j]))) ** 2
        total += arb(float(model.weights[i])) * arb(model.variance) * (-t / 2).exp()
    return total


def pair_of(model: KernelExpansion, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two points of the box that differ in one input, at its ends half of the time."""
    rng = np.random.default_rng(seed)
    points = points_of(model, rng, 6)
    x = points[rng.integers(6)].copy()
    x_prime = x.copy()
    d = int(rng.integers(model.n_inputs))
    x_prime[d] = points[rng.integers(6), d]
    if rng.random() < 0.5:
        x[d], x_prime[d] = model.lower[d], model.upper[d]
    return x, x_prime


@settings(max_examples=80)
@given(model=models(), seed=st.integers(0, 2**32 - 1), variance=st.sampled_from([1.0, 0.3, 1e6]))
def test_attained_is_below_the_truth_and_close_to_it(model: KernelExpansion, seed: int, variance: float) -> None:
    model = model.replace(variance=variance)
    x, x_prime = pair_of(model, seed)
    attained = attained_change(model, x, x_prime)
    exact = exact_latent(model, x_prime) - exact_latent(model, x)
    assert attained >= 0.0
    assert attained == 0.0 or bool(arb(attained) <= exact)
    scale = variance * float(np.abs(model.weights).sum())
    assert attained >= float(exact) - 1e-12 * scale
    # Backwards the same change is one downwards: 0 is all that can be said.
    if attained > 0.0:
        assert attained_change(model, x_prime, x) == 0.0


@settings(max_examples=80)
@given(model=models(), seed=st.integers(0, 2**32 - 1), constant=st.sampled_from([0.0, 1.3, -1e9]))
def test_the_range_encloses_the_latent(model: KernelExpansion, seed: int, constant: float) -> None:
    model = model.replace(constant=constant)
    x, _ = pair_of(model, seed)
    low, high = latent_range(model, x)
    exact = exact_latent(model, x)
    assert bool(arb(low) < exact)
    assert bool(exact < arb(high))
    assert high - low <= 1e-12 * float(np.abs(model.weights).sum()) + 4.0 * math.ulp(constant) + 1e-290


def test_a_huge_cancellation_hides_the_change() -> None:
    """What is left of 1e15 - 1e15 is rounding; it is not claimed."""
    model = KernelExpansion(
        [[0.3], [0.3], [0.9]], [1e15, -1e15, 1e-3], 0.2, [0.0], [1.0], latent_low=-1.0, latent_high=1.0
    )
    x, x_prime = np.array([0.3]), np.array([0.9])
    exact = exact_latent(model, x_prime) - exact_latent(model, x)
    assert bool(exact > 0)
    assert attained_change(model, x, x_prime) == 0.0


def test_the_same_point_twice_attains_nothing() -> None:
    model = KernelExpansion([[0.3, 0.1]], [1.0], 0.2, [0.0, 0.0], [1.0, 1.0])
    assert attained_change(model, np.array([0.3, 0.5]), np.array([0.3, 0.5])) == 0.0


@pytest.mark.parametrize("outside", [[-1e-300, 0.5], [0.5, 1.0000000000000002], [math.nan, 0.5], [0.5, math.inf]])
def test_a_point_outside_the_box_is_refused(outside: list[float]) -> None:
    model = KernelExpansion([[0.3, 0.1]], [1.0], 0.2, [0.0, 0.0], [1.0, 1.0])
    inside = np.array([0.5, 0.5])
    for pair in ((np.array(outside), inside), (inside, np.array(outside))):
        with pytest.raises(BoundError, match="outside the model's box"):
            attained_change(model, *pair)


def thresholds(**changes: Any) -> KernelExpansion:
    """One bump of height 2 at 0; f runs from 2 at 0 to almost nothing at 1."""
    given: dict[str, Any] = {"latent_low": 0.5, "latent_high": 1.5} | changes
    return KernelExpansion([[0.0]], [2.0], 0.25, [0.0], [1.0], **given)


def test_crossing_needs_both_ends() -> None:
    model = thresholds()
    top, middle, bottom = np.array([0.0]), np.array([0.25]), np.array([1.0])
    assert crosses_thresholds(model, bottom, top)
    assert crosses_thresholds(model, top, bottom)
    assert not crosses_thresholds(model, top, middle)
    assert not crosses_thresholds(model, middle, bottom)
    assert not crosses_thresholds(model, top, top)
    assert not crosses_thresholds(model, bottom, bottom)


def test_without_thresholds_nothing_crosses() -> None:
    model = thresholds(latent_low=None, latent_high=None)
    assert not crosses_thresholds(model, np.array([1.0]), np.array([0.0]))


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6])
def test_at_a_tie_only_what_is_certain_crosses(constant: float) -> None:
    """Thresholds equal to the computed latent: whether it is reached is for exact arithmetic, so it does not count."""
    model = thresholds(constant=constant, latent_low=None, latent_high=None)
    points = [np.array([0.4]), np.array([0.1])]
    low, high = (float(v) for v in model.latent(points))
    tie = model.replace(latent_low=low, latent_high=high)
    assert not crosses_thresholds(tie, *points)
    certain = model.replace(latent_low=latent_range(model, points[0])[1], latent_high=latent_range(model, points[1])[0])
    assert crosses_thresholds(certain, *points)
    assert crosses_thresholds(certain, *points[::-1])
    below = math.nextafter(latent_range(model, points[0])[1], -math.inf)
    assert not crosses_thresholds(certain.replace(latent_low=below), *points)


def test_a_constant_shifts_range_and_thresholds_alike() -> None:
    model = thresholds()
    shifted = thresholds(constant=8.0, latent_low=8.5, latent_high=9.5)
    x, x_prime = np.array([1.0]), np.array([0.0])
    assert crosses_thresholds(shifted, x, x_prime)
    assert attained_change(shifted, x, x_prime) == attained_change(model, x, x_prime)
