"""Classifiers of scikit-learn, alone and behind scalers: the library's own latent mean, or a refusal by name."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fixtures.agree import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA, FastICA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler

import daskab
from daskab import KernelExpansion, ModelError, from_sklearn

# Nothing a library says may come beside what daskab says.
pytestmark = pytest.mark.filterwarnings("error")

C = ConstantKernel


def table(n: int = 40, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns of very different units, as people have them, and labels that are not quite separable."""
    rng = np.random.default_rng(seed)
    unit = rng.random((n, d))
    y = unit @ rng.normal(size=d) + 0.1 * rng.normal(size=n)
    return unit * 10.0 ** rng.integers(-2, 4, d) + rng.choice([0.0, -1.0, 50.0], d), np.where(y > np.median(y), 7, 4)


X, Y = table()
UNITS = np.ptp(X, axis=0)
THREE = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.7]))


def gpc(kernel: Any = None, **options: Any) -> GaussianProcessClassifier:
    return GaussianProcessClassifier(1.5 * RBF(0.7) if kernel is None else kernel, optimizer=None, **options)


def scaled(**options: Any) -> Pipeline:
    return make_pipeline(StandardScaler(), gpc(**options)).fit(X, Y)


def oracle(estimator: Any, points: np.ndarray) -> np.ndarray:
    """The library's own latent mean."""
    if isinstance(estimator, Pipeline):
        return oracle(estimator[-1], estimator[:-1].transform(points))
    return estimator.latent_mean_and_variance(points)[0]


def disagreement(model: KernelExpansion, expected: Callable[[np.ndarray], np.ndarray]) -> float:
    """Largest difference at points in and out of the box, in terms of sum |a|."""
    rng = np.random.default_rng(3)
    points = model.lower + (model.upper - model.lower) * rng.uniform(-0.3, 1.3, (200, model.n_inputs))
    points = np.concatenate([points, model.centres])
    return float(np.max(np.abs(model.latent(points) - expected(points))) / np.sum(np.abs(model.weights)))


