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
        self.arb: Any = flint.arb
        flint.ctx.prec = BITS
        self._centres = [[self.arb(c) for c in row] for row in model.centres.tolist()]
        self._lengthscales = [self.arb(v) for v in np.broadcast_to(model.lengthscale, model.n_inputs).tolist()]
        self._amplitudes = [self.arb(w) * self.arb(model.variance) for w in model.weights.tolist()]
        self._constant = self.arb(model.constant)
        self._kernel = model.kernel

    def latent(self, x: Array) -> Any:
        """f(x) of a point (D,), in the model's units, as a ball that holds it."""
        point = [self.arb(v) for v in x.tolist()]
        total = self._constant
        for centre, amplitude in zip(self._centres, self._amplitudes, strict=True):
            t = self.arb(0)
            for value, at, lengthscale in zip(point, centre, self._lengthscales, strict=True):
                step = (value - at) / lengthscale
                t += step * step
            total += amplitude * self.kernel(t)
        return total

    def kernel(self, square: Any) -> Any:
        """The kernel of variance 1 at a squared distance, each as a ball."""
        if self._kernel == "eq":
            return (-square / 2).exp()
        if self._kernel == "exponential":
            return (-square.sqrt()).exp()
        if self._kernel == "matern32":
            root = (3 * square).sqrt()
            return (1 + root) * (-root).exp()
        root = (5 * square).sqrt()
        return (1 + root + 5 * square / 3) * (-root).exp()

    def at_least(self, ball: Any, value: float) -> bool:
        """Whether all of a ball is at or above a number."""
        return bool(ball >= self.arb(value))

    def at_most(self, ball: Any, value: float) -> bool:
        """Whether all of a ball is at or below a number."""
        return bool(ball <= self.arb(value))

    def above(self, ball: Any, value: float) -> bool:
        """Whether all of a ball is above a number."""
        return bool(ball > self.arb(value))
