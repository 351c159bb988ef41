"""The driver: lays out a run, sends its stages to an executor, goes on where an earlier try stopped, seals."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskab.bound.goals import goals
from daskab.bound.scaled import Scaled
from daskab.errors import IncompleteError, IntegrityError
from daskab.files import make_folder, reaching, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.run import joint, rounds, workspace
from daskab.run.aggregate import (
    UnitBounds,
    conclude,
    done_records,
    enhanced_bound,
    met_attack,
    required_by_all,
    required_by_sum,
    several_attack,
    unit_bounds,
)
from daskab.run.certificate import Attack, Certificate, Witnesses
from daskab.run.executors import Executor
from daskab.run.lease import one_writer
from daskab.run.plan import Question, canonical_json
from daskab.run.progress import Progress, SoFar
from daskab.run.records import Failure, Record, Task
from daskab.run.sizing import check_batch, sized_plan
from daskab.run.store import Evidence, mend_groups
from daskab.run.witnesses import attack_found, met_in_round
from daskab.run.workspace import Workspace, open_workspace

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    certificate: Certificate
    folder: Path
    sealed: bool  #: False when a time limit ended it or a task failed; the same command goes on
    found: bool  #: whether a sealed certificate was already there
    failures: tuple[Failure, ...] = ()  #: tasks that could not be done


def run_question(
    question: Question,
    model: KernelExpansion,
    runs: Path,
    executor: Executor,
    *,
    batch: int | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Answer a question, or find its answer.

    Parameters
    ----------
    question, model : what is asked, and of which model
    runs : directory of run directories
    executor : where tasks run
    batch : logical units a task; default: about a second's worth, timed
    time_limit : seconds after which no new task is started
    progress : told how it goes

    Raises
    ------
    JobError
        If ``batch`` makes far too many tasks.
    BusyError
        If another process is writing this run.
    IntegrityError
        If the run directory is damaged in a way that running again does not mend.
    IncompleteError
        If it cannot be written to, the disk being full for instance.
    """
    check_batch(question, batch)
    folder = runs / question.run_id
    progress = progress or Progress()
    deadline = None if time_limit is None else time.monotonic() + time_limit
    with one_writer(folder) as check, storage_of(folder):
        found = find_outcome(question, runs, progress)
        if found is not None:
            return found
        resumed = workspace.exists(folder)
        progress.begin(question.run_id, "resumed" if resumed else "begun")
        if resumed:
            mend_groups(folder / "evidence.zarr")
        else:
            workspace.create(folder, sized_plan(question, Scaled.of(model), batch), model)
        space = open_workspace(folder, question)
        if resumed:
            make_folder(space.records)
            Evidence.create(space.evidence.path, space.plan, space.model)  # mends what is damaged
        return Drive(space, executor, deadline, progress, check).run()


def find_outcome(question: Question, runs: Path, progress: Progress) -> Outcome | None:
    """The outcome of a run that is sealed, None of another. Nothing is written, so no lock is needed.

    Raises
    ------
    IntegrityError
        If the certificate is not what was sealed.
    """
    folder = runs / question.run_id
    with reaching(folder):
        if not (folder / "certificate.json").exists():
            return None
    progress.begin(question.run_id, "found")
    with storage_of(folder):
        return Outcome(read_sealed(folder, question), folder, sealed=True, found=True)


@contextmanager
def storage_of(folder: Path) -> Iterator[None]:
    """Name the run in what the operating system says, which of a full disk names no file; nothing is sealed then."""
    try:
        with reaching(folder):
            yield
    except OSError as error:
        where = error.filename or folder
        raise IncompleteError(f"{where}: {error.strerror or error}; mend it, and the same command goes on") from None