KERNELS = {
    "default": None,
    "rbf": RBF(0.7),
    "constant first": C(2.5) * RBF(0.7),
    "constant last": RBF(0.7) * C(0.3),
    "number": 4.0 * RBF(0.7),
    "per input": 1.5 * RBF([0.5, 2.0, 9.0]),
    "array of one": RBF(np.array([0.7])),
    "nested": C(2.0) * (C(0.5) * (RBF([1.0, 2.0, 3.0]) * C(3.0))) * C(1.1),
    "fixed": C(2.0, "fixed") * RBF(0.7, "fixed"),
    "exponential": 1.5 * Matern([0.5, 2.0, 9.0], nu=0.5),
    "matern 3/2": Matern(0.7, nu=1.5),
    "matern 5/2": C(2.5) * Matern([0.5, 2.0, 9.0], nu=2.5),
    "matern without end": 1.5 * Matern(0.7, nu=np.inf),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_agree_with_the_library(name: str) -> None:
    estimator = GaussianProcessClassifier(KERNELS[name], optimizer=None).fit(X / UNITS, Y)
    model = from_sklearn(estimator)
    assert disagreement(model, lambda p: oracle(estimator, p)) < 1e-13
    assert np.array_equal(model.centres, X / UNITS)
    assert model.constant == 0.0
    # Positive is the later of the classes.
    assert np.array_equal(estimator.predict(X / UNITS) == 7, model.latent(X / UNITS) > 0)


def test_optimised_hyperparameters_are_those_of_the_fit() -> None:
    estimator = GaussianProcessClassifier(1.0 * RBF([1.0, 1.0, 1.0], (1e-2, 1e2))).fit(X / UNITS, Y)
    model = from_sklearn(estimator)
    assert model.lengthscale.tolist() == estimator.kernel_.k2.length_scale.tolist() != [1.0] * 3
    assert disagreement(model, lambda p: oracle(estimator, p)) < 1e-13


def test_default_box_thresholds_and_names() -> None:
    model = from_sklearn(gpc().fit(X / UNITS, Y))
    assert np.array_equal(model.lower, (X / UNITS).min(axis=0))
    assert np.array_equal(model.upper, (X / UNITS).max(axis=0))
    assert (model.latent_low, model.latent_high) == tuple(np.percentile(model.latent(model.centres), [5, 95]))
    assert model.input_names == ("x0", "x1", "x2")
    wider = from_sklearn(gpc().fit(X / UNITS, Y), percentile=20.0, box=(0.0, [60.0, 70.0, 80.0]), input_names="abc")
    assert (wider.latent_low, wider.latent_high) == tuple(np.percentile(model.latent(model.centres), [20, 80]))
    assert wider.lower.tolist() == [0.0] * 3
    assert wider.upper.tolist() == [60.0, 70.0, 80.0]
    assert wider.input_names == ("a", "b", "c")
    given = from_sklearn(gpc().fit(X / UNITS, Y), thresholds=(-0.5, 1))
    assert (given.latent_low, given.latent_high) == (-0.5, 1.0)


# Pipelines.

PIPELINES: dict[str, list[Any]] = {
    "standard": [StandardScaler()],
    "no mean": [StandardScaler(with_mean=False)],
    "no std": [MinMaxScaler(), StandardScaler(with_std=False)],
    "neither": [MinMaxScaler(), StandardScaler(with_mean=False, with_std=False)],
    "minmax": [MinMaxScaler()],
    "range": [MinMaxScaler((-3.0, 2.0))],
    "several": [StandardScaler(), MinMaxScaler((-1, 1)), StandardScaler(), "passthrough"],
    "none": [None, MinMaxScaler()],
    "inner": [make_pipeline(StandardScaler(), MinMaxScaler()), StandardScaler()],
    "pandas": [StandardScaler().set_output(transform="pandas")],
}


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("per_input", [False, True])
def test_pipelines_agree_with_the_library_on_raw_columns(name: str, per_input: bool) -> None:
    kernel = 2.0 * RBF([0.5, 1.0, 3.0] if per_input else 0.8)
    estimator = make_pipeline(*copy.deepcopy(PIPELINES[name]), gpc(kernel)).fit(X, Y)
    model = from_sklearn(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of scikit-learn, about names
        assert disagreement(model, lambda p: oracle(estimator, p)) < 1e-13
    # The certificate speaks of the raw columns.
    assert np.max(np.abs(model.centres - X) / UNITS) < 1e-14
    assert np.max(np.abs(model.lower - X.min(axis=0)) / UNITS) < 1e-14
    assert np.max(np.abs(model.upper - X.max(axis=0)) / UNITS) < 1e-14


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), steps=st.lists(st.sampled_from(["std", "minmax", "wide", "clip"]), max_size=3))
def test_random_pipelines(seed: int, steps: list[str]) -> None:
    rng = np.random.default_rng(seed)
    kinds = {
        "std": StandardScaler,
        "minmax": MinMaxScaler,
        "wide": lambda: MinMaxScaler((-7.0, float(rng.uniform(-6, 90)))),
        "clip": lambda: MinMaxScaler(clip=True),
    }
    points, labels = table(12, int(rng.integers(1, 5)), seed)
    lengthscale = float(rng.uniform(0.2, 5.0))
    estimator = make_pipeline(
        *(kinds[step]() for step in steps),
        MinMaxScaler((0.0, 2.0)),
        gpc(rng.uniform(0.1, 9.0) * RBF(lengthscale)),
    ).fit(points, labels)
    model = from_sklearn(estimator, percentile=20.0)
    inside = model.lower + (model.upper - model.lower) * rng.random((50, model.n_inputs))
    off = np.max(np.abs(model.latent(inside) - oracle(estimator, inside)))
    # So many of its widths a column lies from zero: so many units in the last place a scaler loses, here as there.
    far = float(np.max(np.abs(points).max(axis=0) / np.ptp(points, axis=0)))
    assert off < (1e-13 + 8 * np.finfo(float).eps * far / lengthscale) * model.largest_latent


