"""The latent mean in ball arithmetic: an enclosure of the true value, by other code than all the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskab.errors import DaskabError
from daskab.model.expansion import KernelExpansion

Array = NDArray[np.float64]

BITS = 128


class Balls:
    """A model whose numbers are exact, evaluated with python-flint's balls of `BITS` bits.

    Raises
    ------
    DaskabError
        If python-flint is not installed.
    """

    def __init__(self, model: KernelExpansion) -> None:
        try:
            import flint
        except ImportError:
            raise DaskabError(
                "verify needs ball arithmetic, which is not installed: pip install 'daskab[verify]'"
            ) from None
        self._arb: Any = flint.arb
        flint.ctx.prec = BITS
        self._centres = [[self._arb(c) for c in row] for row in model.centres.tolist()]
        self._lengthscales = [self._arb(v) for v in np.broadcast_to(model.lengthscale, model.n_inputs).tolist()]
        self._amplitudes = [self._arb(w) * self._arb(model.variance) for w in model.weights.tolist()]
        self._constant = self._arb(model.constant)

    def latent(self, x: Array) -> Any:
        """f(x) of a point (D,), in the model's units, as a ball that holds it."""
        point = [self._arb(v) for v in x.tolist()]
        total = self._constant
        for centre, amplitude in zip(self._centres, self._amplitudes, strict=True):
            t = self._arb(0)
            for value, at, lengthscale in zip(point, centre, self._lengthscales, strict=True):
                step = (value - at) / lengthscale
                t += step * step
            total += amplitude * (-t / 2).exp()
        return total

    def at_least(self, ball: Any, value: float) -> bool:
        """Whether all of a ball is at or above a number."""
        return bool(ball >= self._arb(value))

    def at_most(self, ball: Any, value: float) -> bool:
        """Whether all of a ball is at or below a number."""
        return bool(ball <= self._arb(value))

    def above(self, ball: Any, value: float) -> bool:
        """Whether all of a ball is above a number."""
        return bool(ball > self._arb(value))
