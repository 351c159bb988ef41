"""Which scikit-learn kernels are an EQ kernel, and its two parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Exponentiation, Product, Sum

from daskab.errors import ModelError
from daskab.model.checked import Array, numbers
from daskab.model.importers.latent import per_column

SUPPORTED = "daskab certifies one RBF, times ConstantKernels if need be"


def read_kernel(kernel: Any, d: int) -> tuple[float, Array]:
    r"""Variance v and lengthscales l of a kernel :math:`v \exp(-\sum_j (x_j - y_j)^2 / 2 l_j^2)` of scikit-learn.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        An RBF, or a product, nested in any way, of one RBF and ConstantKernels.
    d : int
        Inputs.

    Returns
    -------
    tuple of float and ndarray, shape (D,)

    Raises
    ------
    ModelError
        If it is any other kernel, which is named.
    """
    variance = 1.0
    shapes: list[Array] = []
    for factor in _factors(kernel):
        # A subclass is another kernel: Matern is one of RBF.
        if type(factor) is ConstantKernel:
            variance *= float(numbers("kernel: constant_value", factor.constant_value, shape=()))
        elif type(factor) is RBF:
            shapes.append(per_column("kernel: length_scale", factor.length_scale, d))
        else:
            part = "" if factor is kernel else f" in {formula(kernel)}"
            raise ModelError(f"kernel: {formula(factor)}{part} is not supported; {SUPPORTED}")
    if len(shapes) != 1:
        raise ModelError(f"kernel: {formula(kernel)} has {len(shapes)} RBFs; {SUPPORTED}")
    return variance, shapes[0]


def formula(kernel: Any) -> str:
    """A kernel as a formula of names, without its numbers, of which there may be hundreds."""
    match kernel:
        case Sum():
            return f"({formula(kernel.k1)} + {formula(kernel.k2)})"
        case Product():
            return f"{formula(kernel.k1)} * {formula(kernel.k2)}"
        case Exponentiation():
            return f"{formula(kernel.kernel)} ** {kernel.exponent:g}"
        case _:
            return type(kernel).__name__


def _factors(kernel: Any) -> Iterator[Any]:
    if type(kernel) is Product:
        yield from _factors(kernel.k1)
        yield from _factors(kernel.k2)
    else:
        yield kernel
