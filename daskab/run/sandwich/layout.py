"""A run that is made of others: laid out once, and read back."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab.bound.topn import inputs_required, largest_sums
from daskab.errors import BoundError, IntegrityError, ModelError
from daskab.files import make_folder, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.model.npz import load_model, save_model
from daskab.run.plan import Question, canonical_json
from daskab.run.sandwich.pairs import Pairs
from daskab.sandwich.parts import Parts, parts_by, parts_of
from daskab.sandwich.sums import EQSum

Array = NDArray[np.float64]

SUM, MODEL, RECORDS, ATTACKS, PARTS = "sum.json", "model.npz", "records", "attacks", "parts"
"""What is asked and how the kernel was replaced; the model; folders of records, of what the tasks with these found, and
of the runs of its parts."""

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

    def questions(self, pairs: Pairs) -> tuple[Question, ...]:
        """What is asked of each part: one-input bounds, near enough that all of them together are (METHOD S5)."""
        slack = () if self.question.rtol is None else slack_of(self.model, pairs, len(self.parts.models))
        return tuple(replace(asked, slack=tuple(slack)) for asked in bare_questions(self.question, self.parts))


def lay_out(folder: Path, question: Question, model: KernelExpansion) -> Sandwich:
    """Lay one out. What says that it is one is written last."""
    parts = parts_of(model)
    # Proved anew whenever it is read, by an exp that may round otherwise there; what is written down counts.
    parts = replace(parts, error=parts.error * (1.0 + 1e-9))
    make_folder(folder / RECORDS)
    make_folder(folder / ATTACKS)
    save_model(model, folder / MODEL)
    said = {"question": asdict(question), "scales": parts.total.scales.tolist()}
    said |= {"shares": parts.total.shares.tolist(), "error": parts.error}
    write_atomically(folder / SUM, canonical_json(said | {"sha256": _checksum(said)}))
    return Sandwich(folder, question, model, parts)


def bare_questions(question: Question, parts: Parts) -> tuple[Question, ...]:
    """The same as far as it is known before anything is attacked: all parts together cost what one model may."""
    most, n = question.node_budget, len(parts.models)
    return tuple(
        replace(question, model_digest=part.digest, node_budget=max(most // n, min(most, 1))) for part in parts.models
    )


def is_sandwich(folder: Path) -> bool:
    """Whether a run is one that is made of others."""
    return (folder / SUM).exists()


class Replaced(NamedTuple):
    """What is asked of which model, and how its kernel was replaced."""

    question: Question
    model: KernelExpansion
    total: EQSum
    error: float


def read_question(folder: Path) -> Question:
    """What is asked of such a run, as its folder has it.

    Raises
    ------
    IntegrityError
        If it cannot be read.
    """
    return _read(folder)[0]


def read_replaced(folder: Path) -> Replaced:
    """What was written down when such a run was laid out.

    Raises
    ------
    IntegrityError
        If it is damaged, or its model is another.
    """
    asked, total, error = _read(folder)
    try:
        model = load_model(folder / MODEL)
    except ModelError as failed:
        raise IntegrityError(f"{failed}; move the run away") from None
    if asked.run_id != folder.name:
        raise IntegrityError(f"{folder / SUM}: answers another question than the one asked; move the run away")
    if model.digest != asked.model_digest:
        raise IntegrityError(f"{folder / MODEL}: is not the model that was asked about; move the run away")
    shaped = total.scales.ndim == 1 and total.scales.shape == total.shares.shape
    if not (shaped and total.scales.size and np.all(total.scales > 0.0) and np.all(total.shares > 0.0)):
        raise IntegrityError(f"{folder / SUM}: scales and shares are not positive numbers; move the run away")
    return Replaced(asked, model, total, error)


def open_sandwich(folder: Path, question: Question | None = None) -> Sandwich:
    """Read one back, checking that its parts are those of its model.

    Raises
    ------
    IntegrityError
        If it is damaged, or is not of ``question``.
    """
    asked, model, total, error = read_replaced(folder)
    if question is not None and asked != question:
        raise IntegrityError(f"{folder / SUM}: answers another question than the one asked; move the run away")
    try:
        parts = parts_by(model, total)
    except (ModelError, BoundError) as failed:
        raise IntegrityError(f"{folder / SUM}: makes no parts of its model ({failed}); move it away") from None
    if not parts.error <= error < math.inf:
        raise IntegrityError(f"{folder / SUM}: its error is {error!r}, below the {parts.error!r} proved; move it away")
    return Sandwich(folder, asked, model, replace(parts, error=error))


def _read(folder: Path) -> tuple[Question, EQSum, float]:
    try:
        said = json.loads((folder / SUM).read_text(encoding="utf-8"))
        if said.pop("sha256") != _checksum(said):
            raise ValueError("its checksum is another")
        total = EQSum(np.array(said["scales"], dtype=np.float64), np.array(said["shares"], dtype=np.float64))
        return Question(**said["question"]), total, float(said["error"])
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as failed:
        raise IntegrityError(f"{folder / SUM}: not readable ({failed}); move the run away") from None


def _checksum(said: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(said).encode()).hexdigest()


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
