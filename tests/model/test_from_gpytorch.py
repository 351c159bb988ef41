"""Variational models of GPyTorch: its own predictions, or a refusal by name. Runs where gpytorch is installed."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import pytest

gpytorch = pytest.importorskip("gpytorch")
torch = pytest.importorskip("torch")

from examples import Call  # noqa: E402
from fixtures.agree import (  # noqa: E402
    assert_kept,
    assert_of_its_points,
    assert_the_command_line_needs_a_box,
    disagreement,
    refusal,
)
from fixtures.make_gpytorch import STRATEGIES, Classifier, D, cases, fitted, models, rbf, scaled  # noqa: E402
from gpytorch import kernels, means, variational  # noqa: E402

from daskab import ModelError, from_gpytorch  # noqa: E402
from daskab.model.importers import gpytorch as importer  # noqa: E402

# Nothing a library says may come beside what daskab says.
pytestmark = pytest.mark.filterwarnings("error")

torch.set_num_threads(1)  # on so little each thread only waits for the others

X = np.random.default_rng(1).random((60, D))
MODELS = models()


def in_double(model: Any) -> Any:
    """A copy in float64 that keeps the jitter, as it would be a mistake not to."""
    strategy = getattr(model.variational_strategy, "base_variational_strategy", model.variational_strategy)
    jitter = strategy.jitter_val
    double = copy.deepcopy(model).double()
    getattr(double.variational_strategy, "base_variational_strategy", double.variational_strategy).jitter_val = jitter
    return double


def says(model: Any, points: np.ndarray) -> np.ndarray:
    """The library's own latent mean."""
    with torch.no_grad():
        return np.asarray(model.eval()(torch.tensor(points)).mean)


@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_the_library(name: str) -> None:
    original = MODELS[name]
    X = np.random.default_rng(1).random((60, original.variational_strategy.inducing_points.shape[1]))
    model = from_gpytorch(original, X)
    # Distances between the same two points are 1e-8 in GPyTorch, which only this kernel is not flat enough to hide.
    assert disagreement(model, partial(says, in_double(original))) < (1e-8 if name.endswith("matern 0.5") else 1e-13)
    assert_of_its_points(model, X)


def test_the_fixtures_are_what_the_library_says_today() -> None:
    assert_kept("gpytorch", cases())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("strategy", STRATEGIES.values())
def test_a_model_as_training_leaves_it(strategy: Any, dtype: Any) -> None:
    """In training mode, with caches that hold gradients, and unchanged by the import."""
    torch.manual_seed(0)
    inputs = torch.tensor(X, dtype=dtype)
    labels = (inputs.sum(1) > 1.5).to(dtype)
    model = Classifier(inputs[:20].clone(), strategy=strategy).to(dtype).train()
    likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, 60)
    climb = torch.optim.Adam(model.parameters(), lr=0.2)
    for _ in range(25):
        climb.zero_grad()
        loss = -bound(model(inputs), labels)
        loss.backward()
        climb.step()
    before = copy.deepcopy(model.state_dict())
    state = torch.get_rng_state()
    imported = from_gpytorch(model, inputs)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    model.eval()
    with torch.no_grad():
        own = model(inputs).mean.double().numpy()
    exact = imported.latent(X.astype(str(dtype).removeprefix("torch.")))
    assert np.max(np.abs(exact - own)) < (1e-6 if dtype == torch.float32 else 1e-13) * imported.largest_latent
    of_one = labels.numpy() == 1
    assert np.mean(own[of_one]) > np.mean(own[~of_one])  # positive is the class 1


