"""One queue for all the runs of a job or a night: whoever runs tasks is given those of any run that has some ready."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

from daskab.errors import DaskabError
from daskab.run.executors import Ended, Executor
from daskab.run.records import Assignment, Failure, Record
from daskab.run.stages import Outcome, Run, Steps


@dataclass
class Opened:
    """A run in progress."""

    run: Run
    steps: Steps
    ready: deque[Assignment] = field(default_factory=deque)
    given: set[Assignment] = field(default_factory=set)
    """Those that were handed over and have not ended."""


class Queue:
    """The tasks of several runs as one stream, those of earlier runs first.

    A run is opened once those before it have nothing ready: at the end of a stage of theirs, when workers would
    have nothing to do until its last task has ended. One whose time has run out is opened all the same, for what is
    known of it.

    Parameters
    ----------
    runs : in the order they are opened
    executor : where tasks run
    """

    def __init__(self, runs: Iterable[Run], executor: Executor) -> None:
        self._runs = iter(runs)
        self._executor = executor
        self._opened: dict[str, Opened] = {}
        self._ended: deque[tuple[Run, Outcome | DaskabError | OSError]] = deque()
        self._again: deque[Run] = deque()  # that are opened already

    def outcomes(self) -> Iterator[tuple[Run, Outcome]]:
        """Each run with what it came to, as soon as that is known.

        Raises
        ------
        DaskabError, OSError
            What ends one of the runs, or what the executor cannot go on with, ends all; those that were opened go on
            from where they are when they are asked for again.
        """
        for run, came in self.endings():
            if not isinstance(came, Outcome):
                raise came
            yield run, came

    def endings(self) -> Iterator[tuple[Run, Outcome | DaskabError | OSError]]:
        """Each run with what it came to, or what ended it, which leaves the others as they are.

        Raises
        ------
        DaskabError, OSError
            What the executor cannot go on with.
        """
        try:
            for ended in self._executor.run(self):
                self._take(ended)
                self._end_late()
                yield from self._told()
                if not self._opened and not self._open():
                    break  # what goes on is of runs whose time is up
            while self._opened:  # the executor gave up
                for opened in list(self._opened.values()):
                    self._step(opened)
            yield from self._told()
        except (Exception, KeyboardInterrupt):
            yield from self._told()  # which came to an end before
            raise
        finally:
            for opened in self._opened.values():
                opened.steps.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Assignment | None:
        """The next task; None while there is none until some that were handed over have ended."""
        while True:
            self._end_late()
            for opened in self._opened.values():
                if opened.ready:
                    given = opened.ready.popleft()
                    opened.given.add(given)
                    return given
            if not self._open():
                if self._opened:
                    return None
                raise StopIteration

    def _open(self) -> bool:
        """Open the next run; False if there is none to open."""
        again = next((run for run in self._again if run.question.run_id not in self._opened), None)
        if again is not None:
            self._again.remove(again)
        run = again or next(self._runs, None)
        if run is None:
            return False
        if run.question.run_id in self._opened:
            self._again.append(run)
            return True
        opened = Opened(run, run.steps(self._executor.name))
        self._opened[run.question.run_id] = opened
        self._step(opened)
        return True

    def _take(self, ended: Ended | None) -> None:
        if ended is None:
            for opened in list(self._opened.values()):
                try:
                    opened.run.wait()
                except (DaskabError, OSError) as error:
                    self._end(opened, error)
            return
        given, how = ended
        for opened in [one for one in self._opened.values() if given in one.given]:  # none if its run has ended
            opened.given.discard(given)
            try:
                if not isinstance(how, Record | Failure):
                    raise how
                opened.run.take(given, how)
            except (DaskabError, OSError) as error:
                self._end(opened, error)
                continue
            if not opened.ready and not opened.given:
                self._step(opened)

    def _end_late(self) -> None:
        """Let runs whose time is up come to what is known of them."""
        for opened in list(self._opened.values()):
            if opened.run.late():
                self._step(opened)

    def _step(self, opened: Opened) -> None:
        """Let a run go on to its next stage, or to its end."""
        opened.ready.clear()
        opened.given.clear()
        try:
            opened.ready.extend(next(opened.steps))
        except StopIteration as end:
            opened.run.progress.end(end.value)
            self._end(opened, end.value)
        except (DaskabError, OSError) as error:
            self._end(opened, error)

    def _end(self, opened: Opened, came: Outcome | DaskabError | OSError) -> None:
        opened.steps.close()
        del self._opened[opened.run.question.run_id]
        self._ended.append((opened.run, came))

    def _told(self) -> Iterator[tuple[Run, Outcome | DaskabError | OSError]]:
        while self._ended:
            yield self._ended.popleft()


def answer(run: Run, executor: Executor) -> Outcome:
    """What one run by itself comes to; see `Queue`."""
    ((_, outcome),) = Queue([run], executor).outcomes()
    return outcome
