"""Which scikit-learn kernels are one that is certified, and its parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Exponentiation, Matern, Product, Sum

from daskab.errors import ModelError
from daskab.model.checked import Array, numbers
from daskab.model.importers.latent import per_column
from daskab.model.kernels import EQ, KernelName

SUPPORTED = "daskab certifies one RBF or Matern of nu 0.5, 1.5 or 2.5, times ConstantKernels if need be"

MATERN: dict[float, KernelName] = {0.5: "exponential", 1.5: "matern32", 2.5: "matern52", math.inf: EQ}


def read_kernel(kernel: Any, d: int) -> tuple[KernelName, float, Array]:
    r"""Name, variance v and lengthscales l of a kernel of scikit-learn, :math:`v k(\sum_j (x_j - y_j)^2 / l_j^2)`.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        An RBF or a Matern, or a product, nested in any way, of one of them and ConstantKernels.
    d : int
        Inputs.

    Returns
    -------
    tuple of str, float and ndarray, shape (D,)

    Raises
    ------
    ModelError
        If it is any other kernel, which is named.
    """
    variance = 1.0
    shapes: list[tuple[KernelName, Array]] = []
    for factor in _factors(kernel):
        # A subclass is another kernel: Matern is one of RBF.
        if type(factor) is ConstantKernel:
            variance *= float(numbers("kernel: constant_value", factor.constant_value, shape=()))
        elif type(factor) is RBF or (type(factor) is Matern and factor.nu in MATERN):
            name = EQ if type(factor) is RBF else MATERN[factor.nu]
            shapes.append((name, per_column("kernel: length_scale", factor.length_scale, d)))
        else:
            part = "" if factor is kernel else f" in {formula(kernel)}"
            raise ModelError(f"kernel: {formula(factor)}{part} is not supported; {SUPPORTED}")
    if len(shapes) != 1:
        raise ModelError(f"kernel: {formula(kernel)} has {len(shapes)} RBFs and Materns; {SUPPORTED}")
    return shapes[0][0], variance, shapes[0][1]


def formula(kernel: Any) -> str:
    """A kernel as a formula of names, without its numbers, of which there may be hundreds."""
    match kernel:
        case Sum():
            return f"({formula(kernel.k1)} + {formula(kernel.k2)})"
        case Product():
            return f"{formula(kernel.k1)} * {formula(kernel.k2)}"
        case Exponentiation():
            return f"{formula(kernel.kernel)} ** {kernel.exponent:g}"
        case Matern():
            return f"Matern(nu={kernel.nu:g})"
        case _:
            return type(kernel).__name__


def _factors(kernel: Any) -> Iterator[Any]:
    if type(kernel) is Product:
        yield from _factors(kernel.k1)
        yield from _factors(kernel.k2)
    else:
        yield kernel
