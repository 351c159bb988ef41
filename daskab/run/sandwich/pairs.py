"""What attacks find on a model of another kernel, kept beside the runs of its parts."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskab.attack.attacker import attacker
from daskab.attack.attained import attained_change
from daskab.files import reaching, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.model.npz import UNREADABLE
from daskab.run.aggregate import attack_of
from daskab.run.certificate import Witnesses
from daskab.run.plan import Question
from daskab.sandwich.sums import EQSum

Array = NDArray[np.float64]

PAIRS = "pairs.npz"


@dataclass(frozen=True, eq=False)
class Pairs:
    """What the attacks on the model itself found."""

    witnesses: Witnesses  #: for each of its C changes
    attack: Array  #: (2, D) points of the attack of fewest changes; NaN if none was found

    def attained(self, model: KernelExpansion) -> Array:
        """What the witnesses attain (C,), rounded down."""
        pairs = map(self.witnesses.pair, range(len(model.domain.changes)))
        return np.array([attained_change(model, x, x_prime) for x, x_prime in pairs])


def pairs_in(folder: Path, question: Question, model: KernelExpansion, total: EQSum) -> Pairs:
    """The attacks of a run, made if they are not there."""
    with reaching(folder):
        pairs = read_pairs(folder, model)
        if pairs is None:
            pairs = attacked(model, question, total)
            write_pairs(folder, pairs)
    return pairs


def attacked(model: KernelExpansion, question: Question, total: EQSum) -> Pairs:
    """Attack everything that counts as one change, then several at once from the strongest."""
    attacks = attacker(model, question.attack_starts, question.attack_seed, total)
    found = [attacks.best_pair(inputs) for inputs in model.domain.changes]
    x = np.array([pair[0] for pair in found])
    x_prime = np.array([pair[1] for pair in found])
    several = np.full((2, model.n_inputs), np.nan)
    moved_to = x_prime if model.domain.groups else np.diagonal(x_prime).copy()
    pairs = Pairs(Witnesses(x, moved_to), several)
    if model.delta is None:
        return pairs
    strongest = np.argsort(-pairs.attained(model), kind="stable")[: question.attack_starts]
    fewest = attacks.fewest_changes(x[strongest])
    if fewest is None or attack_of(model, fewest.x, fewest.x_prime) is None:
        return pairs
    return Pairs(pairs.witnesses, np.stack([fewest.x, fewest.x_prime]))


def write_pairs(folder: Path, pairs: Pairs) -> None:
    """Keep what attacks found."""
    content = io.BytesIO()
    np.savez(content, x=pairs.witnesses.x, moved_to=pairs.witnesses.moved_to, attack=pairs.attack)
    write_atomically(folder / PAIRS, content.getvalue())


def read_pairs(folder: Path, model: KernelExpansion) -> Pairs | None:
    """What attacks found; None where that is not known, or no longer readable: they are made again."""
    try:
        with (folder / PAIRS).open("rb") as handle:
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
