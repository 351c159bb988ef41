"""The model in the coordinates the kernels work in: box [0, width], unit lengthscale (METHOD 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskab.bound.reach import Reach
from daskab.bound.rounding import EPS
from daskab.errors import ModelError
from daskab.model.expansion import KernelExpansion
from daskab.model.kernels import EQ

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
    reach: Reach  #: what the domain says beside the box

    @classmethod
    def of(cls, model: KernelExpansion) -> Scaled:
        """Scale a model.

        Raises
        ------
        ModelError
            If its kernel is not EQ, of which everything that is bounded in these coordinates is made.
        """
        if model.kernel != EQ:
            raise ModelError(f"kernel: {model.kernel}, where only models with the EQ kernel are handled")
        return cls(
            centres=np.ascontiguousarray((model.centres - model.lower) / model.lengthscale),
            amplitudes=model.weights * model.variance,
            width=(model.upper - model.lower) / model.lengthscale,
            reach=reach_of(model),
        )


def reach_of(model: KernelExpansion) -> Reach:
    """The domain in scaled coordinates; limits rounded up (METHOD 1, The domain)."""
    domain, width = model.domain, (model.upper - model.lower) / model.lengthscale
    limit = domain.max_change / model.lengthscale * (1.0 + 8.0 * EPS) + 16.0 * EPS * width
    listed = [domain.listed.get(j, np.empty(0)) for j in range(model.n_inputs)]
    scaled = [(own - model.lower[j]) / model.lengthscale[j] for j, own in enumerate(listed)]
    first = np.concatenate(([0], np.cumsum([own.size for own in scaled]))).astype(np.int64)
    begin = np.concatenate(([0], np.cumsum([len(change) for change in domain.changes]))).astype(np.int64)
    member = np.concatenate(domain.changes).astype(np.int64)
    return Reach(np.where(domain.limited, limit, np.inf), first, np.concatenate(scaled), begin, member)


def to_model_units(model: KernelExpansion, scaled: Array) -> Array:
    """Points in scaled coordinates (..., D) back in the model's units, never outside its box."""
    return np.clip(model.lower + scaled * model.lengthscale, model.lower, model.upper)


def witness_pair(model: KernelExpansion, d: int, scaled: Array, end: float) -> tuple[Array, Array]:
    """A scaled point (D,) and where its input ``d`` moves, in the model's units: bit-equal in every other input."""
    x = to_model_units(model, scaled)
    moved = scaled.copy()
    moved[d] = end
    x_prime = x.copy()
    x_prime[d] = to_model_units(model, moved)[d]
    return x, x_prime
