"""A run as a pass over its stages: it says which tasks are next, and somebody else (`queue`) has them done."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from daskab.run.certificate import Certificate
from daskab.run.deadline import has_passed
from daskab.run.plan import Question
from daskab.run.progress import Progress
from daskab.run.records import Assignment, Failure, Record, Task


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    certificate: Certificate
    folder: Path
    sealed: bool  #: False when a time limit ended it or a task failed; the same command goes on
    found: bool  #: whether a sealed certificate was already there
    failures: tuple[Failure, ...] = ()  #: tasks that could not be done


Steps = Generator[list[Assignment], None, Outcome]
"""The tasks of one stage after another, each asked for when those before have ended; in the end what it came to."""

Stage = Generator[list[Assignment], None, bool]
"""The tasks of one or more stages; in the end whether all of them are done."""


class Run(ABC):
    """One pass over the stages of a run.

    Parameters
    ----------
    question : what is asked
    runs : directory of run directories
    deadline : when the last stage is begun, on the monotonic clock
    progress : told how it goes
    """

    def __init__(self, question: Question, runs: Path, deadline: float = math.inf, progress: Progress | None = None):
        self.question = question
        self.folder = runs / question.run_id
        self.deadline = deadline
        self.progress = progress or Progress()
        self.check: Callable[[], None] = lambda: None  #: raises BusyError once the run is no longer ours
        self.done: dict[str, Record] = {}
        self.failures: list[Failure] = []

    @abstractmethod
    def steps(self, executor: str) -> Steps:
        """Answer the question, or find its answer.

        Parameters
        ----------
        executor : name of where tasks run

        Raises
        ------
        BusyError
            If another process is writing this run.
        IntegrityError
            If the run directory is damaged in a way that running again does not mend.
        IncompleteError
            If it cannot be written to, the disk being full for instance.
        """

    @abstractmethod
    def recorded(self, tasks: Sequence[Task]) -> Iterable[Record]:
        """Records of those tasks whose results are there as they wrote them."""

    def stage(self, name: str, tasks: Sequence[Task]) -> Stage:
        """Have done what is not yet done of a stage; False when some of it is missing: no time, or a task failed."""
        self.done |= {record.task: record for record in self.recorded(tasks)}
        waiting = [task for task in tasks if task.key not in self.done]
        self.progress.stage(name, len(tasks), len(tasks) - len(waiting))
        if waiting and not self.late():
            yield [Assignment(str(self.folder), self.question.run_id, task) for task in waiting]
        return all(task.key in self.done for task in tasks)

    def take(self, given: Assignment, ended: Record | Failure) -> None:
        """A task of the stage has ended."""
        self.check()
        if isinstance(ended, Failure):
            self.failures.append(ended)
            self.progress.fail(ended)
        else:
            self.done[ended.task] = ended
            self.progress.advance(ended)

    def wait(self) -> None:
        """Nothing has happened for a second or so."""
        self.check()
        self.progress.wait()

    def late(self) -> bool:
        """Whether the time limit has passed."""
        return has_passed(self.deadline)
