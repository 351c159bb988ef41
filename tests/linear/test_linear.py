"""The exact certificate of a linear model: against brute force, linear programs, and numbers on the edge."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from daskab import Certificate, LinearModel, ModelError, certify_linear, load_linear_model, load_model, save_model
from daskab.linear.exact import ExactLinear, rounded_down, rounded_up

WHOLE = st.integers(-4, 4).map(float)


@st.composite
def whole_models(draw: st.DrawFn, max_inputs: int) -> LinearModel:
    """Of whole numbers, so that thresholds are often met to the last bit; some inputs cannot change or do nothing."""
    d = draw(st.integers(1, max_inputs))
    lower = draw(st.lists(WHOLE, min_size=d, max_size=d))
    width = draw(st.lists(st.integers(0, 3), min_size=d, max_size=d))
    low = draw(st.integers(-12, 12)) / 2.0
    return LinearModel(
        draw(st.lists(WHOLE, min_size=d, max_size=d)),
        lower,
        np.add(lower, width),
        draw(WHOLE),
        latent_low=low,
        latent_high=low + draw(st.integers(1, 24)) / 2.0,
    )


@st.composite
def float_models(draw: st.DrawFn) -> LinearModel:
    """Of any numbers, with thresholds from the range, from a sum of some changes, or from nowhere."""
    d = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    w = rng.normal(size=d) * 10.0 ** rng.uniform(-6.0, 6.0, d)
    w[rng.random(d) < 0.1] = 0.0
    lower = rng.normal(size=d) * draw(st.sampled_from([1.0, 1e-9, 1e6]))
    upper = lower + rng.random(d) * draw(st.sampled_from([1.0, 1e-12, 1e3]))
    model = LinearModel(w, lower, upper, rng.normal())
    linear = ExactLinear.of(model)
    least, largest = (float(linear.intercept + sum(ends)) for ends in (linear.least, linear.largest))
    low = draw(st.sampled_from([least, least + 0.25 * (largest - least), -1.0, np.nextafter(least, -np.inf)]))
    some = math.fsum(change for change in map(float, linear.changes) if rng.random() < 0.5)
    high = draw(st.sampled_from([largest, low + some, low + 0.5 * (largest - least), low + 1.0]))
    return model.replace(latent_low=low, latent_high=high if high > low else np.nextafter(low, np.inf))


def check_attack(model: LinearModel, certificate: Certificate) -> None:
    """Its points are in the box, differ in as many inputs, and cross the thresholds, all in rational numbers."""
    attack = certificate.attack
    assert attack is not None
    w = [Fraction(v) for v in model.coefficients.tolist()]
    ends = []
    for x in (attack.x, attack.x_prime):
        assert (model.lower <= x).all()
        assert (x <= model.upper).all()
        ends.append(Fraction(model.intercept) + sum(a * Fraction(v) for a, v in zip(w, x, strict=True)))
    assert ends[0] <= Fraction(model.latent_low or 0.0)
    assert ends[1] >= Fraction(model.latent_high or 0.0)
    assert (attack.latent_x, attack.latent_x_prime) == (float(ends[0]), float(ends[1]))
    assert attack.n_inputs == sum(a != b for a, b in zip(attack.x, attack.x_prime, strict=True))


def by_integer_program(model: LinearModel) -> int | None:
    """The fewest inputs by a mixed integer program over x, x' and which inputs differ; None where none is feasible."""
    d, w = model.n_inputs, model.coefficients
    width = np.diag(model.upper - model.lower)
    one, zero = np.eye(d), np.zeros(d)
    found = milp(
        np.concatenate([zero, zero, np.ones(d)]),
        integrality=np.concatenate([zero, zero, np.ones(d)]),
        bounds=Bounds(
            np.concatenate([model.lower, model.lower, zero]), np.concatenate([model.upper, model.upper, np.ones(d)])
        ),
        constraints=[
            LinearConstraint(np.block([[one, -one, -width], [-one, one, -width]]), ub=0.0),
            LinearConstraint(np.concatenate([w, zero, zero]), ub=model.latent_low - model.intercept),
            LinearConstraint(np.concatenate([zero, w, zero]), lb=model.latent_high - model.intercept),
        ],
    )
    assert found.status in (0, 2), found.message
    return None if found.status == 2 else round(found.fun)


