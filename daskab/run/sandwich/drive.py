"""A run that is made of others, from its question to its seal: attacks on its model, then the runs of its parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from daskab.files import make_folder, reaching, storage_of, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.run.certificate import Certificate
from daskab.run.driver import Drive
from daskab.run.lease import one_writer
from daskab.run.plan import Question
from daskab.run.progress import Progress
from daskab.run.provenance import provenance_of, read_provenance, with_parts, write_provenance
from daskab.run.records import Assignment, Failure, Record, Task, records_in
from daskab.run.sandwich.attacks import FEWEST, finished, pair_tasks, read_pairs
from daskab.run.sandwich.conclusion import SEALED, before_parts, check_sealed, sum_of
from daskab.run.sandwich.layout import ATTACKS, PARTS, RECORDS, Sandwich, is_sandwich, lay_out, open_sandwich
from daskab.run.sandwich.pairs import Pairs
from daskab.run.stages import Outcome, Run, Steps


class SandwichDrive(Run):
    """One pass over such a run.

    Parameters
    ----------
    question, model, runs, batch, deadline : as of `Drive`
    progress : of a run, by what it is called beside the model's name: nothing, or which part it is of
    """

    def __init__(
        self,
        question: Question,
        model: KernelExpansion,
        runs: Path,
        *,
        batch: int | None = None,
        deadline: float = math.inf,
        progress: Callable[[str], Progress] = lambda _: Progress(),
    ) -> None:
        super().__init__(question, runs, deadline, progress(""))
        self.model = model
        self.batch = batch
        self.progress_of = progress
        self._going: list[tuple[Drive, Steps]] = []  #: parts in progress
        self._of: dict[Assignment, Drive] = {}

    def steps(self, executor: str) -> Steps:
        """As `Run.steps`; a BoundError if the kernel cannot be replaced."""
        self.executor, self.begun = executor, datetime.now(UTC)
        with reaching(self.folder):
            sealed = (self.folder / SEALED).exists()
        if sealed and (pairs := read_pairs(self.folder, self.model)) is not None:
            # It takes no lock, and no disk that can be written to.
            self.progress.begin(self.question.run_id, "found")
            run = open_sandwich(self.folder, self.question)
            return (yield from self.bounded(run, pairs))
        with one_writer(self.folder) as self.check, storage_of(self.folder):
            run = self.open()
            pairs, on_time = yield from self.attacked()
            if not on_time:
                return self.outcome(run, before_parts(run, pairs), ())
            return (yield from self.bounded(run, pairs))

    def open(self) -> Sandwich:
        """Lay the run out, or go on with what was laid out."""
        resumed = is_sandwich(self.folder)
        self.progress.begin(self.question.run_id, "resumed" if resumed else "begun")
        if not resumed:
            return lay_out(self.folder, self.question, self.model)
        make_folder(self.folder / RECORDS)
        make_folder(self.folder / ATTACKS)
        return open_sandwich(self.folder, self.question)

    def attacked(self) -> Generator[list[Assignment], None, tuple[Pairs, bool]]:
        """What attacks on the model find, and whether all of them were done."""
        on_time = yield from self.stage("attack", pair_tasks(self.model))
        if on_time and self.model.delta is not None:
            on_time = yield from self.stage("joint attack", [FEWEST])
        pairs = read_pairs(self.folder, self.model) if on_time else None
        return (Pairs.none(self.model), False) if pairs is None else (pairs, True)

    def bounded(self, run: Sandwich, pairs: Pairs) -> Steps:
        """What its parts come to together: each a run of its own, all of them a stage further at a time."""
        asked = list(zip(run.questions(pairs), run.parts.models, strict=True))
        parts = [
            Drive(
                question,
                model,
                self.folder / PARTS,
                batch=self.batch,
                deadline=self.deadline,
                progress=self.progress_of(f" part {k} of {len(asked)}"),
            )
            for k, (question, model) in enumerate(asked, start=1)
        ]
        self._going = [(part, part.steps(self.executor)) for part in parts]
        outcomes: dict[Drive, Outcome] = {}
        try:
            while self._going:
                waiting = []
                for going in list(self._going):
                    part, steps = going
                    try:
                        given = next(steps)
                    except StopIteration as end:
                        outcomes[part] = end.value
                        part.progress.end(end.value)
                        self._going.remove(going)
                        continue
                    self._of |= dict.fromkeys(given, part)
                    waiting += given
                if waiting:
                    yield waiting
        finally:
            for _, steps in self._going:
                steps.close()
        each = [outcomes[part] for part in parts]
        return self.outcome(run, sum_of(run, pairs, [outcome.certificate for outcome in each]), each)

    def outcome(self, run: Sandwich, certificate: Certificate, parts: Sequence[Outcome]) -> Outcome:
        """Keep what it comes to, sealed if all of its parts are; or find it sealed."""
        sealed = bool(parts) and all(part.sealed for part in parts)
        failures = (*self.failures, *(failure for part in parts for failure in part.failures))
        path, partial = self.folder / SEALED, self.folder / "certificate.incomplete.json"
        if path.exists():
            if sealed:
                check_sealed(run, certificate)
            return Outcome(certificate, self.folder, sealed=sealed, found=sealed, failures=failures)
        self.check()
        own = provenance_of(
            self.question.run_id, self.executor, self.begun, records_in(self.folder / RECORDS), failures
        )
        write_provenance(self.folder, with_parts(own, [read_provenance(part.folder) for part in parts]))
        write_atomically(path if sealed else partial, certificate.to_json())
        if sealed:
            partial.unlink(missing_ok=True)
        return Outcome(certificate, self.folder, sealed=sealed, found=False, failures=failures)

    def recorded(self, tasks: Sequence[Task]) -> Iterable[Record]:
        """As `Run.recorded`."""
        return (done[0] for task in tasks if (done := finished(self.folder, self.model, task)) is not None)

    def take(self, given: Assignment, ended: Record | Failure) -> None:
        """A task of a stage, its own or a part's, has ended."""
        part = self._of.get(given)
        if part is None:
            super().take(given, ended)
            return
        self.check()
        part.take(given, ended)

    def wait(self) -> None:
        """Nothing has happened for a second or so."""
        if not self._going:
            super().wait()
            return
        self.check()
        for part, _ in self._going:
            part.wait()
