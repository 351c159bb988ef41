"""What attacks found on a model of another kernel than its parts have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskab.attack.attained import attained_change
from daskab.model.expansion import KernelExpansion
from daskab.run.certificate import Witnesses

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """What the attacks on the model itself found."""

    witnesses: Witnesses  #: for each of its C changes
    attack: Array  #: (2, D) points of the attack of fewest changes; NaN if none was found

    @classmethod
    def of(cls, model: KernelExpansion, found: Array, attack: Array) -> Pairs:
        """From pairs (C, 2, D), for each change one."""
        moved_to = found[:, 1] if model.domain.groups else np.diagonal(found[:, 1]).copy()
        return cls(Witnesses(found[:, 0].copy(), moved_to), attack)

    @classmethod
    def none(cls, model: KernelExpansion) -> Pairs:
        """Before anything was attacked: nothing moves."""
        stay = np.tile(model.domain.nearest(model.lower), (len(model.domain.changes), 2, 1))
        return cls.of(model, stay, np.full((2, model.n_inputs), np.nan))

    def attained(self, model: KernelExpansion) -> Array:
        """What the witnesses attain (C,), rounded down."""
        pairs = map(self.witnesses.pair, range(len(model.domain.changes)))
        return np.array([attained_change(model, x, x_prime) for x, x_prime in pairs])
