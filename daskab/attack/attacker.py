"""The attacks on a model: anywhere in its box, or within its domain where that is less, or a sum's (method 6)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from daskab.attack.several import SeveralWitness, fewest_inputs
from daskab.attack.single import attack_input, start_points
from daskab.attack.within import Within
from daskab.bound.scaled import Scaled, witness_pair
from daskab.model.expansion import KernelExpansion
from daskab.sandwich.sums import ONE_EQ, EQSum

Array = NDArray[np.float64]


class Attacker(Protocol):
    """Whoever attacks a model, with so many starting points, of which some are random."""

    def best_pair(self, inputs: tuple[int, ...]) -> tuple[Array, Array]:
        """The best pair of points (D,) found, in the model's units, that differ in these inputs alone."""

    def fewest_changes(self, starts: Array | None = None) -> SeveralWitness | None:
        """The attack of fewest changes found, from these points (K, D) in the model's units and others."""


def attacker(model: KernelExpansion, starts: int, seed: int, total: EQSum = ONE_EQ) -> Attacker:
    """The one that a model's domain asks for, and its kernel, which is taken as a sum of EQs if it is another."""
    if total is ONE_EQ and model.domain.whole:
        return Anywhere(model, starts, seed)
    return Within(model, starts, seed, total)


class Anywhere:
    """Of a model whose domain is a box: an attack changes one input after another, to whatever value."""

    def __init__(self, model: KernelExpansion, starts: int, seed: int) -> None:
        self.model, self.scaled, self.n_starts, self.seed = model, Scaled.of(model), starts, seed
        s = self.scaled
        self.starts = start_points(s.centres, s.amplitudes, s.width, starts, seed)

    def best_pair(self, inputs: tuple[int, ...]) -> tuple[Array, Array]:
        """Of one input."""
        (d,), s = inputs, self.scaled
        best = np.empty(s.width.size + 1)
        attack_input(s.centres, s.amplitudes, s.width, d, self.starts, best)
        return witness_pair(self.model, d, best[:-1], float(best[-1]))

    def fewest_changes(self, starts: Array | None = None) -> SeveralWitness | None:
        """As `fewest_inputs` has it."""
        return fewest_inputs(self.model, starts, self.seed, self.n_starts)
