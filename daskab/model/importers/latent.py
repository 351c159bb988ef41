"""A latent mean read out of another library, and how any of them becomes a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from daskab.errors import ModelError
from daskab.model.checked import Array, names, numbers, positive, shaped
from daskab.model.expansion import KernelExpansion
from daskab.model.importers.assemble import Box, assemble, box_edges
from daskab.model.kernels import EQ, KernelName


@dataclass(frozen=True)
class Latent:
    """``constant + sum_i weights_i variance k(...)`` over points of D columns, of which a kernel may see fewer."""

    centres: Array
    weights: Array
    lengthscale: Array
    """One for each column the kernel sees."""
    variance: float
    constant: float
    columns: Array | slice
    """Those it sees, in its order."""
    predict: Callable[[Array], Array]
    """The library's own latent mean at points (P, D)."""
    kernel: KernelName = EQ


def kernel_columns(columns: ArrayLike | None, d: int) -> Array | slice:
    """The columns of D a kernel is said to see, None being all of them."""
    if columns is None:
        return slice(None)
    found = np.atleast_1d(np.asarray(columns))
    if found.dtype.kind not in "iu" or np.any(found < 0) or np.any(found >= d) or np.unique(found).size != found.size:
        raise ModelError(f"kernel: active_dims {found.tolist()} are not different columns from 0 to {d - 1}")
    return found


def per_column(name: str, lengthscale: ArrayLike, d: int) -> Array:
    """Lengthscales (D,) from one or D of them, all positive."""
    scale = np.squeeze(numbers(name, lengthscale))
    return positive(name, np.full(d, float(scale)) if scale.ndim == 0 else shaped(name, scale, (d,)))


def which_output(count: int, output: int | None) -> int:
    """The index of the one latent that is meant, of those a model has."""
    if count == 1 and output is None:
        return 0
    if count == 1:
        raise ModelError(f"output: {output!r} given, but the model has only one output")
    if not isinstance(output, int | np.integer) or not 0 <= output < count:
        raise ModelError(f"output: the model has {count} outputs: give one of 0 to {count - 1} as output")
    return int(output)


def imported(
    source: str,
    latent: Latent,
    X: ArrayLike | None,
    box: Box | None,
    thresholds: tuple[float, float] | None,
    percentile: float,
    input_names: Sequence[str],
) -> KernelExpansion:
    """The model of a latent mean; box and names are of the columns its kernel sees. See `assemble`."""
    d = latent.centres.shape[1]
    if X is not None:
        points = numbers("X", X, ndim=2)
        if points.shape[1] != d or not points.size:
            raise ModelError(f"X: has shape {points.shape}, expected points of {d} columns")
    elif box is None or thresholds is None:
        raise ModelError(
            "X: the model does not hold the points it was trained on; give them as X, or give both box and thresholds"
        )
    else:
        points = latent.centres
    seen = latent.columns
    training = points[:, seen]
    lower, upper = box_edges(box, training)
    bare = KernelExpansion(
        latent.centres[:, seen],
        latent.weights,
        latent.lengthscale,
        lower,
        upper,
        variance=latent.variance,
        constant=latent.constant,
        input_names=names(input_names, training.shape[1]) if len(input_names) else _names(latent, d),
        kernel=latent.kernel,
    )

    def predict(at: Array) -> Array:
        full = np.tile(points[0], (at.shape[0], 1))
        full[:, seen] = at
        return latent.predict(full)

    return assemble(source, bare, training, predict, thresholds, percentile)


def _names(latent: Latent, d: int) -> list[str]:
    """Columns keep their number, so that one left out is seen."""
    return [f"x{j}" for j in np.arange(d)[latent.columns]]
