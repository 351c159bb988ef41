"""The kernels: their formulas, and models that have them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from daskab import KernelExpansion, ModelError, load_model, save_model
from daskab.model.kernels import profile

OF_SKLEARN = {
    "eq": RBF(1.0),
    "exponential": Matern(1.0, nu=0.5),
    "matern32": Matern(nu=1.5),
    "matern52": Matern(nu=2.5),
}
OTHERS = ["exponential", "matern32", "matern52"]


def small(kernel: str = "eq") -> KernelExpansion:
    return KernelExpansion(
        [[0.2, 0.4], [0.9, 0.1]], [1.0, -2.0], [0.5, 2.0], [0, 0], [1, 1], constant=0.3, kernel=kernel
    )


@pytest.mark.parametrize("name", OF_SKLEARN)
def test_they_are_those_of_the_library(name: str) -> None:
    r = np.concatenate([np.linspace(0.0, 8.0, 200), [1e-9, 1e-4, 50.0, 1000.0]])
    expected = OF_SKLEARN[name](np.zeros((1, 1)), r[:, None])[0]
    np.testing.assert_allclose(profile(name, 0.5 * r * r), expected, rtol=1e-13, atol=1e-300)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", OTHERS)
def test_a_model_has_it_and_its_file_too(name: str, tmp_path: Path) -> None:
    model = small(name)
    x = np.array([0.7, 0.3])
    r = np.sqrt(np.sum(((x - model.centres) / model.lengthscale) ** 2, axis=1))
    values = {
        "exponential": np.exp(-r),
        "matern32": (1 + math.sqrt(3) * r) * np.exp(-math.sqrt(3) * r),
        "matern52": (1 + math.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-math.sqrt(5) * r),
    }
    assert model.latent([x])[0] == pytest.approx(0.3 + values[name] @ model.weights, rel=1e-14)
    save_model(model, tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    assert (again.kernel, again.digest) == (name, model.digest)
    assert again.restrict(frozen=[0]).kernel == name
    assert model.digest != small().digest


def test_that_of_a_model_without_a_word_is_eq(tmp_path: Path) -> None:
    save_model(small(), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        assert "kernel" not in file.files
    assert load_model(tmp_path / "m.npz").kernel == "eq"


def test_others_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^kernel: 'cosine' is none of eq, exponential, matern32, matern52$"):
        small("cosine")
    with (tmp_path / "m.npz").open("wb") as file:
        np.savez(file, **small().arrays() | {"kernel": np.array(["eq"])})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="kernel: is not one text"):
        load_model(tmp_path / "m.npz")
