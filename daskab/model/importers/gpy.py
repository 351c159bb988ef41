"""A Gaussian-process classifier of GPy, dense or on inducing points (method 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daskab.errors import ModelError
from daskab.model.checked import Array, numbers
from daskab.model.expansion import KernelExpansion
from daskab.model.importers.assemble import Box
from daskab.model.importers.latent import Latent, imported, kernel_columns, per_column
from daskab.model.importers.libraries import kernel_name, library, named, reading
from daskab.model.kernels import EQ, KernelName


def from_gpy(
    model: Any,
    *,
    box: Box | None = None,
    thresholds: tuple[float, float] | None = None,
    percentile: float = 5.0,
    input_names: Sequence[str] = (),
) -> KernelExpansion:
    r"""A fitted GPClassification or SparseGPClassification of GPy as a model that can be certified.

    Its latent mean is :math:`f(x) = c + \sum_i \alpha_i\, k(x_i, x)` with the posterior's ``woodbury_vector`` as
    :math:`\alpha`, over the training points X, or over the inducing points Z of a sparse one, however it was inferred
    (EP, Laplace, EPDTC); positive means label 1.

    Parameters
    ----------
    model : GPy.models.GPClassification, SparseGPClassification or another GPy.core.GP
        Fitted, of one output. Its kernel is an RBF, Exponential (or OU), Matern32 or Matern52 of one or per-input
        lengthscales, its mean function none or a Constant. Several classes are several such models, certified one by
        one.
    box : tuple (lower, upper) of float or array_like, shape (D,), optional
        The inputs the certificate speaks of. Default: the range of each column of the training points. Where the kernel
        has ``active_dims``, the model, its box and names are of those columns.
    thresholds : tuple (latent_low, latent_high), optional
        What *confidently* means, as latents. Default: by ``percentile``.
    percentile : float
        In percent, from 0 to below 50: the thresholds are this and the opposite percentile of the latent mean over the
        training points.
    input_names : sequence of str, optional
        Default ``x0, x1, ...``.

    Returns
    -------
    KernelExpansion
        With 20 probes: points of the box at which the model's own ``predict_noiseless`` was asked.

    Raises
    ------
    ModelError
        If GPy is not installed, if the model is not such a one (what is not supported is named), if a number is not
        finite, or if GPy does not agree with the result.

    Notes
    -----
    Rasmussen and Williams (2006), sections 3.4 to 3.6; Naish-Guzman and Holden (2007) where sparse.
    """
    GPy = library("GPy")
    if not isinstance(model, GPy.core.GP):
        raise ModelError(f"model: {named(model)} is not a Gaussian process of GPy, as GPClassification is")
    with reading():
        latent = _read(GPy, model)
        training = numbers("X", model.X, ndim=2)
    return imported("GPy", latent, training, box, thresholds, percentile, input_names)


def _read(GPy: Any, model: Any) -> Latent:
    if model.posterior is None:
        raise ModelError("model: holds no posterior; call update_model(True) first")
    if model.normalizer is not None:
        raise ModelError("model: normalizes its labels; fit it with normalizer=False, as classifiers are")
    if isinstance(model.X, GPy.core.parameterization.variational.VariationalPosterior):
        raise ModelError("model: its inputs are uncertain; daskab certifies models of points")
    kernel = model.kern
    kinds = GPy.kern
    known: dict[type, KernelName] = {
        kinds.RBF: EQ,
        kinds.Exponential: "exponential",
        kinds.OU: "exponential",
        kinds.Matern32: "matern32",
        kinds.Matern52: "matern52",
    }
    name = kernel_name(kernel, known)
    centres = numbers("Z", model.Z, ndim=2) if isinstance(model, GPy.core.SparseGP) else numbers("X", model.X, ndim=2)
    columns = kernel_columns(kernel.active_dims, centres.shape[1])
    variance = float(np.squeeze(numbers("kernel: variance", kernel.variance)))
    lengthscale = per_column("kernel: lengthscale", kernel.lengthscale, kernel.input_dim)
    weights = numbers("woodbury_vector", model.posterior.woodbury_vector)
    if weights.size != centres.shape[0]:
        raise ModelError(
            f"model: its woodbury_vector has shape {weights.shape}, for {centres.shape[0]} points; daskab imports "
            "models of one output"
        )

    def predict(points: Array) -> Array:
        return np.asarray(model.predict_noiseless(points)[0])[:, 0]

    return Latent(
        centres,
        weights.ravel(),
        lengthscale,
        variance,
        _constant(GPy, model.mean_function),
        columns,
        predict,
        name,
    )


def _constant(GPy: Any, mean: Any) -> float:
    if mean is None:
        return 0.0
    if type(mean) is not GPy.mappings.Constant:
        raise ModelError(f"mean_function: {named(mean)} is not supported; daskab certifies a Constant one, or none")
    return float(np.squeeze(numbers("mean_function: C", mean.C)))
