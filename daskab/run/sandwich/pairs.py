"""What attacks found on a model of another kernel, kept beside the runs of its parts."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskab.attack.attained import attained_change
from daskab.files import reaching, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.model.npz import UNREADABLE
from daskab.run.certificate import Witnesses

Array = NDArray[np.float64]

PAIRS = "pairs.npz"


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


def write_pairs(folder: Path, pairs: Pairs) -> None:
    """Keep what attacks found."""
    content = io.BytesIO()
    np.savez(content, x=pairs.witnesses.x, moved_to=pairs.witnesses.moved_to, attack=pairs.attack)
    write_atomically(folder / PAIRS, content.getvalue())


def read_pairs(folder: Path, model: KernelExpansion) -> Pairs | None:
    """What attacks found; None where that is not known, or no longer readable: they are made again."""
    try:
        with reaching(folder), (folder / PAIRS).open("rb") as handle:
            kept = np.load(handle, allow_pickle=False)
            x, moved_to, attack = kept["x"], kept["moved_to"], kept["attack"]
    except (*UNREADABLE, LookupError):
        return None
    c, d = len(model.domain.changes), model.n_inputs
    if x.shape != (c, d) or moved_to.shape != ((c, d) if model.domain.groups else (d,)) or attack.shape != (2, d):
        return None
    whole = all(array.dtype == np.float64 for array in (x, moved_to, attack))
    if not (whole and np.all(np.isfinite(x)) and np.all(np.isfinite(moved_to))):
        return None
    pairs = Pairs(Witnesses(x, moved_to), attack)
    return pairs if all(model.domain.is_change(k, *pairs.witnesses.pair(k)) for k in range(c)) else None
