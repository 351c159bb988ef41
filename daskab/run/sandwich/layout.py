"""A run that is made of others: laid out once, and read back."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab.bound.topn import inputs_required, largest_sums
from daskab.errors import BoundError, IntegrityError, ModelError
from daskab.files import reaching, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.model.npz import load_model, save_model
from daskab.run.lease import one_writer
from daskab.run.plan import Question, canonical_json
from daskab.run.sandwich.pairs import Pairs, pairs_in
from daskab.sandwich.parts import Parts, parts_by, parts_of
from daskab.sandwich.sums import EQSum

Array = NDArray[np.float64]

SUM, MODEL, PARTS = "sum.json", "model.npz", "parts"
"""What is asked and how the kernel was replaced; the model; the folder of the runs of its parts."""

NEAR = 0.02
"""Of what the n-th largest change attains: how far the bounds of all parts may stay above what those attain."""

LAZY = 0.5
"""Of how far a change is below the n-th largest: the same, for what does not matter."""


@dataclass(frozen=True, eq=False)
class Sandwich:
    """A run that is made of others."""

    folder: Path
    question: Question
    model: KernelExpansion
    parts: Parts
    pairs: Pairs

    @classmethod
    def of(cls, question: Question, model: KernelExpansion, runs: Path) -> Sandwich:
        """Lay it out in a directory of runs, or go on with what was laid out.

        Raises
        ------
        BusyError
            If another process does.
        IntegrityError
            If what was laid out is damaged.
        """
        folder = runs / question.run_id
        with reaching(folder), one_writer(folder):
            if (folder / SUM).exists():
                return open_sandwich(folder, question)
            parts = parts_of(model)
            # Proved anew whenever it is read, by an exp that may round otherwise there; what is written down counts.
            parts = replace(parts, error=parts.error * (1.0 + 1e-9))
            save_model(model, folder / MODEL)
            said = {"question": asdict(question), "scales": parts.total.scales.tolist()}
            said |= {"shares": parts.total.shares.tolist(), "error": parts.error}
            write_atomically(folder / SUM, canonical_json(said))
            return cls(folder, question, model, parts, pairs_in(folder, question, model, parts.total))

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is asked of each part: one-input bounds, near enough that all of them together are (METHOD S5)."""
        slack = () if self.question.rtol is None else slack_of(self.model, self.pairs, len(self.parts.models))
        return tuple(replace(asked, slack=tuple(slack)) for asked in bare_questions(self.question, self.parts))


def bare_questions(question: Question, parts: Parts) -> tuple[Question, ...]:
    """The same as far as it is known before anything is attacked: all parts together cost what one model may."""
    most, n = question.node_budget, len(parts.models)
    return tuple(
        replace(question, model_digest=part.digest, node_budget=max(most // n, min(most, 1))) for part in parts.models
    )


def is_sandwich(folder: Path) -> bool:
    """Whether a run is one that is made of others."""
    return (folder / SUM).exists()


class Sum(NamedTuple):
    """What is asked, and how the kernel was replaced."""

    question: Question
    total: EQSum
    error: float


def read_sum(folder: Path) -> Sum:
    """What was written down when such a run was laid out.

    Raises
    ------
    IntegrityError
        If it cannot be read.
    """
    try:
        said = json.loads((folder / SUM).read_text(encoding="utf-8"))
        total = EQSum(np.array(said["scales"], dtype=np.float64), np.array(said["shares"], dtype=np.float64))
        return Sum(Question(**said["question"]), total, float(said["error"]))
    except (OSError, ValueError, TypeError, LookupError) as failed:
        raise IntegrityError(f"{folder / SUM}: not readable ({failed}); move the run away") from None


def open_sandwich(folder: Path, question: Question | None = None) -> Sandwich:
    """Read one back, checking that its parts are those of its model.

    Raises
    ------
    IntegrityError
        If it is damaged, or is not of ``question``.
    """
    asked, total, error = read_sum(folder)
    try:
        model = load_model(folder / MODEL)
    except ModelError as failed:
        raise IntegrityError(f"{failed}; move the run away") from None
    if asked.run_id != folder.name or (question is not None and asked != question):
        raise IntegrityError(f"{folder / SUM}: answers another question than the one asked; move the run away")
    if model.digest != asked.model_digest:
        raise IntegrityError(f"{folder / MODEL}: is not the model that was asked about; move the run away")
    shaped = total.scales.ndim == 1 and total.scales.shape == total.shares.shape
    if not (shaped and total.scales.size and np.all(total.scales > 0.0) and np.all(total.shares > 0.0)):
        raise IntegrityError(f"{folder / SUM}: scales and shares are not positive numbers; move the run away")
    try:
        parts = parts_by(model, total)
    except (ModelError, BoundError) as failed:
        raise IntegrityError(f"{folder / SUM}: makes no parts of its model ({failed}); move it away") from None
    if not parts.error <= error < math.inf:
        raise IntegrityError(f"{folder / SUM}: its error is {error!r}, below the {parts.error!r} proved; move it away")
    pairs = pairs_in(folder, asked, model, total)
    return Sandwich(folder, asked, model, replace(parts, error=error), pairs)


def slack_of(model: KernelExpansion, pairs: Pairs, n_parts: int) -> Array:
    """How far (D,) the bound of each part may stay above what it attains, from what the model itself attains."""
    attained = pairs.attained(model)
    level = float(attained.max(initial=0.0))
    if model.delta is not None:
        n = inputs_required(largest_sums(attained, towards=-math.inf), model.delta)
        level = model.delta / attained.size if n is None else float(np.sort(attained)[-n])
    of_changes = np.maximum(NEAR * level, LAZY * (level - attained)) / n_parts
    slack = np.empty(model.n_inputs)
    for inputs, most in zip(model.domain.changes, of_changes.tolist(), strict=True):
        slack[list(inputs)] = most
    return slack
