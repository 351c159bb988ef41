"""The kernels a model may have, as functions of the distance in lengthscales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from daskab.errors import ModelError

Array = NDArray[np.float64]

KernelName = Literal["eq", "exponential", "matern32", "matern52"]

EQ: KernelName = "eq"


def checked_kernel(name: object) -> KernelName:
    """The name of a kernel.

    Raises
    ------
    ModelError
        If there is no such kernel.
    """
    if str(name) not in get_args(KernelName):
        raise ModelError(f"kernel: {str(name)!r} is none of {', '.join(get_args(KernelName))}")
    return cast("KernelName", str(name))


def profile(kernel: KernelName, half_squares: Array, exp: Callable[[Array], Array] = np.exp) -> Array:
    r"""Values of a kernel of variance 1, of half the squared distances t = r^2 / 2.

    .. math:: k(r) = e^{-r^2 / 2}, \quad e^{-r}, \quad (1 + \sqrt 3 r) e^{-\sqrt 3 r}, \quad
              (1 + \sqrt 5 r + 5 r^2 / 3) e^{-\sqrt 5 r}

    for ``eq``, ``exponential`` (Matern 1/2), ``matern32`` and ``matern52``: Rasmussen and Williams (2006), section 4.2.

    Parameters
    ----------
    kernel : str
    half_squares : ndarray, of any shape
    exp : what is used as the exponential, of every element of an array
    """
    if kernel == "eq":
        return exp(-half_squares)
    s = stretched(kernel, half_squares)
    if kernel == "exponential":
        return exp(-s)
    if kernel == "matern32":
        return (1.0 + s) * exp(-s)
    return (1.0 + s + s * s / 3.0) * exp(-s)


def stretched(kernel: KernelName, half_squares: Array) -> Array:
    """Distances r, times the root of 2 nu by which a Matern kernel stretches them: what its exponential is of."""
    factor = {"exponential": 2.0, "matern32": 6.0, "matern52": 10.0}[kernel]
    root: Array = np.sqrt(factor * half_squares)
    return root