@given(whole_models(max_inputs=6))
def test_the_answer_is_that_of_an_integer_program(model: LinearModel) -> None:
    certificate = certify_linear(model)
    assert certificate.inputs_required == by_integer_program(model)
    assert certificate.no_attack_exists == (certificate.inputs_required is None)
    if not certificate.no_attack_exists:
        check_attack(model, certificate)


@given(whole_models(max_inputs=3))
def test_no_pair_of_a_grid_does_with_fewer(model: LinearModel) -> None:
    certificate = certify_linear(model)
    ticks = [np.linspace(low, high, 5) for low, high in zip(model.lower, model.upper, strict=True)]
    grid = np.array(list(itertools.product(*ticks)))  # quarters of whole numbers: evaluated without rounding
    latent = model.latent(grid)
    lows, highs = grid[latent <= model.latent_low], grid[latent >= model.latent_high]
    differ = np.sum(lows[:, None, :] != highs[None, :, :], axis=2)
    fewest = int(differ.min()) if differ.size else None
    if certificate.no_attack_exists:
        assert fewest is None
    elif fewest is not None:
        assert fewest >= certificate.inputs_required
    for d in range(model.n_inputs):
        change = max(np.ptp(latent[np.all(np.delete(grid, d, 1) == np.delete(point, d), axis=1)]) for point in grid)
        assert certificate.upper_bound[d] == certificate.attained[d] == change


@given(float_models())
def test_any_numbers(model: LinearModel) -> None:
    certificate = certify_linear(model)
    low, high = Fraction(model.latent_low or 0.0), Fraction(model.latent_high or 0.0)
    changes = [
        abs(Fraction(w)) * (Fraction(b) - Fraction(a))
        for w, a, b in zip(*(v.tolist() for v in (model.coefficients, model.lower, model.upper)), strict=True)
    ]
    for up, down, change in zip(certificate.upper_bound, certificate.attained, changes, strict=True):
        assert Fraction(down) <= change <= Fraction(up)
        assert up in (down, math.nextafter(down, math.inf))
    if certificate.no_attack_exists:
        corners = [
            [b if (w > 0) == up else a for w, a, b in zip(model.coefficients, model.lower, model.upper, strict=True)]
            for up in (False, True)
        ]
        linear = ExactLinear.of(model)
        assert linear.latent(corners[0]) > low or linear.latent(corners[1]) < high
        return
    check_attack(model, certificate)
    assert certificate.inputs_required is not None
    assert certificate.attack_inputs >= certificate.inputs_required
    widest = sorted(changes, reverse=True)
    assert sum(widest[: certificate.inputs_required - 1]) < high - low
    assert sum(widest[: certificate.inputs_required]) >= high - low


@given(float_models())
def test_every_witness_attains_its_change(model: LinearModel) -> None:
    certificate = certify_linear(model)
    linear = ExactLinear.of(model)
    assert certificate.witnesses is not None
    for d, attained in enumerate(certificate.attained):
        x, moved = certificate.witnesses.pair(d)
        assert linear.holds(x.tolist())
        assert linear.holds(moved.tolist())
        assert set(np.flatnonzero(x != moved)) <= {d}
        assert rounded_down(linear.latent(moved.tolist()) - linear.latent(x.tolist())) == attained


def on_unit_box(w: list[float], low: float, high: float, intercept: float = 0.0) -> Certificate:
    d = len(w)
    return certify_linear(LinearModel(w, [0.0] * d, [1.0] * d, intercept, low, high))


def test_thresholds_met_to_the_last_bit() -> None:
    assert on_unit_box([0.1, 0.2], 0.0, 0.3).inputs_required == 2
    assert on_unit_box([0.1, 0.7], 0.0, 0.8).no_attack_exists
    assert on_unit_box([2.0**-60, 1.0], 0.0, 1.0).inputs_required == 1
    tiny = on_unit_box([2.0**-60, 1.0], -(2.0**-60), 1.0, intercept=-(2.0**-60))
    assert tiny.delta == 1.0  # as float64 has it; by that one input would do
    assert tiny.inputs_required == 2


def test_what_the_box_does_not_reach_cannot_be_attacked() -> None:
    """The changes sum to far more than the thresholds are apart, but one of them lies outside the range."""
    for low, high in ((-0.5, 0.5), (9.5, 10.5), (-3.0, 13.0)):
        certificate = on_unit_box([5.0, -5.0], low, high, intercept=5.0)
        reached = 0.0 <= low and high <= 10.0
        assert certificate.no_attack_exists is not reached
        if low > -3.0:
            assert certificate.inputs_required_by_sum == 1
            assert certificate.proved_by == "range"
    assert on_unit_box([5.0, -5.0], 0.0, 10.0, intercept=5.0).inputs_required == 2


