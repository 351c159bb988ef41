"""Variational models of GPflow: its own predictions, or a refusal by name. Runs where gpflow is installed."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

gpflow = pytest.importorskip("gpflow")

from examples import Call  # noqa: E402
from fixtures.agree import (  # noqa: E402
    assert_kept,
    assert_of_its_points,
    assert_the_command_line_needs_a_box,
    disagreement,
    refusal,
)
from fixtures.make_gpflow import BERNOULLI, KINDS, D, cases, models, rbf  # noqa: E402
from gpflow import inducing_variables, kernels, mean_functions  # noqa: E402

from daskab import ModelError, from_gpflow  # noqa: E402
from daskab.model.importers import gpflow as importer  # noqa: E402

# Nothing a library says may come beside what daskab says.
pytestmark = pytest.mark.filterwarnings("error")

X = np.random.default_rng(1).random((60, D))
MODELS = models()


def says(model: Any, points: np.ndarray, k: int = 0) -> np.ndarray:
    """The library's own latent mean."""
    return np.asarray(model.predict_f(points)[0])[:, k]


@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_the_library(name: str) -> None:
    original = MODELS[name]
    X = np.random.default_rng(1).random((60, D if "one input" not in name else 1))
    model = from_gpflow(original, X)
    assert disagreement(model, partial(says, original)) < 1e-13
    assert_of_its_points(model, X)


def test_the_fixtures_are_what_the_library_says_today() -> None:
    assert_kept("gpflow", cases())


@pytest.mark.parametrize("whiten", [False, True])
def test_a_model_as_training_leaves_it(whiten: bool) -> None:
    labels = (X.sum(axis=1) > 1.5).astype(float)[:, None]
    model = gpflow.models.SVGP(rbf(), BERNOULLI, X[:12].copy(), whiten=whiten, num_data=60)
    climb = gpflow.optimizers.NaturalGradient(gamma=0.5)
    for _ in range(3):
        climb.minimize(model.training_loss_closure((X, labels), compile=False), [(model.q_mu, model.q_sqrt)])
    imported = from_gpflow(model, X)
    assert disagreement(imported, partial(says, model)) < 1e-13
    assert np.mean((imported.latent(X) > 0) == labels[:, 0]) > 0.8  # positive is the class 1


@pytest.mark.parametrize("name", ["vgp", "opper archambeau"])
def test_models_that_hold_their_data(name: str) -> None:
    model = from_gpflow(MODELS[name])
    assert model.lower.tolist() == model.centres.min(axis=0).tolist()
    assert (model.latent_low, model.latent_high) == tuple(np.percentile(model.latent(model.centres), [5, 95]))


def test_models_that_do_not() -> None:
    assert from_gpflow(MODELS["svgp"], box=(0.0, 1.0), thresholds=(-1, 1)).delta == 2.0
    with pytest.raises(ModelError, match=r"^X: the model does not hold the points it was trained on"):
        from_gpflow(MODELS["svgp"])


@pytest.mark.parametrize("name", ["svgp", "svgp unwhitened", "vgp"])
def test_the_jitter_is_the_configured_one(name: str) -> None:
    usual = from_gpflow(MODELS[name], X)
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-3)):
        other = from_gpflow(MODELS[name], X)
        assert disagreement(other, partial(says, MODELS[name])) < 1e-13
    assert np.max(np.abs(usual.latent(X) - other.latent(X))) > 1e-4