def test_columns_far_from_zero_lose_no_digits() -> None:
    """Seconds since 1970, over a day: the raw training points come back to the bit."""
    raw = np.column_stack([1.7e9 + np.linspace(0, 86400, 40), X[:, 0]])
    estimator = make_pipeline(StandardScaler(), gpc(2.0 * RBF(0.5))).fit(raw, Y)
    model = from_sklearn(estimator)
    assert np.array_equal(model.centres[:, 0], raw[:, 0])
    assert np.max(np.abs(model.latent(raw) - oracle(estimator, raw))) < 1e-13 * np.sum(np.abs(model.weights))


def test_names_of_a_frame() -> None:
    frame = pd.DataFrame(X, columns=["age", "income", "größe"])
    assert from_sklearn(gpc().fit(frame / UNITS, Y)).input_names == ("age", "income", "größe")
    for first in (StandardScaler(), "passthrough"):
        estimator = make_pipeline(first, MinMaxScaler(), gpc()).fit(frame, Y)
        assert from_sklearn(estimator).input_names == ("age", "income", "größe")


def test_a_box_is_in_raw_columns() -> None:
    model = from_sklearn(scaled(), box=(X.min(axis=0) - UNITS, X.max(axis=0) + UNITS))
    assert np.array_equal(model.lower, X.min(axis=0) - UNITS)
    assert np.array_equal(model.upper, X.max(axis=0) + UNITS)


def test_clipping() -> None:
    estimator = make_pipeline(MinMaxScaler(clip=True), gpc()).fit(X, Y)
    assert disagreement_inside(from_sklearn(estimator), estimator) < 1e-13
    inner = (X.min(axis=0) + 0.1 * UNITS, X.max(axis=0) - 0.1 * UNITS)
    assert disagreement_inside(from_sklearn(estimator, box=inner), estimator) < 1e-13
    outside = X.max(axis=0) + UNITS * [0.0, 0.01, 0.0]
    with pytest.raises(ModelError) as caught:
        from_sklearn(estimator, box=(X.min(axis=0), outside))
    said = str(caught.value)
    assert said.startswith(
        "pipeline: MinMaxScaler (step 'minmaxscaler') clips (clip=True), and the box of input x1 (in"
    )
    assert said.endswith(
        "leaves its range, where the latent is no kernel expansion; give a box within the range it was fitted on"
    )


def disagreement_inside(model: KernelExpansion, estimator: Any) -> float:
    points = model.lower + (model.upper - model.lower) * np.random.default_rng(4).random((100, model.n_inputs))
    return float(np.max(np.abs(model.latent(points) - oracle(estimator, points))) / np.sum(np.abs(model.weights)))


# Several classes.


def test_one_against_the_rest() -> None:
    estimator = gpc().fit(X / UNITS, THREE)
    models = [from_sklearn(estimator, classes=c) for c in estimator.classes_]
    parts = estimator.base_estimator_.estimators_
    for model, part in zip(models, parts, strict=True):
        assert disagreement(model, lambda p, part=part: part.latent_mean_and_variance(p)[0]) < 1e-13
    latents = np.array([model.latent(X / UNITS) for model in models])
    assert np.mean(np.argmax(latents, axis=0) == THREE) > 0.8  # positive is the class asked for
    assert from_sklearn(estimator, classes="1").digest == models[1].digest


def test_one_against_another() -> None:
    names = np.array(["low", "mid", "top"])[THREE]
    estimator = make_pipeline(StandardScaler(), gpc(multi_class="one_vs_one")).fit(X, names)
    parts = estimator[-1].base_estimator_.estimators_
    pairs = list(combinations(["low", "mid", "top"], 2))
    boxes = set()
    for pair, part in zip(pairs, parts, strict=True):
        model = from_sklearn(estimator, classes=pair)
        assert disagreement(model, lambda p, f=part: f.latent_mean_and_variance(estimator[0].transform(p))[0]) < 1e-13
        of_pair = np.isin(names, pair)
        assert model.n_centres == of_pair.sum()
        assert np.mean((model.latent(X[of_pair]) > 0) == (names[of_pair] == pair[1])) > 0.9
        assert from_sklearn(estimator, classes=pair[::-1]).digest == model.digest
        boxes.add((model.lower.tobytes(), model.upper.tobytes()))
    assert len(boxes) == 1  # of all training points


