"""What is asked of a model: the runs that answer it, and how they do together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from daskab.model.expansion import KernelExpansion
from daskab.model.kernels import EQ
from daskab.run.driver import Drive, Outcome
from daskab.run.executors import Executor
from daskab.run.plan import Question
from daskab.run.progress import Progress
from daskab.run.queue import Queue
from daskab.run.sandwich.conclusion import conclude
from daskab.run.sandwich.layout import PARTS, Sandwich


@dataclass(frozen=True, eq=False)
class Asked:
    """The runs of one model, and what their outcomes, in their order, come to."""

    drives: tuple[Drive, ...]
    conclude: Callable[[Sequence[Outcome]], Outcome]

    def answer(self, executor: Executor, time_limit: float | None = None) -> Outcome:
        """What it comes to by itself; see `Answers`."""
        ((_, outcome),) = Answers([self], executor, time_limit)
        return outcome


def ask(
    question: Question,
    model: KernelExpansion,
    runs: Path,
    *,
    batch: int | None = None,
    progress: Callable[[str], Progress] = lambda _: Progress(),
) -> Asked:
    """What is asked of a model: a run, or one for each part of a model of another kernel than EQ.

    Parameters
    ----------
    question, model, runs, batch : as of `Drive`
    progress : of a run, by what it is called beside the model's name: nothing, or which part it is of
    """
    if model.kernel == EQ:
        drive = Drive(question, model, runs, batch=batch, progress=progress(""))
        return Asked((drive,), lambda outcomes: outcomes[0])
    run = Sandwich.of(question, model, runs)
    questions = run.questions
    drives = tuple(
        Drive(asked, part, run.folder / PARTS, batch=batch, progress=progress(f" part {k} of {len(questions)}"))
        for k, (asked, part) in enumerate(zip(questions, run.parts.models, strict=True), start=1)
    )
    return Asked(drives, partial(conclude, run))


class Answers:
    """The answers to several models' questions, whose runs are one queue; see `Queue` for the parameters."""

    def __init__(self, asked: Iterable[Asked], executor: Executor, time_limit: float | None = None) -> None:
        self._asked = asked
        self._of: dict[Drive, Asked] = {}
        self._queue = Queue(self._drives(), executor, time_limit)

    def __iter__(self) -> Iterator[tuple[Asked, Outcome]]:
        """Each as soon as all of its runs are answered.

        Raises
        ------
        DaskabError
            As of `Queue.outcomes`.
        """
        outcomes: dict[Drive, Outcome] = {}
        for drive, outcome in self._queue.outcomes():
            outcomes[drive] = outcome
            asked = self._of[drive]
            if all(part in outcomes for part in asked.drives):
                yield asked, asked.conclude([outcomes.pop(part) for part in asked.drives])

    def late(self) -> bool:
        """Whether the time limit has passed."""
        return self._queue.late()

    def _drives(self) -> Iterator[Drive]:
        for asked in self._asked:
            for drive in asked.drives:
                self._of[drive] = asked
                yield drive
