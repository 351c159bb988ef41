"""What can be said of a run by looking at it: nothing is computed or written, a running one is not disturbed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from daskab.errors import IntegrityError
from daskab.run.lease import held
from daskab.run.plan import Plan, Question
from daskab.run.records import Record, records_in
from daskab.run.sandwich.layout import PARTS, is_sandwich, read_question

State = Literal["sealed", "running", "stopped", "damaged"]


@dataclass(frozen=True)
class StageStatus:
    """Finished tasks of one stage."""

    stage: str
    tasks: int
    items: int  #: inputs, units or nodes worked on
    opened: int  #: nodes bounded
    left_open: int
    seconds: float  #: of all workers together


@dataclass(frozen=True)
class RunStatus:
    """A run at one moment.

    Attributes
    ----------
    state : {"sealed", "running", "stopped", "damaged"}
        Whether its certificate is final, a process works on it, none does, or its plan cannot be read.
    certificate : dict or None
        What its certificate says, the final one or the last that a stopped try left.
    stages : of the tasks that are finished
    last : UTC of the last finished task, in ISO 8601; None before the first
    hosts : where tasks ran
    """

    folder: Path
    state: State
    question: Question | None
    certificate: dict[str, Any] | None
    stages: tuple[StageStatus, ...]
    last: str | None
    hosts: tuple[str, ...]

    @property
    def tasks(self) -> int:
        """Tasks finished."""
        return sum(stage.tasks for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        question = self.question
        said = self.certificate or {}
        return {
            "run": self.folder.name,
            "folder": str(self.folder),
            "state": self.state,
            "method": None if question is None else question.method,
            "n_centres": None if question is None else question.n_centres,
            "n_inputs": None if question is None else question.n_inputs,
            "model_digest": None if question is None else question.model_digest,
            **{name: said.get(name) for name in ("inputs_required", "attack_inputs", "no_attack_exists", "complete")},
            "stages": [vars(stage) for stage in self.stages],
            "last": self.last,
            "hosts": list(self.hosts),
        }


def runs_in(folder: Path) -> Iterator[RunStatus]:
    """The runs in a directory of runs, by name."""
    for path in sorted(folder.iterdir()):
        if (path / "plan.json").exists() or is_sandwich(path):
            yield look_at(path)


def look_at(folder: Path) -> RunStatus:
    """Look at a run directory.

    Raises
    ------
    IntegrityError
        If it is none.
    """
    of_parts = is_sandwich(folder)
    if not (of_parts or (folder / "plan.json").exists()):
        raise IntegrityError(f"{folder}: is not a run, there is no plan.json in it")
    try:
        question = read_question(folder) if of_parts else _planned(folder)
    except (IntegrityError, OSError, UnicodeDecodeError):
        return RunStatus(folder, "damaged", None, None, (), None, ())
    parts = sorted((folder / PARTS).iterdir()) if of_parts and (folder / PARTS).is_dir() else []
    records = [record for at in (folder, *parts) for record in records_in(at / "records")]
    sealed = _certificate(folder / "certificate.json")
    running = any(held(at) for at in (folder, *parts))
    state: State = "running" if running else "stopped" if sealed is None else "sealed"
    certificate = sealed or _certificate(folder / "certificate.incomplete.json")
    last = max((record.finished for record in records), default=None)
    hosts = tuple(sorted({record.host for record in records}))
    return RunStatus(folder, state, question, certificate, _by_stage(records), last, hosts)


def _planned(folder: Path) -> Question:
    return Plan.from_json((folder / "plan.json").read_text(encoding="utf-8"), str(folder / "plan.json")).question


def _certificate(path: Path) -> dict[str, Any] | None:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def _by_stage(records: list[Record]) -> tuple[StageStatus, ...]:
    """Add up the records of each stage, and of each round, in the order they were finished."""
    stages: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda r: r.finished):
        stages[record.task.rpartition("-")[0]].append(record)
    return tuple(
        StageStatus(
            name,
            len(done),
            sum(r.items for r in done),
            sum(r.opened for r in done),
            sum(r.left_open for r in done),
            round(sum(r.seconds for r in done), 3),
        )
        for name, done in stages.items()
    )
