"""A variational Gaussian process of GPflow, on inducing points or on its data (method 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from daskab.errors import ModelError
from daskab.model.checked import Array, numbers
from daskab.model.expansion import KernelExpansion
from daskab.model.importers.assemble import Box
from daskab.model.importers.latent import Latent, imported, kernel_columns, per_column, which_output
from daskab.model.importers.libraries import kernel_name, library, named, reading
from daskab.model.importers.variational import variational_weights
from daskab.model.kernels import EQ, KernelName


def from_gpflow(
    model: Any,
    X: ArrayLike | None = None,
    *,
    output: int | None = None,
    box: Box | None = None,
    thresholds: tuple[float, float] | None = None,
    percentile: float = 5.0,
    input_names: Sequence[str] = (),
) -> KernelExpansion:
    r"""A fitted SVGP, VGP or VGPOpperArchambeau of GPflow as a model that can be certified.

    With constant mean function c, :math:`K = K_{ZZ} + jI = LL^\top` and j GPflow's ``default_jitter()``, 1e-6 unless it
    was configured, its latent mean is :math:`f(x) = c + k(x, Z) L^{-\top} q_\mu` (SVGP, whitened), :math:`c + k(x, Z)
    K^{-1} q_\mu` (SVGP with ``whiten=False``), the first with the training points as Z (VGP), or :math:`c + k(x, X)
    q_\alpha` (VGPOpperArchambeau).

    Parameters
    ----------
    model : gpflow.models.SVGP, VGP or VGPOpperArchambeau
        Fitted, in float64, GPflow's default. Its kernel is a SquaredExponential, Exponential, Matern12, Matern32 or
        Matern52 of one or per-input lengthscales, its mean function Zero or Constant, its inducing variable
        InducingPoints. The likelihood does not matter: the certificate is about the latent.
    X : array_like, shape (N, D), optional
        The points it was trained on. An SVGP does not hold them: there X may be left out where box and thresholds are
        given. The others hold them.
    output : int, optional
        Which one, of a model of several latent processes with one kernel. They are certified one by one.
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
        With 20 probes: points of the box at which the model's own ``predict_f`` was asked.

    Raises
    ------
    ModelError
        If gpflow is not installed, if the model is not such a one (what is not supported is named), if a number is not
        finite, or if GPflow does not agree with the result.

    Notes
    -----
    Hensman, Matthews, Ghahramani (2015); Opper and Archambeau (2009), equation 10; see
    daskab/model/importers/variational.py.
    """
    gpflow = library("gpflow")
    with reading():
        latent = _read(gpflow, model, output)
        held = None if isinstance(model, gpflow.models.SVGP) else latent.centres
    return imported("GPflow", latent, held if X is None else X, box, thresholds, percentile, input_names)


def _read(gpflow: Any, model: Any, output: int | None) -> Latent:
    """The latent mean of one process of a model."""
    kinds = gpflow.models
    jitter, whitened = gpflow.config.default_jitter(), True
    if isinstance(model, kinds.SVGP):
        inducing, whitened = model.inducing_variable, bool(model.whiten)
        if type(inducing) is not gpflow.inducing_variables.InducingPoints:
            raise ModelError(f"model: {named(inducing)} is not supported as inducing variable; only InducingPoints")
        centres, mean = _array("inducing_variable", inducing.Z), _array("q_mu", model.q_mu)
    elif isinstance(model, kinds.VGP):
        centres, mean = _array("data", model.data[0]), _array("q_mu", model.q_mu)
        jitter = float(np.float32(jitter))  # as a VGP, but not an SVGP, rounds it
    elif isinstance(model, kinds.VGPOpperArchambeau):
        centres, mean = _array("data", model.data[0]), _array("q_alpha", model.q_alpha)
    else:
        raise ModelError(
            f"model: {named(model)} is not supported; daskab imports an SVGP, VGP or VGPOpperArchambeau of gpflow"
        )
    k = which_output(mean.shape[1], output)
    kernel = model.kernel
    kernels = gpflow.kernels
    known: dict[type, KernelName] = {
        kernels.SquaredExponential: EQ,
        kernels.Exponential: "exponential",
        kernels.Matern12: "exponential",
        kernels.Matern32: "matern32",
        kernels.Matern52: "matern52",
    }
    name = kernel_name(kernel, known)
    d = centres.shape[1]
    dims = kernel.active_dims
    columns = kernel_columns(np.arange(d)[dims] if isinstance(dims, slice) else dims, d)
    seen = centres[:, columns]
    variance = float(_array("kernel: variance", kernel.variance))
    lengthscale = per_column("kernel: lengthscales", _array("kernel: lengthscales", kernel.lengthscales), seen.shape[1])
    if type(kernel) is kernels.Exponential:
        lengthscale = 2.0 * lengthscale  # GPflow's is exp(-r / 2)
    weights = mean[:, k]
    if not isinstance(model, kinds.VGPOpperArchambeau):
        weights = variational_weights(name, seen, weights, lengthscale, variance, jitter, whitened=whitened)
    constant = _constant(gpflow, model.mean_function, k)

    def predict(points: Array) -> Array:
        return np.asarray(model.predict_f(points)[0])[:, k]

    return Latent(centres, weights, lengthscale, variance, constant, columns, predict, name)


def _array(name: str, value: Any) -> Array:
    held = np.asarray(value)
    if held.dtype == np.float32:
        raise ModelError(
            f"model: {name} is in float32, in which GPflow's jitter is lost to rounding; fit it in float64, GPflow's "
            "default"
        )
    return numbers(name, held)


def _constant(gpflow: Any, mean: Any, k: int) -> float:
    if type(mean) is gpflow.mean_functions.Zero:
        return 0.0
    if type(mean) is gpflow.mean_functions.Constant:
        values = np.ravel(_array("mean_function: c", mean.c))
        return float(values[k if values.size > 1 else 0])
    raise ModelError(f"mean_function: {named(mean)} is not supported; daskab certifies a Constant or Zero one")