@pytest.mark.parametrize("wanted", [None, "four", 9, (0, 1), [0, 0], []])
def test_classes_that_are_not_one_of_them(wanted: Any) -> None:
    with pytest.raises(ModelError) as caught:
        from_sklearn(gpc().fit(X / UNITS, THREE), classes=wanted)
    assert str(caught.value) == (
        "classes: the estimator has 3 classes, '0', '1', '2', one_vs_rest: give one of them as classes"
    )


@pytest.mark.parametrize("wanted", [None, 1, (1, 1), (0, 3), (0, 1, 2)])
def test_pairs_that_are_not_two_of_them(wanted: Any) -> None:
    with pytest.raises(ModelError, match=r"'2', one_vs_one: give two of them as classes$"):
        from_sklearn(gpc(multi_class="one_vs_one").fit(X / UNITS, THREE), classes=wanted)


def test_two_classes_leave_no_choice() -> None:
    with pytest.raises(ModelError, match=r"^classes: 4 given, but the estimator has only the two classes '4', '7'$"):
        from_sklearn(scaled(), classes=4)


# What is refused.


def refused(estimator: Any, **options: Any) -> str:
    return refusal(partial(from_sklearn, estimator, **options))


CERTIFIED = "daskab certifies one RBF or Matern of nu 0.5, 1.5 or 2.5, times ConstantKernels if need be"
ONLY = f"is not supported; {CERTIFIED}"


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Matern(1.0, nu=1.0), f"kernel: Matern(nu=1) {ONLY}"),
        (2.0 * Matern(1.0, nu=3.5), f"kernel: Matern(nu=3.5) in ConstantKernel * Matern(nu=3.5) {ONLY}"),
        (RationalQuadratic() * RBF(), f"kernel: RationalQuadratic in RationalQuadratic * RBF {ONLY}"),
        (1.0 * RBF() + WhiteKernel(), f"kernel: (ConstantKernel * RBF + WhiteKernel) {ONLY}"),
        (2.0 * (RBF() + RBF(3.0)), f"kernel: (RBF + RBF) in ConstantKernel * (RBF + RBF) {ONLY}"),
        (RBF() ** 2, f"kernel: RBF ** 2 {ONLY}"),
        (DotProduct(), f"kernel: DotProduct {ONLY}"),
        (ExpSineSquared(), f"kernel: ExpSineSquared {ONLY}"),
        (
            RBF() * RBF(),
            f"kernel: RBF * RBF has 2 RBFs and Materns; {CERTIFIED}",
        ),
        (
            C() * C(),
            f"kernel: ConstantKernel * ConstantKernel has 0 RBFs and Materns; {CERTIFIED}",
        ),
    ],
)
def test_other_kernels_are_refused_by_name(kernel: Any, message: str) -> None:
    assert refused(make_pipeline(StandardScaler(), gpc(kernel)).fit(X, Y)) == message


