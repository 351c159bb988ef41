"""The one way daskab compiles a numerical kernel: cached, GIL-free, strict IEEE arithmetic, single-threaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function over flat float64 arrays with numba; to the type checker it stays what it was.

    ``fastmath`` is off because the rounding proofs count every operation in the order written, and
    ``parallel`` is off because parallel workers are Dask's business.
    """
    compiled = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)(function)
    return cast("Callable[P, R]", compiled)
