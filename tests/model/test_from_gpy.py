"""Classifiers of GPy: its own predictions, or a refusal by name. Runs where GPy is installed."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GPy = pytest.importorskip("GPy")

from examples import Call  # noqa: E402
from fixtures.agree import assert_kept, assert_of_its_points, disagreement, refusal  # noqa: E402
from fixtures.make_gpy import D, cases, dense, models, rbf, sparse, table  # noqa: E402
from GPy import kern, mappings  # noqa: E402

from daskab import from_gpy, load_model  # noqa: E402

# Nothing a library says may come beside what daskab says.
pytestmark = pytest.mark.filterwarnings("error")

X, Y = table()
MODELS = models()


def says(model: Any, points: np.ndarray) -> np.ndarray:
    """The library's own latent mean."""
    return np.asarray(model.predict_noiseless(points)[0])[:, 0]


@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_the_library(name: str) -> None:
    original = MODELS[name]
    X, labels = table(d=original.input_dim)
    model = from_gpy(original)
    assert disagreement(model, partial(says, original)) < 1e-13
    assert model.n_centres == (8 if name.startswith("epdtc") else 25)
    assert_of_its_points(model, X)
    assert np.mean((model.latent(X) > 0) == labels[:, 0]) > 0.7  # positive is the label 1


def test_the_fixtures_are_what_the_library_says_today() -> None:
    assert_kept("gpy", cases(), tolerance=1e-4)  # EP is content with 1e-6


@pytest.mark.parametrize("make", [dense, sparse])
def test_optimised_hyperparameters_are_those_of_the_fit(make: Any) -> None:
    model = make()
    model.optimize(max_iters=3)
    imported = from_gpy(model)
    assert imported.lengthscale.tolist() == np.asarray(model.kern.lengthscale).tolist() != [0.5, 0.8, 1.3]
    assert disagreement(imported, partial(says, model)) < 1e-13


@pytest.mark.parametrize("make", [dense, sparse])
def test_active_dims(make: Any) -> None:
    with pytest.warns(UserWarning, match="different input dimension"):  # of GPy, when it is made
        model = make(kernel=rbf(0.5, 0.9, inputs=2, active_dims=[2, 0]))
    imported = from_gpy(model)
    assert imported.input_names == ("x2", "x0")
    assert imported.lower.tolist() == X[:, [2, 0]].min(axis=0).tolist()
    assert np.max(np.abs(imported.latent(X[:, [2, 0]]) - says(model, X))) < 1e-13 * imported.largest_latent


def test_box_thresholds_and_names_are_as_given() -> None:
    model = from_gpy(dense(), box=(-1.0, [2.0, 3.0, 4.0]), thresholds=(-1, 1), input_names="abc")
    assert (model.lower.tolist(), model.upper.tolist()) == ([-1.0] * 3, [2.0, 3.0, 4.0])
    assert (model.delta, model.input_names) == (2.0, ("a", "b", "c"))


def test_the_command_line(call: Call) -> None:
    Path("m.pkl").write_bytes(pickle.dumps(MODELS["laplace"]))
    said = call("import", "m.pkl", "-o", "m.npz", "--trust")
    assert said.code == 0
    assert load_model("m.npz").digest == from_gpy(MODELS["laplace"]).digest
    assert said.out.splitlines()[-1] == "  At 20 points it says what GPy says."
    said = call("import", "m.pkl", "-o", "m.npz", "--trust", "--class", "1")
    assert (said.code, said.err.splitlines()[-1]) == (
        2,
        "daskab: --class: is of scikit-learn's classifiers; this is a model of GPy",
    )


# What is refused.


def refused(model: Any, **options: Any) -> str:
    return refusal(partial(from_gpy, model, **options))


class Own(kern.RBF):
    pass


ONLY = "is not supported; daskab certifies one RBF, Exponential, OU, Matern32 or Matern52"


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda: kern.RatQuad(D), f"kernel: RatQuad {ONLY}"),
        (lambda: rbf() + kern.White(D), f"kernel: Add {ONLY}"),
        (lambda: rbf() * kern.Bias(D), f"kernel: Prod {ONLY}"),
        (lambda: Own(D), f"kernel: Own {ONLY}"),
    ],
)
def test_other_kernels_are_refused_by_name(kernel: Any, message: str) -> None:
    assert refused(dense(kernel=kernel())) == message


def test_other_parts_are_refused_by_name() -> None:
    assert refused(dense(mean_function=mappings.Linear(D, 1))) == (
        "mean_function: Linear is not supported; daskab certifies a Constant one, or none"
    )
    assert refused(GPy.models.GPRegression(X, Y, rbf(), normalizer=True)) == (
        "model: normalizes its labels; fit it with normalizer=False, as classifiers are"
    )
    uncertain = GPy.models.SparseGPClassificationUncertainInput(X, 0.01 * np.ones_like(X), Y, rbf(), Z=X[:8].copy())
    assert refused(uncertain) == "model: its inputs are uncertain; daskab certifies models of points"
    two = GPy.models.GPRegression(X, np.hstack([Y, 1.0 - Y]), rbf())
    assert refused(two) == (
        "model: its woodbury_vector has shape (25, 2), for 25 points; daskab imports models of one output"
    )
    assert refused(None) == "model: NoneType is not a Gaussian process of GPy, as GPClassification is"
    bare = dense()
    bare.posterior = None
    assert refused(bare) == "model: holds no posterior; call update_model(True) first"


def test_numbers_that_are_none() -> None:
    model = dense()
    model.posterior._woodbury_vector = np.full((25, 1), np.nan)
    assert refused(model) == "woodbury_vector: nan at index (0, 0) is not a finite number"


def test_an_import_that_is_wrong_by_a_millionth_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library predicts with other numbers than those it shows."""
    model = dense()
    honest = type(model).predict_noiseless
    monkeypatch.setattr(type(model), "predict_noiseless", lambda self, p: (honest(self, p)[0] * (1 + 1e-6), None))
    said = refused(model)
    assert said.startswith("GPy: probe ")
    assert "; nothing is imported. " in said