MIXES = (
    "mixes columns: one raw column moves several inputs of the classifier, so the number of inputs changed says "
    "nothing about columns. Import the classifier alone, and the certificate is about its own inputs"
)
SCALES = (
    "is not supported; only StandardScaler and MinMaxScaler, which move each column by itself, can be folded into the "
    "model"
)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (PCA(2), f"pipeline: PCA (step 'pca') {MIXES}"),
        (FastICA(2, random_state=0), f"pipeline: FastICA (step 'fastica') {MIXES}"),
        (RobustScaler(), f"pipeline: RobustScaler (step 'robustscaler') {SCALES}"),
        (PolynomialFeatures(), f"pipeline: PolynomialFeatures (step 'polynomialfeatures') {SCALES}"),
        (FunctionTransformer(), f"pipeline: FunctionTransformer (step 'functiontransformer') {SCALES}"),
        (type("Scaler", (StandardScaler,), {})(), f"pipeline: Scaler (step 'scaler') {SCALES}"),
    ],
)
def test_other_steps_are_refused_with_the_reason(step: Any, message: str) -> None:
    estimator = make_pipeline(StandardScaler(), step, gpc()).fit(X, Y)
    assert refused(estimator) == message
    # As it says, the classifier alone can be imported.
    assert from_sklearn(estimator[-1]).n_centres == 40


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (gpc(), "estimator: GaussianProcessClassifier is not fitted; call fit first"),
        (
            make_pipeline(StandardScaler(), gpc()),
            "estimator: StandardScaler (step 'standardscaler') is not fitted; call fit first",
        ),
        (
            make_pipeline(StandardScaler().fit(X), gpc()),
            "estimator: GaussianProcessClassifier is not fitted; call fit first",
        ),
        (
            LogisticRegression(),
            "estimator: LogisticRegression is neither a GaussianProcessClassifier nor a Pipeline that ends in one",
        ),
        (
            make_pipeline(StandardScaler(), "passthrough"),
            "estimator: passthrough is neither a GaussianProcessClassifier nor a Pipeline that ends in one",
        ),
        (
            OneVsRestClassifier(gpc()),
            "estimator: OneVsRestClassifier is neither a GaussianProcessClassifier nor a Pipeline that ends in one",
        ),
        ({}, "estimator: dict is neither a GaussianProcessClassifier nor a Pipeline that ends in one"),
        (None, "estimator: NoneType is neither a GaussianProcessClassifier nor a Pipeline that ends in one"),
    ],
)
def test_what_is_no_fitted_classifier(estimator: Any, message: str) -> None:
    assert refused(estimator) == message


def test_a_search_says_where_its_classifier_is() -> None:
    search = GridSearchCV(gpc(), {"max_iter_predict": [50]}, cv=2).fit(X / UNITS, Y)
    assert refused(search).endswith("; give its best_estimator_")
    assert from_sklearn(search.best_estimator_).n_centres == 40


def edited(**changes: Any) -> Pipeline:
    estimator = copy.deepcopy(scaled())
    for name, value in changes.items():
        setattr(estimator[0] if hasattr(estimator[0], name) else estimator[-1].base_estimator_, name, value)
    return estimator


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X_train_": np.full((40, 3), np.nan)}, "estimator: X_train_: nan at index (0, 0) is not a finite number"),
        ({"X_train_": np.zeros((40, 3, 1))}, "estimator: X_train_: has shape (40, 3, 1), expected 2 dimensions"),
        (
            {"X_train_": np.zeros((40, 3), complex)},
            "estimator: X_train_: holds complex128 values, expected real numbers",
        ),
        ({"X_train_": np.zeros((0, 3))}, "estimator: y_train_: has shape (40,), expected (0,)"),
        ({"pi_": np.full(40, np.inf)}, "estimator: pi_: inf at index (0,) is not a finite number"),
        ({"pi_": np.zeros((40, 1))}, "estimator: pi_: has shape (40, 1), expected (40,)"),
        ({"y_train_": np.zeros(39)}, "estimator: y_train_: has shape (39,), expected (40,)"),
        ({"kernel_": RBF([1.0, 2.0])}, "kernel: length_scale: has shape (2,), expected (3,)"),
        ({"kernel_": RBF(-1.0)}, "kernel: length_scale: -1 is not positive"),
        ({"kernel_": 0.0 * RBF()}, "variance: 0 is not positive"),
        ({"kernel_": C(np.nan) * RBF()}, "kernel: constant_value: nan is not a finite number"),
        ({"L_": np.zeros((3, 3))}, "scikit-learn itself cannot predict with it ("),
        ({"L_": None}, "scikit-learn itself cannot predict with it ("),
        ({"scale_": np.zeros(3)}, "StandardScaler (step 'standardscaler'): scale_: 0 is not positive"),
        ({"scale_": np.ones(2)}, "StandardScaler (step 'standardscaler'): scale_: has shape (2,), expected (3,)"),
        ({"mean_": np.full(3, np.nan)}, "StandardScaler (step 'standardscaler'): mean_: nan at index (0,) is not a "),
        ({"scale_": np.full(3, 1e308), "X_train_": np.full((40, 3), 1e9)}, "centres: "),
    ],
)
def test_an_estimator_that_was_edited(changes: dict[str, Any], message: str) -> None:
    assert refused(edited(**changes)).startswith(message)