def read_sealed(folder: Path, question: Question) -> Certificate:
    """A sealed certificate with its witnesses, checked to answer the question and to be what was sealed.

    Raises
    ------
    IntegrityError
        If it is not.
    """
    space = open_workspace(folder, question)
    content = space.certificate.read_bytes()
    if hashlib.sha256(content).hexdigest() != space.evidence.sealed:
        raise IntegrityError(f"{space.certificate}: is not as it was sealed; remove it and run again")
    try:
        witnesses = Witnesses(space.evidence.read("witness"), space.evidence.read("witness_to"))
    except IntegrityError as error:
        raise IntegrityError(f"{error}, after removing {space.certificate}") from None
    return Certificate.from_json(content.decode("utf-8"), str(space.certificate), witnesses)


class Drive:
    """One pass over a run's stages."""

    def __init__(
        self,
        space: Workspace,
        executor: Executor,
        deadline: float | None,
        progress: Progress,
        check: Callable[[], None],
    ) -> None:
        self.space = space
        self.executor = executor
        self.deadline = deadline
        self.progress = progress
        self.check = check  #: raises BusyError once the run is no longer ours
        self.done: dict[str, Record] = {}
        self.failures: list[Failure] = []
        self.begun = datetime.now(UTC)
        self.told: SoFar | None = None
        self.next_look = -np.inf

    def run(self) -> Outcome:
        """All stages, then the certificate; sealed unless time ran out or a task failed."""
        plan, model = self.space.plan, self.space.model
        blocks = range(plan.n_blocks)
        n_rounds = 0
        on_time = self.stage("contributions", [Task("contributions", b) for b in blocks])
        on_time = on_time and self.stage("attack", [Task("attack", b) for b in blocks])
        if on_time and model.delta is not None:
            on_time = self.stage("joint attack", [Task("several", 0)])
        known = attack_found(self.space, self.done)
        while on_time and rounds.prepare(self.space.evidence, plan, self.goal(known[0]), known[0], n_rounds):
            self.look(n_rounds, known[0])
            tasks = self.space.tasks("round", n_rounds)
            n_rounds += 1
            on_time = self.stage(f"round {n_rounds}", tasks)
            if plan.question.method != "adaptive":
                break
            known = met_in_round(self.space, self.done, n_rounds - 1, known)
        units = unit_bounds(self.space, n_rounds, self.goal(known[0]), self.done)
        upper = units.bound.max(axis=(0, 2))
        on_time = on_time and self.enhance(upper)
        by_sum, attack = required_by_sum(self.space, upper), several_attack(self.space, self.done)
        self.tell(by_sum, attack, units.open_inputs)
        attacked = None if attack is None else attack.n_inputs
        what = joint.scope(self.space, upper, by_sum, attacked, closed=units.open_inputs == 0)
        asked: list[joint.Search] = []
        together = joint.conclude(self.space, asked, self.done)
        while on_time and what and (search := joint.prepare(self.space, what, asked)):
            tasks = self.space.tasks("joint", len(asked))
            asked.append(search)
            on_time = self.stage(f"search {len(asked)}", tasks)
            together = joint.conclude(self.space, asked, self.done)
            attack = met_attack(model, attack, together)
            self.tell(required_by_all(model, by_sum, together), attack, units.open_inputs)
        certificate = conclude(self.space, units, upper, known, by_sum, attack, together, self.done, all_done=on_time)
        self.save(certificate, units, sealed=on_time)
        return Outcome(certificate, self.space.folder, sealed=on_time, found=False, failures=tuple(self.failures))

    def look(self, n_rounds: int, attained: Array) -> None:
        """Tell what the rounds certify so far; it takes reading all of them, so a twentieth of the time at most."""
        begun = time.monotonic()
        if self.space.model.delta is None or begun < self.next_look:
            return
        units = unit_bounds(self.space, n_rounds, self.goal(attained), self.done)
        by_sum = required_by_sum(self.space, units.bound.max(axis=(0, 2)))
        self.tell(by_sum, several_attack(self.space, self.done), units.open_inputs)
        ended = time.monotonic()
        self.next_look = ended + 19 * (ended - begun)

    def tell(self, required: int | None, attack: Attack | None, open_inputs: int) -> None:
        """Tell what is certified, if that has changed."""
        so_far = SoFar(required, None if attack is None else attack.n_inputs, open_inputs)
        if self.space.model.delta is not None and so_far != self.told:
            self.told = so_far
            self.progress.known(so_far)

    def goal(self, attained: Array) -> Array:
        """Goal of every input, from what is known to be attained; none where slices are fixed."""
        q = self.space.plan.question
        if q.rtol is None:
            return np.full(q.n_inputs, np.inf)
        return goals(attained, self.space.scaled.amplitudes, self.space.model.delta, q.rtol)

    def enhance(self, upper: Array) -> bool:
        """Cut the input with the highest bound finer, over and over, lowering ``upper`` (D,); False if time ran out.

        Smith et al.'s enhancement, but an input whose bound rises keeps the lower one.
        """
        q, evidence = self.space.plan.question, self.space.evidence
        slices = q.enhance_slices
        for number in range(q.enhance):
            d = int(np.argmax(upper))
            evidence.create_enhancement(number, d, slices, self.space.plan.batch)
            if not self.stage(f"enhancement {number + 1}", self.space.tasks("enhancement", number)):
                return False
            bound = enhanced_bound(self.space, number)
            if bound < upper[d]:
                upper[d] = bound
            else:
                slices += 1
        return True

    def stage(self, name: str, tasks: Sequence[Task]) -> bool:
        """Run what is not yet done of a stage; False when some of it is missing: time ran out, or a task failed."""
        self.done |= done_records(self.space, list(tasks))
        waiting = [t for t in tasks if t.key not in self.done]
        self.progress.stage(name, len(tasks), len(tasks) - len(waiting))
        if self.late():
            return not waiting
        records = self.executor.run(str(self.space.folder), self.space.plan.question.run_id, waiting)
        for record in records:
            self.check()
            if record is None:
                self.progress.wait()
            elif isinstance(record, Failure):
                self.failures.append(record)
                self.progress.fail(record)
            else:
                self.done[record.task] = record
                self.progress.advance(record)
            if self.late():
                break
        return all(t.key in self.done for t in tasks)

    def late(self) -> bool:
        """Whether the time limit has passed."""
        return self.deadline is not None and time.monotonic() > self.deadline

    def save(self, certificate: Certificate, units: UnitBounds, *, sealed: bool) -> None:
        """Write the final arrays, provenance, and last of all the certificate."""
        self.check()
        folder, evidence = self.space.folder, self.space.evidence
        partial = folder / "certificate.incomplete.json"
        provenance = {
            "run_id": certificate.run_id,
            "executor": self.executor.name,
            "begun": self.begun.isoformat(timespec="seconds"),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "task_seconds": round(sum(r.seconds for r in self.done.values()), 3),
            "nodes": sum(r.opened for r in self.done.values()),
            "tasks": len(self.done),
            "failures": [asdict(failure) for failure in self.failures],
            "hosts": sorted({r.host for r in self.done.values()}),
            "client": {"host": platform.node(), "python": platform.python_version(), "cpus": os.cpu_count()},
            "plan": asdict(self.space.plan),
        }
        write_atomically(folder / "provenance.json", canonical_json(provenance))
        if not sealed:
            write_atomically(partial, certificate.to_json())
            return
        evidence.write("bound", ..., units.bound)
        evidence.write("status", ..., units.status)
        evidence.write("upper_bound", ..., certificate.upper_bound)
        evidence.write("attained", ..., certificate.attained)
        if certificate.witnesses is not None:
            evidence.write("witness", ..., certificate.witnesses.x)
            evidence.write("witness_to", ..., certificate.witnesses.moved_to)
        text = certificate.to_json()
        evidence.seal(hashlib.sha256(text.encode()).hexdigest())
        write_atomically(self.space.certificate, text)
        partial.unlink(missing_ok=True)
