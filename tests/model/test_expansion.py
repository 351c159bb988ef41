"""The kernel expansion: its latent mean against a plain loop, its digest, and what it refuses."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models, points_of

from daskab import KernelExpansion, ModelError

GOOD: dict[str, Any] = {
    "centres": [[0.2, 0.5], [0.8, 0.5], [0.4, 0.1]],
    "weights": [-1.0, 1.0, 0.5],
    "lengthscale": 0.5,
    "lower": [0.0, -1.0],
    "upper": [1.0, 1.0],
    "variance": 2.0,
    "constant": 0.25,
    "latent_low": -0.5,
    "latent_high": 0.75,
    "input_names": ["age", "income"],
    "accuracy": 0.9,
}


def plain_latent(model: KernelExpansion, x: np.ndarray) -> float:
    total = model.constant
    for i in range(model.n_centres):
        t = 0.0
        for j in range(model.n_inputs):
            t += ((x[j] - model.centres[i, j]) / model.lengthscale[j]) ** 2 / 2
        total += model.weights[i] * model.variance * math.exp(-t)
    return float(total)


@given(model=models(), seed=st.integers(0, 2**32 - 1))
def test_latent_is_the_plain_sum(model: KernelExpansion, seed: int) -> None:
    points = points_of(model, np.random.default_rng(seed), 9)
    scale = model.variance * np.abs(model.weights).sum()
    expected = [plain_latent(model, x) for x in points]
    assert model.latent(points) == pytest.approx(expected, rel=1e-12, abs=1e-11 * scale)


def test_variance_and_constant_are_in_the_latent() -> None:
    model = KernelExpansion(**GOOD)
    far = model.latent([[1e6, 1e6]])
    assert far.tolist() == [0.25]
    plain = model.replace(variance=1.0, constant=0.0)
    x = [[0.3, 0.4], [1.0, -1.0]]
    assert model.latent(x) == pytest.approx(2.0 * plain.latent(x) + 0.25, rel=1e-14)


@settings(max_examples=20)
@given(model=models(max_centres=8, max_inputs=5), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_latent_does_not_depend_on_the_other_points(model: KernelExpansion, seed: int, data: st.DataObject) -> None:
    points = points_of(model, np.random.default_rng(seed), 12)
    together = model.latent(points)
    cut = data.draw(st.integers(0, 12))
    assert np.concatenate([model.latent(points[:cut]), model.latent(points[cut:])]).tobytes() == together.tobytes()
    order = np.random.default_rng(seed).permutation(12)
    assert model.latent(points[order]).tobytes() == together[order].tobytes()


def test_latent_of_more_points_than_are_taken_at_a_time() -> None:
    rng = np.random.default_rng(0)
    model = KernelExpansion(rng.random((100, 40)), rng.normal(size=100), 1.0, np.zeros(40), np.ones(40))
    points = rng.random((1203, 40))  # 500 at a time
    together = model.latent(points)
    for k in (0, 499, 500, 501, 999, 1000, 1202):
        assert model.latent(points[k : k + 1])[0] == together[k]


@given(model=models(), seed=st.integers(0, 2**32 - 1))
def test_a_lengthscale_an_input_divides_that_input(model: KernelExpansion, seed: int) -> None:
    scale = model.lengthscale
    divided = model.replace(
        centres=model.centres / scale, lower=model.lower / scale, upper=model.upper / scale, lengthscale=1.0
    )
    points = points_of(model, np.random.default_rng(seed), 6)
    reach = model.variance * np.abs(model.weights).sum()
    # Division before the subtraction rounds what the box's distance from zero leaves of the difference.
    far = float(np.max(np.abs(np.concatenate([model.lower, model.upper])) / scale.min()))
    assert divided.latent(points / scale) == pytest.approx(model.latent(points), abs=(1e-12 + 1e-13 * far) * reach)


def test_a_scalar_lengthscale_is_one_for_every_input() -> None:
    scalar, full = KernelExpansion(**GOOD), KernelExpansion(**GOOD | {"lengthscale": [0.5, 0.5]})
    assert scalar.lengthscale.tolist() == [0.5, 0.5]
    assert scalar.digest == full.digest
    assert scalar.arrays()["lengthscale"].shape == full.arrays()["lengthscale"].shape == ()


CHANGES: dict[str, Any] = {
    "centres": [[0.2, 0.5], [0.8, 0.5], [0.4, np.nextafter(0.1, 1.0)]],
    "weights": [-1.0, 1.0, np.nextafter(0.5, 1.0)],
    "lengthscale": np.nextafter(0.5, 1.0),
    "lower": [-1e-300, -1.0],
    "upper": [1.0, np.nextafter(1.0, 2.0)],
    "variance": np.nextafter(2.0, 3.0),
    "constant": np.nextafter(0.25, 1.0),
    "latent_low": np.nextafter(-0.5, 0.0),
    "latent_high": np.nextafter(0.75, 1.0),
    "input_names": ["age", "Income"],
    "domain": {"max_change": [np.inf, 0.5]},
    "kernel": "matern52",
}


@pytest.mark.parametrize("field", CHANGES)
def test_the_digest_changes_with_every_field(field: str) -> None:
    assert KernelExpansion(**GOOD | {field: CHANGES[field]}).digest != KernelExpansion(**GOOD).digest


def test_the_digest_covers_every_field_that_is_certified() -> None:
    fields = {f.name for f in dataclasses.fields(KernelExpansion) if f.init}
    assert fields - set(CHANGES) == {"accuracy", "probe_points", "probe_latents", "provenance"}
    model = KernelExpansion(**GOOD)
    assert model.replace(accuracy=0.1).digest == model.replace(accuracy=None).digest == model.digest
    points = [[0.3, 0.4]]
    assert model.replace(probe_points=points, probe_latents=model.latent(points)).digest == model.digest


def test_other_digests() -> None:
    model = KernelExpansion(**GOOD)
    assert model.replace(latent_low=None, latent_high=None).digest != model.digest
    assert model.replace(lengthscale=[0.5, 0.6]).digest != model.replace(lengthscale=[0.6, 0.5]).digest
    assert model.replace(input_names=["ag", "eincome"]).digest != model.replace(input_names=["age", "income"]).digest
    rows = [1, 0, 2]
    assert model.replace(centres=model.centres[rows], weights=model.weights[rows]).digest != model.digest
    # How the same numbers are given makes no difference.
    assert KernelExpansion(**GOOD | {"lower": [-0.0, -1]}).digest == model.digest
    assert KernelExpansion(**GOOD | {"centres": np.asfortranarray(GOOD["centres"])}).digest == model.digest
    assert KernelExpansion(**GOOD | {"weights": np.array(GOOD["weights"], dtype=">f8")}).digest == model.digest
    assert KernelExpansion(**GOOD | {"upper": np.array([1, 1], dtype=np.int8)}).digest == model.digest


def test_the_digest_of_a_known_model() -> None:
    """A digest once published names the same model for ever."""
    model = KernelExpansion([[0.25, 0.5], [1.0, 0.0]], [1.5, -2.0], 0.5, [0, 0], [1, 1], latent_low=-1, latent_high=1)
    assert model.digest == "2a0690023086afb254f79c18283b6ad983c4a1de1ba929e8735fdedad109488d"


def test_a_model_is_not_changed_from_outside() -> None:
    centres = np.array(GOOD["centres"])
    model = KernelExpansion(**GOOD | {"centres": centres})
    centres[0, 0] = 9.0
    assert model.centres[0, 0] == 0.2
    with pytest.raises(ValueError, match="read-only"):
        model.centres[0, 0] = 9.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.variance = 3.0  # type: ignore[misc]


def test_defaults() -> None:
    model = KernelExpansion([[0.5, 0.5]], [1.0], 1.0, [0, 0], [1, 1])
    assert (model.n_centres, model.n_inputs) == (1, 2)
    assert model.input_names == ("x0", "x1")
    assert (model.variance, model.constant, model.delta, model.accuracy) == (1.0, 0.0, None, None)
    assert KernelExpansion(**GOOD).delta == 1.25


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"centres": [[0.2, "x"]] * 3}, "centres: holds"),
        ({"centres": [[0.2], [0.1, 0.3]]}, "centres: not an array of numbers"),
        ({"weights": [1.0, None, 2.0]}, "weights: holds object values, expected real numbers"),
        ({"weights": [1.0, math.nan, 2.0]}, "weights: nan at index (1,) is not a finite number"),
        ({"weights": [1e200, 1.0, 2.0]}, "weights: their absolute sum times variance is 2e+200, more than 1e+150"),
        ({"variance": 1e300}, "weights: their absolute sum times variance is 2.5e+300, more than 1e+150"),
        ({"variance": "two"}, "variance: holds"),
        ({"latent_low": math.inf}, "latent_low: inf is not a finite number"),
        ({"accuracy": math.nan}, "accuracy: nan is not a finite number"),
        ({"lower": [2.0, -1.0]}, "lower: input age (index 0) has lower 2 above upper 1"),
        ({"lengthscale": 1e-200}, "lengthscale: input age (index 0) has 1e-200, but its box and centres reach over 1;"),
        ({"input_names": ["a", "b", "c"]}, "input_names: 3 names for 2 inputs"),
        ({"input_names": ["a", "\udc80"]}, "input_names: '\\udc80' has characters that cannot be printed"),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        KernelExpansion(**GOOD | changes)
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("x", [[0.1, 0.2], [[0.1, 0.2, 0.3]], [[0.1, math.nan]], [["a", "b"]]])
def test_points_that_do_not_fit(x: Any) -> None:
    with pytest.raises(ModelError, match=r"^X: "):
        KernelExpansion(**GOOD).latent(x)


def test_no_points_have_no_latent() -> None:
    assert KernelExpansion(**GOOD).latent(np.empty((0, 2))).shape == (0,)


def test_a_degenerate_box_is_a_model() -> None:
    model = KernelExpansion(**GOOD | {"lower": [0.5, 0.5], "upper": [0.5, 0.5]})
    assert np.all(model.lower == model.upper)
