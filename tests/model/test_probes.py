"""Probes: kept with a model, compared whenever it is made or read, and left behind where they no longer apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models, points_of

from daskab import KernelExpansion, ModelError, load_model, save_model
from daskab.model.importers.probes import probe_points


def probed(model: KernelExpansion) -> KernelExpansion:
    points = probe_points(model.centres, model.lengthscale, model.lower, model.upper)
    return model.replace(probe_points=points, probe_latents=model.latent(points))


@pytest.fixture
def model() -> KernelExpansion:
    rng = np.random.default_rng(0)
    return probed(
        KernelExpansion(
            rng.random((30, 4)), rng.normal(size=30), [0.5, 0.6, 0.7, 0.8], np.zeros(4), np.ones(4), constant=0.25
        )
    )


@settings(max_examples=30)
@given(model=models(), seed=st.integers(0, 2**32 - 1))
def test_probe_points_are_twenty_of_the_box(model: KernelExpansion, seed: int) -> None:
    training = np.concatenate([points_of(model, np.random.default_rng(seed), 9), model.centres])
    points = probe_points(training, model.lengthscale, model.lower, model.upper)
    assert points.shape == (20, model.n_inputs)
    assert np.all((points >= model.lower) & (points <= model.upper))
    assert points.tobytes() == probe_points(training, model.lengthscale, model.lower, model.upper).tobytes()
    # Five of them are close to training points, moved into the box.
    moved = np.clip(training, model.lower, model.upper)
    away = np.abs(points[:, None] - moved) / model.lengthscale
    assert np.sum(np.any(np.all(away <= 1.01e-3, axis=2), axis=1)) >= 5


@settings(max_examples=30)
@given(model=models())
def test_there_and_back(model: KernelExpansion, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "probes.npz"
    model = probed(model)
    save_model(model, path)
    again = load_model(path)
    assert again.digest == model.digest
    for name in ("probe_points", "probe_latents"):
        assert getattr(again, name).tobytes() == getattr(model, name).tobytes()


# What an import that is slightly wrong, or a file that was edited, comes to.
CHANGES = {
    "weights": lambda a: a * (1 + 1e-6),
    "lengthscale": lambda a: a * (1 + 1e-6),
    "centres": lambda a: a + 1e-6,
    "variance": lambda a: a * (1 + 1e-6),
    "constant": lambda a: a + 1e-6,
    "probe_points": lambda a: a[::-1],
    "probe_latents": lambda a: a + 1e-6 * (np.arange(a.size) == 7),
}


@pytest.mark.parametrize("key", CHANGES)
def test_a_change_of_a_millionth_is_seen(key: str, model: KernelExpansion, tmp_path: Path) -> None:
    arrays = model.arrays()
    np.savez(tmp_path / "m.npz", **arrays | {key: CHANGES[key](arrays[key])})
    with pytest.raises(ModelError) as caught:
        load_model(tmp_path / "m.npz")
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'm.npz'}: probe ")
    assert said.endswith("; the numbers were changed after the import: import the model again")
    assert said.isprintable()


def test_what_the_function_does_not_depend_on_may_change(model: KernelExpansion, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"lower": np.full(4, -1.0), "input_names": list("abcd"), "accuracy": 0.9}
    np.savez(tmp_path / "m.npz", **model.arrays() | changes)
    assert load_model(tmp_path / "m.npz").probe_points is not None
    assert model.replace(**changes).probe_latents is not None


@pytest.mark.parametrize("key", ["weights", "lengthscale", "centres", "variance", "constant"])
def test_a_copy_of_another_function_leaves_them_behind(key: str, model: KernelExpansion) -> None:
    other = model.replace(**{key: CHANGES[key](getattr(model, key))})
    assert (other.probe_points, other.probe_latents) == (None, None)
    assert "probe_points" not in other.arrays()
    with pytest.raises(ModelError, match=r"^probe \d+: the latent is "):
        model.replace(weights=2.0 * model.weights, probe_points=[[0.5] * 4], probe_latents=model.latent([[0.5] * 4]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probe_points": None}, "probe_points, probe_latents: one is given without the other; give both or neither"),
        ({"probe_latents": None}, "probe_points, probe_latents: one is given without the other; give both or neither"),
        ({"probe_points": np.zeros((20, 3))}, "probe_points: has 3 columns, the model 4 inputs"),
        ({"probe_points": np.zeros(20)}, "probe_points: has shape (20,), expected 2 dimensions"),
        ({"probe_latents": np.zeros(19)}, "probe_latents: has shape (19,), expected (20,)"),
        ({"probe_latents": np.full(20, np.nan)}, "probe_latents: nan at index (0,) is not a finite number"),
        ({"probe_points": np.full((20, 4), 1e300)}, "probe "),
    ],
)
def test_what_are_no_probes(changes: dict[str, Any], message: str, model: KernelExpansion) -> None:
    with pytest.raises(ModelError) as caught:
        model.replace(**changes)
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()
