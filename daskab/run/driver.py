"""A run from its question to its seal: laid out, stage after stage, going on where an earlier try stopped."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskab.bound.scaled import Scaled
from daskab.errors import IntegrityError
from daskab.files import make_folder, reaching, storage_of, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.run import joint, rounds, workspace
from daskab.run.aggregate import (
    UnitBounds,
    bounds_alone,
    change_bounds,
    conclude,
    done_records,
    enhanced_bound,
    goals_of,
    groups_at_most,
    met_attack,
    required_by_all,
    required_by_sum,
    several_attack,
    unit_bounds,
)
from daskab.run.certificate import Attack, Certificate, Witnesses
from daskab.run.lease import one_writer
from daskab.run.plan import Question
from daskab.run.progress import Progress, SoFar
from daskab.run.provenance import provenance_of, write_provenance
from daskab.run.records import Record, Task
from daskab.run.sizing import check_batch, sized_plan
from daskab.run.stages import Outcome, Run, Stage, Steps
from daskab.run.store import Evidence, mend_groups
from daskab.run.witnesses import attack_found, met_in_round
from daskab.run.workspace import Workspace, open_workspace

Array = NDArray[np.float64]


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


class Drive(Run):
    """One pass over a run that is not made of others.

    Parameters
    ----------
    question, runs, deadline, progress : as of `Run`
    model : which is asked about
    batch : logical units a task; default: about a second's worth, timed

    Raises
    ------
    JobError
        If ``batch`` makes far too many tasks.
    """

    def __init__(
        self,
        question: Question,
        model: KernelExpansion,
        runs: Path,
        *,
        batch: int | None = None,
        deadline: float = math.inf,
        progress: Progress | None = None,
    ) -> None:
        check_batch(question, batch)
        super().__init__(question, runs, deadline, progress)
        self.model = model
        self.batch = batch
        self.runs = runs
        self.space: Workspace
        self.told: SoFar | None = None
        self.next_look = -np.inf

    def steps(self, executor: str) -> Steps:
        """As `Run.steps`."""
        # A sealed run takes no lock, and no disk that can be written to.
        found = find_outcome(self.question, self.runs, self.progress)
        if found is not None:
            return found
        self.executor, self.begun = executor, datetime.now(UTC)
        with one_writer(self.folder) as self.check, storage_of(self.folder):
            found = find_outcome(self.question, self.runs, self.progress)
            if found is not None:
                return found
            self.open()
            return (yield from self.stages())

    def open(self) -> None:
        """Lay the run out, or mend what is there."""
        resumed = workspace.exists(self.folder)
        self.progress.begin(self.question.run_id, "resumed" if resumed else "begun")
        if resumed:
            mend_groups(self.folder / "evidence.zarr")
        else:
            plan = sized_plan(self.question, Scaled.of(self.model), self.batch)
            workspace.create(self.folder, plan, self.model)
        self.space = open_workspace(self.folder, self.question)
        if resumed:
            make_folder(self.space.records)
            Evidence.create(self.space.evidence.path, self.space.plan, self.space.model)  # mends what is damaged

    def stages(self) -> Steps:
        """All stages, then the certificate; sealed unless time ran out or a task failed."""
        plan, model = self.space.plan, self.space.model
        blocks = range(plan.n_blocks)
        n_rounds = 0
        on_time = yield from self.stage("contributions", [Task("contributions", b) for b in blocks])
        on_time = on_time and (yield from self.stage("attack", [Task("attack", b) for b in blocks]))
        if on_time and model.delta is not None:
            on_time = yield from self.stage("joint attack", [Task("several", 0)])
        known, attack = attack_found(self.space, self.done), several_attack(self.space, self.done)
        while on_time and rounds.prepare(self.space.evidence, plan, goals_of(self.space, known[0]), known[0], n_rounds):
            self.look(n_rounds, known[0], attack)
            tasks = self.space.tasks("round", n_rounds)
            n_rounds += 1
            on_time = yield from self.stage(f"round {n_rounds}", tasks)
            if plan.question.method != "adaptive":
                break
            known = met_in_round(self.space, self.done, n_rounds - 1, known)
        units = unit_bounds(self.space, n_rounds, goals_of(self.space, known[0]), self.done)
        alone = bounds_alone(self.space, units)
        on_time = on_time and (yield from self.enhance(alone))
        on_time = on_time and (yield from self.groups(alone))
        upper = change_bounds(self.space, alone, self.done)
        by_sum = required_by_sum(self.space.model, upper)
        self.tell(by_sum, attack, units.open_inputs)
        attacked = None if attack is None else attack.n_inputs
        what = joint.scope(self.space, upper, by_sum, attacked, closed=units.open_inputs == 0)
        asked: list[joint.Search] = []
        together = joint.conclude(self.space, asked, self.done)
        while on_time and what and (search := joint.prepare(self.space, what, asked)):
            tasks = self.space.tasks("joint", len(asked))
            asked.append(search)
            on_time = yield from self.stage(f"search {len(asked)}", tasks)
            together = joint.conclude(self.space, asked, self.done)
            attack = met_attack(model, attack, together)
            self.tell(required_by_all(model, by_sum, together), attack, units.open_inputs)
        certificate = conclude(self.space, units, alone, known, attack, together, self.done, all_done=on_time)
        self.save(certificate, units, sealed=on_time)
        return Outcome(certificate, self.space.folder, sealed=on_time, found=False, failures=tuple(self.failures))

    def look(self, n_rounds: int, attained: Array, attack: Attack | None) -> None:
        """Tell what the rounds certify so far; it takes reading all of them, so a twentieth of the time at most."""
        begun = time.monotonic()
        if self.space.model.delta is None or begun < self.next_look:
            return
        units = unit_bounds(self.space, n_rounds, goals_of(self.space, attained), self.done)
        upper = change_bounds(self.space, bounds_alone(self.space, units), self.done)
        by_sum = required_by_sum(self.space.model, upper)
        self.tell(by_sum, attack, units.open_inputs)
        ended = time.monotonic()
        self.next_look = ended + 19 * (ended - begun)

    def tell(self, required: int | None, attack: Attack | None, open_inputs: int) -> None:
        """Tell what is certified, if that has changed."""
        so_far = SoFar(required, None if attack is None else attack.n_inputs, open_inputs)
        if self.space.model.delta is not None and so_far != self.told:
            self.told = so_far
            self.progress.known(so_far)

    def enhance(self, upper: Array) -> Stage:
        """Cut the input with the highest bound finer, over and over, lowering ``upper`` (D,); False if time ran out.

        Smith et al.'s enhancement, but an input whose bound rises keeps the lower one.
        """
        q, evidence = self.space.plan.question, self.space.evidence
        slices = q.enhance_slices
        for number in range(q.enhance):
            d = int(np.argmax(upper))
            evidence.create_enhancement(number, d, slices, self.space.plan.batch)
            if not (yield from self.stage(f"enhancement {number + 1}", self.space.tasks("enhancement", number))):
                return False
            bound = enhanced_bound(self.space, number)
            if bound < upper[d]:
                upper[d] = bound
            else:
                slices += 1
        return True

    def groups(self, alone: Array) -> Stage:
        """Bound the groups of inputs that count as one change, from what each input does alone (D,); False if late."""
        groups = self.space.model.domain.groups
        if not groups:
            return True
        self.space.evidence.create_groups(groups_at_most(self.space, alone), alone)
        return (yield from self.stage("groups", [Task("groups", k) for k in range(len(groups))]))

    def recorded(self, tasks: Sequence[Task]) -> Iterable[Record]:
        """As `Run.recorded`."""
        return done_records(self.space, list(tasks)).values()

    def save(self, certificate: Certificate, units: UnitBounds, *, sealed: bool) -> None:
        """Write the final arrays, provenance, and last of all the certificate."""
        self.check()
        folder, evidence = self.space.folder, self.space.evidence
        partial = folder / "certificate.incomplete.json"
        run_id, done = certificate.run_id, self.done.values()
        said = provenance_of(run_id, self.executor, self.begun, done, self.failures)
        write_provenance(folder, said | {"plan": asdict(self.space.plan)})
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
