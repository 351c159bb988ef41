"""A run directory: created once, opened by the client and by every worker, locked by one writer."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from daskab.bound.scaled import Scaled
from daskab.errors import ClusterError, IntegrityError, ModelError, one_line
from daskab.files import make_folder, path_at, stamp, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.model.npz import load_model, save_model
from daskab.run.plan import Plan, Question, numerics
from daskab.run.records import Task
from daskab.run.store import Evidence, mend_groups

FILLS = {"round": "rounds/{}/closed", "joint": "joint/{}/used", "enhancement": "enhancements/{}/bound"}
"""The array that the tasks of each numbered stage fill."""


@dataclass(frozen=True)
class Workspace:
    """A run as the client and the workers see it."""

    folder: Path
    plan: Plan
    model: KernelExpansion
    scaled: Scaled
    evidence: Evidence

    @property
    def records(self) -> Path:
        """Folder of the records."""
        return self.folder / "records"

    @property
    def certificate(self) -> Path:
        """The sealed certificate."""
        return self.folder / "certificate.json"

    def reopened(self) -> Workspace:
        """The same with nothing of its evidence kept in memory."""
        return replace(self, evidence=Evidence(self.evidence.path))

    def block(self, index: int) -> range:
        """Inputs of a contributions or attack task."""
        start = index * self.plan.block
        return range(start, min(start + self.plan.block, self.model.n_inputs))

    def tasks(self, stage: str, number: int) -> list[Task]:
        """The tasks of a round or enhancement that was laid out: one a chunk of what it fills."""
        return [Task(stage, b, number) for b in range(self.evidence.n_batches(FILLS[stage].format(number)))]

    def laid_out(self, stage: str) -> int:
        """How many rounds or enhancements of a stage were laid out."""
        number = 0
        while self.evidence.holds(FILLS[stage].format(number)):
            number += 1
        return number


def create(folder: Path, plan: Plan, model: KernelExpansion) -> None:
    """Lay out a run directory. The plan is written last: where there is one, everything it needs is there."""
    make_folder(folder / "records")
    save_model(model, folder / "model.npz")
    try:
        mend_groups(folder / "evidence.zarr")
        Evidence.create(folder / "evidence.zarr", plan, model)
    except IntegrityError as error:  # what was written a moment ago is not what is read
        raise IntegrityError(f"{error}; run again") from None
    write_atomically(folder / "plan.json", plan.to_json())


def exists(folder: Path) -> bool:
    """Whether a run was laid out here."""
    return (folder / "plan.json").exists()


def open_workspace(folder: Path, question: Question | None = None) -> Workspace:
    """Open a run directory, checking that its model is the one its plan names.

    Raises
    ------
    IntegrityError
        If plan, model or store is absent, unreadable, does not fit, or is not of ``question``.
    """
    try:
        text = (folder / "plan.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise IntegrityError(f"{folder}: no readable plan ({error})") from None
    plan = Plan.from_json(text, str(folder / "plan.json"))
    if question is not None and plan.question != question:
        raise IntegrityError(f"{folder}/plan.json: answers another question than the one asked; move the run away")
    try:
        model = load_model(folder / "model.npz")
    except ModelError as error:
        raise IntegrityError(f"{error}; move the run away") from None
    if model.digest != plan.question.model_digest:
        raise IntegrityError(f"{folder}/model.npz: is not the model the plan names; move the run away")
    try:
        evidence = Evidence(folder / "evidence.zarr")
    except (OSError, IntegrityError) as error:
        mend = "remove its certificate.json and run again" if (folder / "certificate.json").exists() else "run again"
        what = one_line(error) if isinstance(error, IntegrityError) else f"{folder}/evidence.zarr: {one_line(error)}"
        raise IntegrityError(f"{what}; {mend}") from None
    return Workspace(folder, plan, model, Scaled.of(model), evidence)


def worker_workspace(folder: str, run_id: str) -> Workspace:
    """A worker's own view of a run, kept between tasks for as long as its plan is the same file.

    Raises
    ------
    ClusterError
        If the worker does not see the run, or its numerics are others than the run's.
    """
    seen = seen_by_worker(folder, "plan.json")
    return _opened(folder, run_id, *seen)


@lru_cache(maxsize=4)
def _opened(folder: str, run_id: str, *_: object) -> Workspace:
    space = open_workspace(path_at(folder))
    check_question(folder, space.plan.question, run_id)
    return space


def seen_by_worker(folder: str, name: str) -> tuple[object, ...]:
    """What is another once a file of a run was replaced; a ClusterError if this worker does not see it."""
    try:
        return stamp(path_at(folder) / name)
    except OSError:
        raise ClusterError(
            f"worker on {platform.node()}: does not see {folder}; put runs where all workers can read and write"
        ) from None


def check_question(folder: str, question: Question, run_id: str) -> None:
    """Raise unless a worker's task is of the run it found, and its numerics are the run's."""
    if question.run_id != run_id:
        raise IntegrityError(f"{folder}: holds run {question.run_id}, the task is of {run_id}")
    if question.numerics != numerics():
        raise ClusterError(f"worker on {platform.node()}: computes with other versions than the run was begun with")
