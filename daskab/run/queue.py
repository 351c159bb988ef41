"""One queue for all the runs of a job: whoever runs tasks is given those of any run that has some ready."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

from daskab.run.driver import Drive, Outcome, Steps
from daskab.run.executors import Executor
from daskab.run.records import Assignment, Failure, Record, Task


@dataclass
class Opened:
    """A run in progress."""

    drive: Drive
    steps: Steps
    ready: deque[Task] = field(default_factory=deque)
    given: set[str] = field(default_factory=set)
    """Keys of the tasks that were handed over and have not ended."""


class Queue:
    """The tasks of several runs as one stream, those of earlier runs first.

    A run is opened once those before it have nothing ready: at the end of a stage of theirs, when workers would
    have nothing to do until its last task has ended.

    Parameters
    ----------
    drives : in the order they are opened
    executor : where tasks run
    time_limit : seconds after which no task is started; runs are opened all the same, for what is known of them
    """

    def __init__(self, drives: Iterable[Drive], executor: Executor, time_limit: float | None = None) -> None:
        self._drives = iter(drives)
        self._executor = executor
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._opened: dict[str, Opened] = {}
        self._answered: deque[tuple[Drive, Outcome]] = deque()
        self._again: deque[Drive] = deque()  # of runs that are opened already

    def outcomes(self) -> Iterator[tuple[Drive, Outcome]]:
        """Each run with what it came to, as soon as that is known.

        Raises
        ------
        DaskabError
            What ends one of the runs, or what the executor cannot go on with, ends all; those that were opened go on
            from where they are when they are asked for again.
        """
        try:
            for ended in self._executor.run(self):
                self._take(ended)
                yield from self._told()
                if self.late():
                    break
            # Time ran out, or the executor gave up: no task comes any more.
            while self._opened or self._open():
                for run in list(self._opened.values()):
                    self._step(run)
                yield from self._told()
            yield from self._told()
        finally:
            for run in self._opened.values():
                run.steps.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Assignment | None:
        """The next task; None while there is none until some that were handed over have ended."""
        while True:
            for run in self._opened.values():
                if run.ready:
                    task = run.ready.popleft()
                    run.given.add(task.key)
                    return Assignment(str(run.drive.folder), run.drive.question.run_id, task)
            if not self._open():
                if self._opened:
                    return None
                raise StopIteration

    def _open(self) -> bool:
        """Open the next run; False if there is none to open."""
        again = next((d for d in self._again if d.question.run_id not in self._opened), None)
        if again is not None:
            self._again.remove(again)
        drive = again or next(self._drives, None)
        if drive is None:
            return False
        if drive.question.run_id in self._opened:
            self._again.append(drive)
            return True
        run = Opened(drive, drive.steps(self._executor.name, self._deadline))
        self._opened[drive.question.run_id] = run
        self._step(run)
        return True

    def _take(self, ended: tuple[Assignment, Record | Failure] | None) -> None:
        if ended is None:
            for run in self._opened.values():
                run.drive.wait()
            return
        (_, run_id, task), how = ended
        run = self._opened[run_id]
        run.drive.take(how)
        run.given.discard(task.key)
        if not run.ready and not run.given:
            self._step(run)

    def _step(self, run: Opened) -> None:
        """Let a run go on to its next stage, or to its end."""
        run.ready.clear()
        run.given.clear()
        try:
            run.ready.extend(next(run.steps))
        except StopIteration as end:
            del self._opened[run.drive.question.run_id]
            run.drive.progress.end(end.value)
            self._answered.append((run.drive, end.value))

    def _told(self) -> Iterator[tuple[Drive, Outcome]]:
        while self._answered:
            yield self._answered.popleft()

    def late(self) -> bool:
        """Whether the time limit has passed."""
        return self._deadline is not None and time.monotonic() > self._deadline


def answer(drive: Drive, executor: Executor, time_limit: float | None = None) -> Outcome:
    """What one run by itself comes to; see `Queue`."""
    ((_, outcome),) = Queue([drive], executor, time_limit).outcomes()
    return outcome
