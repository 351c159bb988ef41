"""One input's question in unit lengthscales, drawn from the model's arrays and nothing else (METHOD 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskab.model.expansion import KernelExpansion

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """How far the latent moves while one input goes from s to e and the others stay at z.

    g(s, e, z) = sum_i amplitude_i [k(e - own_i) - k(s - own_i)] k(|z - others_i|), k(t) = exp(-t^2 / 2), for s and e
    in [0, reach] and z in [0, width]. The order of s and e is free, so both directions are in it.
    """

    amplitude: Array  #: (M,) weights times variance
    own: Array  #: (M,) the centres' value of the input that changes
    reach: float  #: how far it can go
    others: Array  #: (M, D - 1) the centres' values of the rest
    width: Array  #: (D - 1,) how far those can go

    @classmethod
    def of(cls, model: KernelExpansion, d: int) -> Problem:
        """Of input ``d``."""
        lengthscale = np.broadcast_to(model.lengthscale, model.n_inputs)
        centres = (model.centres - model.lower) / lengthscale
        width = (model.upper - model.lower) / lengthscale
        return cls(
            amplitude=model.weights * model.variance,
            own=centres[:, d],
            reach=float(width[d]),
            others=np.delete(centres, d, axis=1),
            width=np.delete(width, d),
        )

    @property
    def size(self) -> Array:
        """Largest exponent (M,) anywhere in the box: what rounding is measured by."""
        own = (np.abs(self.own) + self.reach) ** 2
        total: Array = 0.5 * (own + np.sum((np.abs(self.others) + self.width) ** 2, axis=1))
        return total

    def change(self, s: Array, e: Array, z: Array) -> Array:
        """g (n,) at points s, e (n,) and z (n, D - 1), in plain floating point."""
        move = np.exp(-0.5 * (e[:, None] - self.own) ** 2) - np.exp(-0.5 * (s[:, None] - self.own) ** 2)
        square = np.sum(z**2, axis=1)[:, None] - 2.0 * z @ self.others.T + np.sum(self.others**2, axis=1)
        total: Array = (move * np.exp(-0.5 * square)) @ self.amplitude
        return total


def model_pair(model: KernelExpansion, d: int, s: float, e: float, z: Array) -> tuple[Array, Array]:
    """The two points (D,) of the model's box that differ in input ``d`` alone."""
    lengthscale = np.broadcast_to(model.lengthscale, model.n_inputs)

    def point(own: float) -> Array:
        inside: Array = np.clip(model.lower + np.insert(z, d, own) * lengthscale, model.lower, model.upper)
        return inside

    return point(s), point(e)