def test_inputs_that_stay_are_where_both_points_need_them() -> None:
    """One input moves the latent by 2, from -1 to 1 only while the other two add up to 0."""
    certificate = on_unit_box([2.0, 1.0, -1.0], -1.0, 1.0, intercept=-1.5)
    assert certificate.inputs_required == 1
    attack = certificate.attack
    assert attack is not None
    assert (attack.latent_x, attack.latent_x_prime) == (-1.0, 1.0)
    assert attack.x[1:] == attack.x_prime[1:]


def test_a_pair_that_no_float64_makes_takes_one_input_more() -> None:
    """Of the other input, exactly a third is needed."""
    certificate = on_unit_box([1.0, 3.0 * 2.0**-10], 2.0**-10, 1.0 + 2.0**-10)
    assert certificate.inputs_required == 1
    assert certificate.attack_inputs == 2
    assert not certificate.exact


def test_without_thresholds_there_are_only_bounds() -> None:
    certificate = certify_linear(LinearModel([3.0, 0.0], [0.0, 0.0], [0.5, 1.0]))
    assert certificate.upper_bound.tolist() == certificate.attained.tolist() == [1.5, 0.0]
    assert certificate.inputs_required is certificate.attack is certificate.delta is None
    assert not certificate.no_attack_exists


@given(st.fractions(max_denominator=10**25).filter(lambda value: abs(value) < 10**30))
def test_rounding_is_outward_by_less_than_a_neighbour(value: Fraction) -> None:
    up, down = rounded_up(value), rounded_down(value)
    assert Fraction(math.nextafter(up, -math.inf)) < value <= Fraction(up)
    assert Fraction(down) <= value < Fraction(math.nextafter(down, math.inf))


def test_as_many_inputs_as_an_image_has() -> None:
    d = 784
    rng = np.random.default_rng(3)
    model = LinearModel(rng.normal(size=d), np.zeros(d), np.ones(d), 0.1, -5.0, 5.0)
    certificate = certify_linear(model)
    assert certificate.exact
    check_attack(model, certificate)


def test_the_certificate_is_kept_as_any(tmp_path: Path) -> None:
    model = LinearModel([1.0, 2.0], [0.0, 0.0], [1.0, 1.0], 0.5, 1.0, 2.5, ["a", "b"], 0.75, "by hand")
    certificate = certify_linear(model)
    assert Certificate.from_json(certificate.to_json(), "here").to_json() == certificate.to_json()
    save_model(model, tmp_path / "m.npz")
    kept = load_linear_model(tmp_path / "m.npz")
    assert (kept.digest, kept.accuracy, kept.provenance) == (model.digest, 0.75, "by hand")
    assert certify_linear(kept).to_json() == certificate.to_json()
    for change in ({"coefficients": [1.0, 2.5]}, {"upper": [1.0, 2.0]}, {"latent_low": 0.0}, {"input_names": "ab"}):
        other = model.replace(**change)
        assert (other.digest == model.digest) is (change == {"input_names": "ab"})
    with pytest.raises(ModelError, match=r"m\.npz: lacks centres, weights, lengthscale$"):
        load_model(tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), "coefficients: there are none"),
        (([[1.0]], [0.0], [1.0]), "coefficients: has shape (1, 1), expected 1 dimensions"),
        (([math.nan], [0.0], [1.0]), "coefficients: nan at index (0,) is not a finite number"),
        (([1.0], [0.0, 1.0], [1.0]), "lower: has shape (2,), expected (1,)"),
        (([1.0], [2.0], [1.0]), "lower: input x0 (index 0) has lower 2 above upper 1"),
        (([1.0], [0.0], [1.0], math.inf), "intercept: inf is not a finite number"),
        (
            ([1.0], [0.0], [1.0], 0.0, 1.0),
            "latent_low, latent_high: one is given without the other; give both or neither",
        ),
        (([1.0], [0.0], [1.0], 0.0, 1.0, 1.0), "latent_low: 1 is not below latent_high 1"),
        (([1e200], [0.0], [1e200]), "coefficients: the latent may be as large as inf, more than 1e+150"),
    ],
)
def test_what_is_no_linear_model(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        LinearModel(*arguments)
    assert str(caught.value) == message