@pytest.mark.parametrize("jitter", [1e-3, 1.01e-6, 1e-8])
@pytest.mark.parametrize("name", ["svgp", "svgp unwhitened", "vgp"])
def test_a_wrong_jitter_is_seen(name: str, jitter: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classic mistake, were it daskab's: nothing is imported."""
    honest = importer.variational_weights

    def otherwise(*args: Any, **options: Any) -> Any:
        return honest(*args[:5], jitter, **options)

    monkeypatch.setattr(importer, "variational_weights", otherwise)
    with pytest.raises(ModelError, match=r"^GPflow: probe \d+: the latent is .*; nothing is imported\. "):
        from_gpflow(MODELS[name], X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dims", [[2, 0], slice(0, 3, 2)])
def test_active_dims(kind: str, dims: Any) -> None:
    model = KINDS[kind](rbf(0.5, 0.9, active_dims=dims))
    columns = np.arange(3)[dims]
    imported = from_gpflow(model, X)
    assert imported.input_names == tuple(f"x{j}" for j in columns)
    assert imported.lower.tolist() == X[:, columns].min(axis=0).tolist()
    assert np.max(np.abs(imported.latent(X[:, columns]) - says(model, X))) < 1e-13 * imported.largest_latent


@pytest.mark.parametrize("kind", KINDS)
def test_several_outputs(kind: str) -> None:
    model = KINDS[kind](outputs=3, mean_function=mean_functions.Constant([0.1, -0.2, 0.3]))
    for k in (0, 2):
        assert disagreement(from_gpflow(model, X, output=k), partial(says, model, k=k)) < 1e-13
    for wrong in (None, 3, -1):
        assert refused(model, output=wrong) == "output: the model has 3 outputs: give one of 0 to 2 as output"


def test_outputs_that_share_their_mean() -> None:
    model = KINDS["svgp"](outputs=2, mean_function=mean_functions.Constant([0.2]))
    assert disagreement(from_gpflow(model, X, output=1), partial(says, model, k=1)) < 1e-13


def test_the_command_line(call: Call) -> None:
    assert_the_command_line_needs_a_box(call, MODELS["svgp"], from_gpflow)


# What is refused.


def refused(model: Any, **options: Any) -> str:
    return refusal(partial(from_gpflow, model, X, **options))


class Own(kernels.SquaredExponential):
    pass


ONLY = "is not supported; daskab certifies one SquaredExponential, Exponential, Matern12, Matern32 or Matern52"


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda: kernels.RationalQuadratic(), f"kernel: RationalQuadratic {ONLY}"),
        (lambda: rbf() + rbf(2.0), f"kernel: Sum {ONLY}"),
        (lambda: rbf() * kernels.Constant(2.0), f"kernel: Product {ONLY}"),
        (lambda: Own(), f"kernel: Own {ONLY}"),
        (lambda: kernels.SharedIndependent(rbf(), 2), f"kernel: SharedIndependent {ONLY}"),
        (lambda: rbf(active_dims=[1, 1, 0]), "kernel: active_dims [1, 1, 0] are not different columns from 0 to 2"),
    ],
)
def test_other_kernels_are_refused_by_name(kernel: Any, message: str) -> None:
    assert refused(KINDS["svgp"](kernel())) == message


def test_other_parts_are_refused_by_name() -> None:
    assert refused(KINDS["vgp"](mean_function=mean_functions.Linear(np.ones((D, 1))))) == (
        "mean_function: Linear is not supported; daskab certifies a Constant or Zero one"
    )
    multiscale = inducing_variables.Multiscale(X[:12], np.full((12, D), 0.1))
    assert refused(gpflow.models.SVGP(rbf(), BERNOULLI, multiscale)) == (
        "model: Multiscale is not supported as inducing variable; only InducingPoints"
    )
    for model, name in [
        (gpflow.models.GPR((X, X[:, :1]), rbf()), "GPR"),
        (gpflow.models.SGPR((X, X[:, :1]), rbf(), X[:5]), "SGPR"),
        (None, "NoneType"),
    ]:
        assert refused(model) == (
            f"model: {name} is not supported; daskab imports an SVGP, VGP or VGPOpperArchambeau of gpflow"
        )
    assert refused(MODELS["vgp"], output=0) == "output: 0 given, but the model has only one output"
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        twice = gpflow.models.SVGP(rbf(), BERNOULLI, np.zeros((3, D)), q_mu=np.ones((3, 1)))
        assert refused(twice).startswith("model: the kernel of its inducing points, with a jitter of 0, has no ")


def test_float32_is_refused() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        model = gpflow.models.SVGP(rbf(), BERNOULLI, X[:5].astype(np.float32))
        assert refused(model) == (
            "model: inducing_variable is in float32, in which GPflow's jitter is lost to rounding; fit it in float64, "
            "GPflow's default"
        )


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (lambda m: m.inducing_variable.Z, "inducing_variable: nan at index (0, 0) is not a finite number"),
        (lambda m: m.q_mu, "q_mu: nan at index (0, 0) is not a finite number"),
        (lambda m: m.kernel.lengthscales, "kernel: lengthscales: nan at index (0,) is not a finite number"),
        (lambda m: m.mean_function.c, "mean_function: c: nan at index (0,) is not a finite number"),
    ],
)
def test_numbers_that_are_none(part: Any, message: str) -> None:
    model = KINDS["svgp"](mean_function=mean_functions.Constant([0.0]))
    variable = part(model).unconstrained_variable
    variable.assign(np.full(variable.shape, np.nan))
    assert refused(model) == message
