"""The model in the coordinates the kernels work in: box [0, width], unit lengthscale (METHOD 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskab.model.expansion import KernelExpansion

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaled:
    """Flat arrays of a model after each input is shifted to its lower edge and divided by its lengthscale.

    Subtracting the edge first makes each coordinate accurate *relative to its own size*, however far the
    box lies from zero (METHOD, Lemma 1).
    """

    centres: Array  #: (M, D)
    amplitudes: Array  #: (M,) weights times variance
    width: Array  #: (D,) box edges in lengthscales

    @classmethod
    def of(cls, model: KernelExpansion) -> Scaled:
        """Scale a model."""
        return cls(
            centres=np.ascontiguousarray((model.centres - model.lower) / model.lengthscale),
            amplitudes=model.weights * model.variance,
            width=(model.upper - model.lower) / model.lengthscale,
        )


def to_model_units(model: KernelExpansion, scaled: Array) -> Array:
    """Points in scaled coordinates (..., D) back in the model's units, never outside its box."""
    return np.clip(model.lower + scaled * model.lengthscale, model.lower, model.upper)
