"""What all Dask clusters have in common: a few tasks are handed over at a time, and no death is final."""

from __future__ import annotations

import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, Literal, Self

from distributed import Client, KilledWorker
from distributed.scheduler import NoWorkerError

from daskab.errors import ClusterError, DaskabError, IncompleteError
from daskab.run.executors import Ended
from daskab.run.executors.handshake import shake_hands
from daskab.run.executors.patience import GLANCE, patiently
from daskab.run.records import Assignment, Failure, Record
from daskab.run.tasks import execute

IN_FLIGHT = 4
"""Tasks handed to the scheduler for each thread: enough to keep it fed, few enough to stop quickly."""

CLUSTERS = 3
"""Begun one after the other, if those before lost their scheduler or all their workers and nothing was done."""

DEATHS_ALONE = 2
"""Clusters a task may lose while it is tried alone, before it is to blame."""

End = Record | DaskabError | OSError | Literal["killed", "lost"]
"""How a task ended: done, with an error of its own, two workers died with it, or the cluster could not do it."""


class Cluster(ABC):
    """Runs tasks on a Dask cluster, which is begun or joined when there are any, until the context ends.

    A scheduler or worker may be frozen: nothing here waits for one without an end, or deaf to who asked.
    """

    name: str

    def __init__(self, patience: float) -> None:
        self.patience = patience  #: seconds to wait for a scheduler to answer, and for a worker to come (back)
        self._stack = ExitStack()
        self._client: Any = None
        self._was_there = False

    def reach(self) -> Iterator[None]:
        """Wait, if it has to be waited for, until `client` can be had."""
        return iter(())

    @abstractmethod
    def client(self) -> AbstractContextManager[Client]:
        """Begin or join the cluster.

        Raises
        ------
        ClusterError
            If there is none, or daskab must not use it.
        """

    def begin(self) -> Iterator[None]:
        """Begin or join the cluster, unless that is done already.

        Raises
        ------
        ClusterError
            As by `client`.
        IncompleteError
            If it is not the first, so that something may be done already.
        """
        if self._client is not None:
            return
        try:
            with ExitStack() as stack:
                stack.enter_context(quiet())
                yield from self.reach()
                self._client = stack.enter_context(self.client())
                self._stack = stack.pop_all()
        except ClusterError as error:
            if not self._was_there:
                raise
            raise IncompleteError(f"{error}; the same command goes on from here") from None
        self._was_there = True
        self._met: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client = None
        self._stack.close()

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[Ended | None]:
        """Keep a bounded number of tasks with the scheduler and yield records as they finish.

        If the scheduler is lost, or all workers are and none comes back, the cluster is begun anew with what is not
        done.

        Raises
        ------
        ClusterError
            If there is no cluster, or a worker must not be given tasks: see `handshake`.
        IncompleteError
            If no cluster is left to go on with.
        """
        waiting = iter(assignments)
        self._fruitless = 0
        while self._fruitless < CLUSTERS:
            self._fruitless += 1
            lost: list[Assignment] = []
            if (yield from self._run(waiting, lost)):
                return
            self.__exit__()
            waiting = chain(lost, waiting)
        raise IncompleteError(
            f"no worker came or answered in {self.patience:g} s, {CLUSTERS} times; the same command goes on from here"
        )

    def _run(self, waiting: Iterator[Assignment | None], lost: list[Assignment]) -> Generator[Ended | None, None, bool]:
        """One cluster's part of `run`: whether it did all; if not, what it was given and did not do is in ``lost``.

        A task that two workers died with may be innocent: others were with them. It is tried again when nothing else
        is left to do, by itself; if that kills two more, or leaves no cluster twice, it is the culprit.
        """
        while True:
            suspects: list[Assignment] = []
            for ended in self._results(waiting):
                if ended is None:
                    yield None
                    continue
                given, end = ended
                if end == "lost":
                    lost.append(given)
                elif end == "killed":
                    suspects.append(given)
                else:
                    self._fruitless = 0
                    yield given, end
            if lost:
                lost.extend(suspects)
                return False
            if not suspects:
                return True
            for given in suspects:
                yield given, (yield from self._alone(given))

    def _alone(self, given: Assignment) -> Generator[None, None, Record | Failure | DaskabError | OSError]:
        """Try a task with nothing beside it."""
        for _ in range(DEATHS_ALONE):
            for ended in self._results(iter([given]), alone=True):
                if ended is None:
                    yield
                elif ended[1] == "killed":
                    return Failure(given.task.key, "killed every worker it was given to, alone as well")
                elif ended[1] != "lost":
                    return ended[1]
            self.__exit__()
        return Failure(given.task.key, "no worker was left whenever it was tried alone")

    def _results(
        self, waiting: Iterator[Assignment | None], *, alone: bool = False
    ) -> Iterator[tuple[Assignment, End] | None]:
        """Tasks as they end, None while none does; no more are handed over once one is lost."""
        ended: SimpleQueue[Any] = SimpleQueue()
        running: dict[str, tuple[Assignment, Any]] = {}
        given = next(waiting, None)
        if given is None:
            return
        yield from self.begin()
        threads, looked, seen = 0, -math.inf, time.monotonic()
        lost = False
        while True:
            if given is None and not running and not lost:
                given = next(waiting, None)
            if not running and (given is None or lost):
                break
            now = time.monotonic()
            if now - looked >= GLANCE:
                threads, looked = (yield from self._threads()), time.monotonic()
            while not lost and len(running) < IN_FLIGHT * threads:
                given = given or next(waiting, None)
                if given is None:
                    break
                if not (yield from self._meet(given.folder)):
                    threads = 0
                    break
                # Dask returns an old result for an old key whatever the arguments, so the key carries the run too, and
                # where it is: parts of two runs may be one question.
                key = f"{given.folder}-{given.task.key}{'-alone' * alone}"
                future = self._client.submit(execute, *given, key=key, pure=False)
                running[key] = given, future
                future.add_done_callback(ended.put)
                given = None
            if threads:
                seen = time.monotonic()
            elif time.monotonic() - seen > self.patience:
                yield from ((gone, "lost") for gone, _ in running.values())
                running.clear()
                lost = True
                continue
            try:
                future = ended.get(timeout=GLANCE if running else GLANCE / 10)
            except Empty:
                yield None
                continue
            done, _ = running.pop(future.key)
            end = yield from self._end(future)
            lost = lost or end == "lost"
            yield done, end
        if given is not None:
            yield given, "lost"

    def _end(self, future: Any) -> Generator[None, None, End]:
        """How a task ended."""
        try:
            record: Record = yield from patiently(future.result, self.patience)
        except KilledWorker:
            return "killed"
        except (NoWorkerError, CancelledError):
            return "lost"
        except DaskabError as error:
            return error
        except OSError as error:
            # Of the task; or whoever holds its result is gone (a time-out too), and nobody is left to do it again.
            return error if future.status == "error" else "lost"
        return record

    def _threads(self) -> Generator[None, None, int]:
        """Threads of all workers there are; none if the scheduler does not answer."""
        try:
            threads: dict[str, int] = yield from patiently(self._client.nthreads, self.patience)
        except (OSError, CancelledError):
            return 0
        return sum(threads.values())

    def _meet(self, folder: str) -> Generator[None, None, bool]:
        """Meet the workers there are before any work for a run; False if one of them, or the scheduler, went away.

        Whoever comes later may die of its first task meanwhile, and asking the dead takes half a minute.

        Raises
        ------
        ClusterError
            If a worker must not be given tasks.
        """
        if folder not in self._met:
            try:
                yield from shake_hands(self._client, folder)
            except (OSError, CancelledError):
                return False
            self._met.add(folder)
        return True


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Dask's own messages off standard error: what matters of them, daskab says in one line."""
    with ExitStack() as stack:
        # A gather that timed out is one that asyncio wonders about.
        stack.callback(logging.getLogger("asyncio").setLevel, logging.getLogger("asyncio").level)
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        for handler in logging.getLogger("distributed").handlers:
            stack.callback(handler.setLevel, handler.level)
            handler.setLevel(logging.CRITICAL)
        yield