def test_an_estimator_of_another_version_lacks_something() -> None:
    estimator = copy.deepcopy(scaled())
    del estimator[-1].base_estimator_.pi_
    assert refused(estimator).startswith("estimator: '_BinaryGaussianProcessClassifierLaplace' object has no attribute")
    assert refused(estimator).endswith("; fit it again with the scikit-learn that is installed here")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"box": 3.0}, "box: is not a pair (lower, upper), each a number or of shape (3,)"),
        ({"box": (0.0, [1.0, 2.0])}, "box: is not a pair (lower, upper), each a number or of shape (3,)"),
        ({"box": (0.0, np.nan)}, "box: nan is not a finite number"),
        ({"box": ("a", "b")}, "box: holds <U1 values, expected real numbers"),
        ({"box": (1.0, 0.0)}, "lower: input x0 (index 0) has lower 1 above upper 0"),
        ({"thresholds": (1.0, 1.0)}, "thresholds: (1.0, 1.0) is not a pair of latents (low, high), low below high"),
        ({"thresholds": 1.0}, "thresholds: 1.0 is not a pair of latents (low, high), low below high"),
        ({"thresholds": (0.0, np.inf)}, "thresholds: inf at index (1,) is not a finite number"),
        ({"percentile": 50.0}, "percentile: 50 is not from 0 to below 50"),
        ({"percentile": -1.0}, "percentile: -1 is not from 0 to below 50"),
        ({"input_names": ["a"]}, "input_names: 1 names for 3 inputs"),
    ],
)
def test_options_that_are_wrong(options: dict[str, Any], message: str) -> None:
    assert refused(scaled(), **options) == message


def test_a_latent_without_percentiles() -> None:
    flat = gpc(1.0 * RBF(1e-6)).fit(np.repeat([[0.0], [1.0]], 2, axis=0), [0, 1, 0, 1])
    assert refused(flat).startswith("percentile: the latent mean is ")
    assert from_sklearn(flat, thresholds=(-0.1, 0.1)).delta == 0.2


# Probes.


def test_probes_are_what_the_library_says() -> None:
    estimator = scaled()
    model = from_sklearn(estimator)
    assert model.probe_points is not None
    assert model.probe_points.shape == (20, 3)
    assert np.array_equal(model.probe_latents, oracle(estimator, model.probe_points))


@pytest.mark.parametrize("part", ["X_train_", "pi_", "kernel_"])
def test_an_import_that_is_wrong_by_a_millionth_is_seen(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library predicts with other numbers than those it shows."""
    estimator = copy.deepcopy(scaled())
    binary = estimator[-1].base_estimator_
    honest = type(binary).latent_mean_and_variance

    def otherwise(self: Any, points: np.ndarray) -> Any:
        other = copy.deepcopy(self)
        if part == "kernel_":
            other.kernel_.theta = other.kernel_.theta + 1e-6
        else:
            setattr(other, part, getattr(other, part) * (1 + 1e-6))
        return honest(other, points)

    monkeypatch.setattr(type(binary), "latent_mean_and_variance", otherwise)
    said = refused(estimator)
    assert said.startswith("scikit-learn: probe ")
    assert "; nothing is imported. " in said


# Certificates.


@pytest.mark.parametrize("steps", [[], [StandardScaler()], [MinMaxScaler((-1, 1)), StandardScaler(with_mean=False)]])
def test_the_certificate_is_that_of_the_same_numbers_given_by_hand(steps: list[Any]) -> None:
    points = X if steps else X / UNITS
    estimator = make_pipeline(*copy.deepcopy(steps), gpc(2.0 * RBF([0.5, 0.8, 1.5]))).fit(points, Y)
    imported = from_sklearn(estimator)
    by_hand = KernelExpansion(
        imported.centres.tolist(),
        imported.weights.tolist(),
        imported.lengthscale.tolist(),
        imported.lower.tolist(),
        imported.upper.tolist(),
        variance=2.0,
        latent_low=imported.latent_low,
        latent_high=imported.latent_high,
    )
    assert by_hand.probe_points is None
    options: dict[str, Any] = {"method": "fixed", "slices": 3}
    assert daskab.certify(imported, **options).to_json() == daskab.certify(by_hand, **options).to_json()
