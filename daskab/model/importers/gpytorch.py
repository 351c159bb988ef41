"""A variational Gaussian process of GPyTorch, on inducing points (method 1)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from daskab.errors import ModelError
from daskab.model.checked import Array, numbers
from daskab.model.expansion import KernelExpansion
from daskab.model.importers.assemble import Box
from daskab.model.importers.latent import Latent, imported, kernel_columns, per_column, which_output
from daskab.model.importers.libraries import library, named, reading
from daskab.model.importers.variational import variational_weights
from daskab.model.kernels import EQ, KernelName

# Of the largest latent the weights could add up to: what float32 loses on well-scaled columns is below 1e-8 of it, and
# what another jitter makes above 4e-6.
FLOAT32_TOLERANCE = 1e-6

MATERN: dict[float, KernelName] = {0.5: "exponential", 1.5: "matern32", 2.5: "matern52"}


def from_gpytorch(
    model: Any,
    X: ArrayLike | None = None,
    *,
    output: int | None = None,
    box: Box | None = None,
    thresholds: tuple[float, float] | None = None,
    percentile: float = 5.0,
    input_names: Sequence[str] = (),
) -> KernelExpansion:
    r"""A fitted ApproximateGP of GPyTorch as a model that can be certified.

    With inducing points Z, variational mean m, constant mean c and :math:`K = K_{ZZ} + jI = LL^\top`, its latent mean
    is :math:`f(x) = c + k(x, Z) L^{-\top} m` (VariationalStrategy) or :math:`c + k(x, Z) K^{-1} (m - c)`
    (UnwhitenedVariationalStrategy), where j is the strategy's ``jitter_val``: unless it was given, GPyTorch's setting
    for the model's dtype, 1e-4 for float32 and 1e-6 for float64.

    Parameters
    ----------
    model : gpytorch.models.ApproximateGP
        Fitted, with one of these strategies and any variational distribution: only its mean counts. Its ``forward`` is
        its ``mean_module``, a ConstantMean or ZeroMean, and its ``covar_module``, an RBFKernel or MaternKernel of one
        or per-input lengthscales, in ScaleKernels if need be. The likelihood does not matter: the certificate is about
        the latent. The model is not changed.
    X : array_like, shape (N, D), optional
        The points it was trained on, which it does not hold itself. May be left out where box and thresholds are given.
    output : int, optional
        Which one, of a model of several independent outputs: of a batch, or an IndependentMultitaskVariationalStrategy.
        They are certified one by one.
    box : tuple (lower, upper) of float or array_like, shape (D,), optional
        The inputs the certificate speaks of. Default: the range of each column of X. Where the kernel has
        ``active_dims``, the model, its box and names are of those columns.
    thresholds : tuple (latent_low, latent_high), optional
        What *confidently* means, as latents. Default: by ``percentile``.
    percentile : float
        In percent, from 0 to below 50: the thresholds are this and the opposite percentile of the latent mean over X.
    input_names : sequence of str, optional
        Default ``x0, x1, ...``.

    Returns
    -------
    KernelExpansion
        In float64, whatever the model's dtype is: the function that its parameters stand for. With 20 probes: points of
        the box at which GPyTorch's own prediction was asked, of a float32 model as a copy in float64 with the same
        jitter; what it says in float32 must agree too, to 1e-6 of the largest the latent could be.

    Raises
    ------
    ModelError
        If gpytorch is not installed, if the model is not fitted or not such a one (what is not supported is named), if
        a number is not finite, or if GPyTorch does not agree with the result.

    Notes
    -----
    Hensman, Matthews, Ghahramani (2015); see daskab/model/importers/variational.py.
    """
    gpytorch = library("gpytorch")
    if not isinstance(model, gpytorch.models.ApproximateGP):
        raise ModelError(f"model: {named(model)} is not an ApproximateGP of gpytorch")
    with reading():
        own, double = _copies(gpytorch, model)
        latent = _read(gpytorch, own, double, output)
    return imported("GPyTorch", latent, X, box, thresholds, percentile, input_names)


def _copies(gpytorch: Any, model: Any) -> tuple[Any, Any]:
    """The model as it is and in float64, with the same jitter; both ready to predict, with nothing cached.

    A cache may be older than the parameters, or hold tensors that cannot be copied.
    """
    strategy = _strategy(gpytorch, model)
    dtype = str(strategy.inducing_points.dtype)
    if dtype not in ("torch.float32", "torch.float64"):
        raise ModelError(f"model: is in {dtype}; daskab imports models in float32 or float64")
    caches = [part._memoize_cache for part in model.modules() if hasattr(part, "_memoize_cache")]
    own, double = (copy.deepcopy(model, {id(cache): {} for cache in caches}).cpu().eval() for _ in range(2))
    double.double()
    _strategy(gpytorch, double).jitter_val = strategy.jitter_val
    return own, double


def _strategy(gpytorch: Any, model: Any) -> Any:
    """The strategy of a model, or of each of its outputs; ModelError if it is none of the two, or not fitted."""
    kinds = gpytorch.variational
    strategy = model.variational_strategy
    if type(strategy) is kinds.IndependentMultitaskVariationalStrategy:
        strategy = strategy.base_variational_strategy
    # A subclass may whiten in another way.
    if type(strategy) not in (kinds.VariationalStrategy, kinds.UnwhitenedVariationalStrategy):
        raise ModelError(
            f"model: {named(strategy)} is not supported; daskab imports a VariationalStrategy or an "
            "UnwhitenedVariationalStrategy, and several outputs of one as an IndependentMultitaskVariationalStrategy"
        )
    if not strategy.variational_params_initialized.item():
        raise ModelError("model: its variational distribution was never set, so it is not fitted; train it first")
    if not getattr(strategy, "updated_strategy", True):
        raise ModelError("model: was saved by an old GPyTorch and is not whitened yet; predict with it once first")
    return strategy


@contextmanager
def _exactly(gpytorch: Any) -> Iterator[None]:
    """GPyTorch solves by Cholesky factors whatever the size, keeps no gradients, and its warnings to itself."""
    with ExitStack() as stack:
        stack.enter_context(gpytorch.settings.fast_computations(False, False, False))
        stack.enter_context(library("torch").no_grad())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield


def _read(gpytorch: Any, own: Any, double: Any, output: int | None) -> Latent:
    """The latent mean of one output, from the copy in float64."""
    strategy = _strategy(gpytorch, double)
    with _exactly(gpytorch):
        _check_forward(double, strategy.inducing_points)
        centres = _array("inducing_points", strategy.inducing_points)
        mean = _array("variational mean", strategy.variational_distribution.mean)
        kernel, variance, lengthscale = _kernel(gpytorch, double.covar_module)
        constant = _constant(gpytorch, double.mean_module)
    shapes = (centres.shape[:-2], mean.shape[:-1], lengthscale.shape[:-2], variance.shape, constant.shape)
    batch = np.broadcast_shapes(*shapes)
    if len(batch) > 1:
        raise ModelError(f"model: is a batch of shape {batch}; daskab imports batches of one dimension, one by one")
    k = which_output(batch[0] if batch else 1, output)

    def of_output(values: Array, own: int) -> Array:
        whole = np.broadcast_to(values, (batch or (1,)) + values.shape[values.ndim - own :])
        return np.array(whole[k])

    columns = kernel_columns(double.covar_module.active_dims, centres.shape[-1])
    points, c, v = of_output(centres, 2), float(of_output(constant, 0)), float(of_output(variance, 0))
    seen = points[:, columns]
    scale = per_column("kernel: lengthscale", of_output(lengthscale, 2), seen.shape[1])
    whitened = type(strategy) is gpytorch.variational.VariationalStrategy
    offset = of_output(mean, 1) - (0.0 if whitened else c)
    weights = variational_weights(kernel, seen, offset, scale, v, strategy.jitter_val, whitened=whitened)
    largest = abs(c) + v * float(np.sum(np.abs(weights)))
    multitask = strategy is not double.variational_strategy

    def ask(model: Any, points: Array) -> Array:
        at = library("torch").as_tensor(points).to(_strategy(gpytorch, model).inducing_points.dtype)
        with _exactly(gpytorch):
            predicted = _array("prediction", model(at).mean)
        return predicted[:, k] if multitask else predicted.reshape(-1, predicted.shape[-1])[k]

    def predict(points: Array) -> Array:
        exact, said = ask(double, points), ask(own, points)
        off = float(np.max(np.abs(exact - said)))
        if off > FLOAT32_TOLERANCE * largest:
            raise ModelError(
                f"model: in float32 its predictions are off by {off:.2g}, so a certificate would be about another "
                "function; convert it (model.double()) and see whether it still predicts well, or rescale columns that "
                "are far from zero for their lengthscale"
            )
        return exact

    return Latent(points, weights, scale, v, c, columns, predict, kernel)


def _array(name: str, tensor: Any) -> Array:
    return numbers(name, tensor.detach().numpy())


def _check_forward(model: Any, points: Any) -> None:
    """ModelError if the prior is not what the modules say of the inputs as they are."""
    for part in ("mean_module", "covar_module"):
        if not hasattr(model, part):
            raise ModelError(f"model: has no {part}; daskab looks for its mean_module and covar_module by these names")
    torch = library("torch")
    try:
        prior = model.forward(points)
        mean, covariance = model.mean_module(points), model.covar_module(points).to_dense()
        same = all(
            torch.allclose(a, b, equal_nan=True) for a, b in ((prior.mean, mean), (prior.covariance_matrix, covariance))
        )
    except Exception:  # of other shapes, or not even of a Gaussian
        same = False
    if not same:
        raise ModelError(
            "model: its forward is not its mean_module and covar_module of the inputs as they are (features of them, "
            "perhaps), so its latent is no kernel expansion of its inputs"
        )


def _kernel(gpytorch: Any, kernel: Any) -> tuple[KernelName, Array, Array]:
    """Name, variance (batch) and lengthscales (batch, 1, 1 or D) of an RBFKernel or MaternKernel in ScaleKernels."""
    kinds = gpytorch.kernels
    variance, inner, path = np.ones(()), kernel, ""
    while type(inner) is kinds.ScaleKernel:
        variance = variance * _array("kernel: outputscale", inner.outputscale)
        inner, path = inner.base_kernel, f"{path} in ScaleKernel"
    # A subclass is another kernel.
    if type(inner) not in (kinds.RBFKernel, kinds.MaternKernel):
        raise ModelError(
            f"kernel: {named(inner)}{path} is not supported; daskab certifies one RBFKernel or MaternKernel, in "
            "ScaleKernels if need be"
        )
    # GPyTorch has no Matern but these.
    name = EQ if type(inner) is kinds.RBFKernel else MATERN[inner.nu]
    return name, variance, _array("kernel: lengthscale", inner.lengthscale)


def _constant(gpytorch: Any, mean: Any) -> Array:
    if type(mean) is gpytorch.means.ZeroMean:
        return np.zeros(())
    if type(mean) is gpytorch.means.ConstantMean:
        return _array("mean: constant", mean.constant)
    raise ModelError(f"mean: {named(mean)} is not supported; daskab certifies a ConstantMean or a ZeroMean")