def test_what_is_cached_is_not_believed() -> None:
    model = fitted()
    says(model, X)
    with torch.no_grad():
        model.covar_module.base_kernel.raw_lengthscale.add_(0.3)
    assert from_gpytorch(model, X).lengthscale.tolist() == pytest.approx(
        model.covar_module.base_kernel.lengthscale.flatten().tolist(), rel=1e-15
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("strategy", STRATEGIES.values())
def test_the_jitter_is_that_of_the_settings_for_the_dtype(strategy: Any, dtype: Any) -> None:
    model = fitted(strategy=strategy, dtype=dtype)
    usual = from_gpytorch(model, X)
    with gpytorch.settings.variational_cholesky_jitter(2e-3, 1e-3):
        other = from_gpytorch(model, X)
        assert disagreement(other, partial(says, in_double(model))) < 1e-13
    assert np.max(np.abs(usual.latent(X) - other.latent(X))) > 1e-4


@pytest.mark.parametrize("jitter", [1e-3, 1.01e-4, 1e-5, 1.01e-6, 1e-8])
@pytest.mark.parametrize("name", [name for name in MODELS if "float" in name])
def test_a_wrong_jitter_is_seen(name: str, jitter: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classic mistake, were it daskab's: nothing is imported."""
    honest = importer.variational_weights

    def otherwise(*args: Any, **options: Any) -> Any:
        return honest(*args[:5], jitter, **options)

    monkeypatch.setattr(importer, "variational_weights", otherwise)
    with pytest.raises(ModelError, match=r"^GPyTorch: probe \d+: the latent is .*; nothing is imported\. "):
        from_gpytorch(MODELS[name], X)


@pytest.mark.parametrize("name", ["whitened float32", "unwhitened float32"])
def test_what_float32_itself_says_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a copy in float64 would be wrong in the same way as daskab, were it made with another jitter."""
    honest = importer._copies

    def otherwise(*args: Any) -> Any:
        own, double = honest(*args)
        double.variational_strategy.jitter_val = 1e-6  # float64's
        return own, double

    monkeypatch.setattr(importer, "_copies", otherwise)
    with pytest.raises(ModelError, match=r"^model: in float32 its predictions are off by "):
        from_gpytorch(MODELS[name], X)


def test_float32_far_from_zero_is_refused() -> None:
    model = fitted(dtype=torch.float32)
    with torch.no_grad():
        model.variational_strategy.inducing_points.add_(3e5)
    with pytest.raises(ModelError) as caught:
        from_gpytorch(model, X + 3e5)
    assert str(caught.value).startswith("model: in float32 its predictions are off by ")
    assert str(caught.value).endswith(
        ", so a certificate would be about another function; convert it (model.double()) and see whether it still "
        "predicts well, or rescale columns that are far from zero for their lengthscale"
    )


@pytest.mark.parametrize("strategy", STRATEGIES.values())
def test_more_inducing_points_than_gpytorch_factors(strategy: Any) -> None:
    """From 800 on it iterates to a tolerance; it is asked for the exact answer."""
    model = fitted(strategy=strategy)
    many = torch.tensor(np.random.default_rng(0).random((810, D)))
    large = Classifier(many, strategy=strategy, distribution=variational.DeltaVariationalDistribution).double()
    large.covar_module = model.covar_module
    with torch.no_grad():
        large.variational_strategy._variational_distribution.variational_mean.copy_(torch.sin(2 * many[:, 0]))
    large.variational_strategy.variational_params_initialized.fill_(1)
    assert from_gpytorch(large, X).n_centres == 810


def test_points_may_be_tensors_and_box_and_names_are_as_given() -> None:
    model = from_gpytorch(
        fitted(), torch.tensor(X, dtype=torch.float32), box=(-1.0, [2.0, 3.0, 4.0]), percentile=20.0, input_names="abc"
    )
    assert (model.lower.tolist(), model.upper.tolist()) == ([-1.0] * 3, [2.0, 3.0, 4.0])
    assert model.input_names == ("a", "b", "c")
    assert from_gpytorch(fitted(), box=(0.0, 1.0), thresholds=(-1, 1)).delta == 2.0
    with pytest.raises(ModelError, match=r"^X: the model does not hold the points it was trained on"):
        from_gpytorch(fitted())


@pytest.mark.parametrize("strategy", STRATEGIES.values())
@pytest.mark.parametrize("scale", [True, False])
def test_active_dims(strategy: Any, scale: bool) -> None:
    kernel = rbf(0.5, 0.9, active_dims=(2, 0))
    model = fitted(strategy=strategy, kernel=scaled(kernel) if scale else kernel)
    imported = from_gpytorch(model, X)
    assert imported.input_names == ("x2", "x0")
    assert imported.lower.tolist() == X[:, [2, 0]].min(axis=0).tolist()
    full = np.random.default_rng(2).random((50, D))
    assert np.max(np.abs(imported.latent(full[:, [2, 0]]) - says(model, full))) < 1e-13 * imported.largest_latent


@pytest.mark.parametrize("multitask", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES.values())
def test_several_outputs(strategy: Any, multitask: bool) -> None:
    model = fitted(strategy=strategy, outputs=3, multitask=multitask)
    for k in range(3):
        imported = from_gpytorch(model, X, output=k)
        expected = (lambda p, k=k: says(model, p)[:, k]) if multitask else (lambda p, k=k: says(model, p)[k])
        assert disagreement(imported, expected) < 1e-13
    for wrong in (None, 3, -1):
        assert refused(model, output=wrong) == "output: the model has 3 outputs: give one of 0 to 2 as output"


def test_outputs_that_share_their_kernel() -> None:
    model = fitted(outputs=2, kernel=scaled(), mean=means.ZeroMean())
    for k in range(2):
        assert disagreement(from_gpytorch(model, X, output=k), lambda p, k=k: says(model, p)[k]) < 1e-13


def test_the_command_line(call: Call) -> None:
    assert_the_command_line_needs_a_box(call, MODELS["whitened float32"], from_gpytorch)


# What is refused.


def refused(model: Any, **options: Any) -> str:
    return refusal(partial(from_gpytorch, model, X, **options))


class Deep(Classifier):
    def forward(self, x: Any) -> Any:
        return super().forward(x**2)


class OfOthers(Classifier):
    def forward(self, x: Any) -> Any:
        return super().forward(x[:, :2])


class Nameless(Classifier):
    def forward(self, x: Any) -> Any:
        return super().forward(x)

    def __getattr__(self, name: str) -> Any:
        if name == "covar_module":
            raise AttributeError(name)
        return super().__getattr__(name)


class Own(kernels.RBFKernel):
    pass


class Exact(gpytorch.models.ExactGP):
    pass


class Whitened(variational.VariationalStrategy):
    pass


ONLY = "is not supported; daskab certifies one RBFKernel or MaternKernel, in ScaleKernels if need be"
STRATEGY = (
    "is not supported; daskab imports a VariationalStrategy or an UnwhitenedVariationalStrategy, and several outputs "
    "of one as an IndependentMultitaskVariationalStrategy"
)
FORWARD = (
    "model: its forward is not its mean_module and covar_module of the inputs as they are (features of them, "
    "perhaps), so its latent is no kernel expansion of its inputs"
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": kernels.RQKernel()}, f"kernel: RQKernel {ONLY}"),
        ({"kernel": scaled(kernels.RQKernel())}, f"kernel: RQKernel in ScaleKernel {ONLY}"),
        ({"kernel": scaled(scaled(Own()))}, f"kernel: Own in ScaleKernel in ScaleKernel {ONLY}"),
        ({"kernel": rbf() + rbf(2.0)}, f"kernel: AdditiveKernel {ONLY}"),
        ({"kernel": scaled(rbf() * rbf(2.0))}, f"kernel: ProductKernel in ScaleKernel {ONLY}"),
        (
            {"mean": means.LinearMean(D)},
            "mean: LinearMean is not supported; daskab certifies a ConstantMean or a ZeroMean",
        ),
        ({"strategy": Whitened}, f"model: Whitened {STRATEGY}"),
        ({"strategy": variational.CiqVariationalStrategy}, f"model: CiqVariationalStrategy {STRATEGY}"),
        ({"dtype": torch.float16}, "model: is in torch.float16; daskab imports models in float32 or float64"),
        (
            {"kernel": rbf(0.5, 0.7, active_dims=(1, 1))},
            "kernel: active_dims [1, 1] are not different columns from 0 to 2",
        ),
    ],
)
def test_other_parts_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    distribution = variational.CholeskyVariationalDistribution
    if options.get("strategy") is variational.CiqVariationalStrategy:
        distribution = variational.NaturalVariationalDistribution
    assert refused(fitted(distribution=distribution, **options)) == message


@pytest.mark.parametrize("kind", [Deep, OfOthers])
def test_features_of_the_inputs_are_refused(kind: Any) -> None:
    model = fitted(kernel=scaled(rbf()))
    model.__class__ = kind
    assert refused(model) == FORWARD


def test_models_that_are_none() -> None:
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    exact = Exact(torch.tensor(X), torch.tensor(X[:, 0]), likelihood)
    assert refused(exact) == "model: Exact is not an ApproximateGP of gpytorch"
    assert refused(None) == "model: NoneType is not an ApproximateGP of gpytorch"
    assert refused(fitted(), output=0) == "output: 0 given, but the model has only one output"
    nameless = fitted()
    nameless.__class__ = Nameless
    assert refused(nameless) == (
        "model: has no covar_module; daskab looks for its mean_module and covar_module by these names"
    )
    assert refused(Classifier(torch.tensor(X[:5]))) == (
        "model: its variational distribution was never set, so it is not fitted; train it first"
    )
    old = fitted()
    old.variational_strategy.updated_strategy.fill_(False)
    assert refused(old) == "model: was saved by an old GPyTorch and is not whitened yet; predict with it once first"
    grid = fitted()
    grid.mean_module = means.ConstantMean(batch_shape=torch.Size([2, 3]))
    assert refused(grid) == "model: is a batch of shape (2, 3); daskab imports batches of one dimension, one by one"
    coincide = fitted(jitter_val=0.0)
    with torch.no_grad():
        coincide.variational_strategy.inducing_points[1] = coincide.variational_strategy.inducing_points[0]
    assert refused(coincide).startswith("model: the kernel of its inducing points, with a jitter of 0, has no ")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("inducing_points", "inducing_points: nan at index (0, 0) is not a finite number"),
        ("variational_mean", "variational mean: nan at index (0,) is not a finite number"),
        ("raw_constant", "mean: constant: nan is not a finite number"),
        ("raw_outputscale", "kernel: outputscale: nan is not a finite number"),
        ("raw_lengthscale", "kernel: lengthscale: nan at index (0, 0) is not a finite number"),
    ],
)
def test_numbers_that_are_none(part: str, message: str) -> None:
    model = fitted()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(part):
                parameter.view(-1)[0] = np.nan
    assert refused(model) == message
