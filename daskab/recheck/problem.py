"""One input's question in unit lengthscales, drawn from the model's arrays and nothing else (METHOD 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskab.errors import ModelError
from daskab.model.expansion import KernelExpansion
from daskab.model.kernels import EQ

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
    most: float  #: how far s and e can be apart
    values: Array | None  #: all that s and e can be, ascending; None: anything
    other_values: tuple[Array | None, ...]  #: the same of every other input
    whole: bool  #: whether an attacker can do all that the box allows

    @classmethod
    def of(cls, model: KernelExpansion, d: int) -> Problem:
        """Of input ``d`` of a model with the EQ kernel.

        Raises
        ------
        ModelError
            If it has another.
        """
        if model.kernel != EQ:
            raise ModelError(f"kernel: {model.kernel}; the second path is of EQ kernels")
        lengthscale = np.broadcast_to(model.lengthscale, model.n_inputs)
        centres = (model.centres - model.lower) / lengthscale
        width = (model.upper - model.lower) / lengthscale
        domain = model.domain
        listed = [
            (domain.listed[j] - model.lower[j]) / lengthscale[j] if j in domain.listed else None
            for j in range(model.n_inputs)
        ]
        # Rounded up by far more than it errs.
        limit = float(domain.max_change[d] / lengthscale[d] * (1.0 + 2.0**-40) + 2.0**-40 * width[d])
        return cls(
            amplitude=model.weights * model.variance,
            own=centres[:, d],
            reach=float(width[d]),
            others=np.delete(centres, d, axis=1),
            width=np.delete(width, d),
            most=0.0 if domain.frozen[d] else limit if domain.limited[d] else np.inf,
            values=listed[d],
            other_values=(*listed[:d], *listed[d + 1 :]),
            whole=domain.whole,
        )

    @property
    def size(self) -> Array:
        """Largest exponent (M,) anywhere in the box: what rounding is measured by."""
        own = (np.abs(self.own) + self.reach) ** 2
        total: Array = 0.5 * (own + np.sum((np.abs(self.others) + self.width) ** 2, axis=1))
        return total

    def trimmed(self, low: Array, high: Array, *, inputs: bool) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Nodes (n, 2 + k) shrunk to what of them an attacker can do, and which have something left (METHOD 4).

        ``inputs`` says whether the coordinates beside s and e are the other inputs.
        """
        low, high = low.copy(), high.copy()
        for a, b in ((0, 1), (1, 0)):
            low[:, a] = np.maximum(low[:, a], low[:, b] - self.most)
            high[:, a] = np.minimum(high[:, a], high[:, b] + self.most)
        columns = [self.values, self.values, *(self.other_values if inputs else ())]
        for k, values in enumerate(columns):
            if values is not None:
                first = np.searchsorted(values, low[:, k], "left")
                last = np.searchsorted(values, high[:, k], "right") - 1
                some = first <= last
                low[:, k] = np.where(some, values[np.minimum(first, values.size - 1)], np.inf)
                high[:, k] = np.where(some, values[np.maximum(last, 0)], -np.inf)
        return low, high, ~np.any(low > high, axis=1)

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
