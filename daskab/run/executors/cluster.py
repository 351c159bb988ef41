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

from daskab.errors import ClusterError, IncompleteError
from daskab.run.executors.handshake import shake_hands
from daskab.run.executors.patience import GLANCE, patiently
from daskab.run.records import Failure, Record, Task
from daskab.run.tasks import execute

IN_FLIGHT = 4
"""Tasks handed to the scheduler for each thread: enough to keep it fed, few enough to stop quickly."""

CLUSTERS = 3
"""Begun one after the other, if those before lost their scheduler or all their workers and nothing was done."""

DEATHS_ALONE = 2
"""Clusters a task may lose while it is tried alone, before it is to blame."""

End = Record | Literal["killed", "lost"]
"""How a task ended: done, two workers died with it, or the cluster could not do it."""


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

    def run(self, folder: str, run_id: str, tasks: Iterable[Task]) -> Iterator[Record | Failure | None]:
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
        waiting = iter(tasks)
        self._fruitless = 0
        while self._fruitless < CLUSTERS:
            self._fruitless += 1
            lost: list[Task] = []
            if (yield from self._run(folder, run_id, waiting, lost)):
                return
            self.__exit__()
            waiting = chain(lost, waiting)
        raise IncompleteError(
            f"no worker came or answered in {self.patience:g} s, {CLUSTERS} times; the same command goes on from here"
        )

    def _run(
        self, folder: str, run_id: str, waiting: Iterator[Task], lost: list[Task]
    ) -> Generator[Record | Failure | None, None, bool]:
        """One cluster's part of `run`: whether it did all; if not, what it was given and did not do is in ``lost``.

        A task that two workers died with may be innocent: others were with them. It is tried again at the end, by
        itself; if that kills two more, or leaves no cluster twice, it is the culprit.
        """
        suspects: list[Task] = []
        for ended in self._results(folder, run_id, waiting):
            if ended is None:
                yield None
                continue
            task, end = ended
            if isinstance(end, Record):
                self._fruitless = 0
                yield end
            else:
                (lost if end == "lost" else suspects).append(task)
        if lost:
            lost.extend(suspects)
            return False
        for task in suspects:
            yield (yield from self._alone(folder, run_id, task))
        return True

    def _alone(self, folder: str, run_id: str, task: Task) -> Generator[None, None, Record | Failure]:
        """Try a task with nothing beside it."""
        for _ in range(DEATHS_ALONE):
            for ended in self._results(folder, run_id, iter([task]), alone=True):
                if ended is None:
                    yield
                elif isinstance(ended[1], Record):
                    return ended[1]
                elif ended[1] == "killed":
                    return Failure(task.key, "killed every worker it was given to, alone as well")
            self.__exit__()
        return Failure(task.key, "no worker was left whenever it was tried alone")

    def _results(
        self, folder: str, run_id: str, waiting: Iterator[Task], *, alone: bool = False
    ) -> Iterator[tuple[Task, End] | None]:
        """Tasks as they end, None while none does; no more are handed over once one is lost."""
        ended: SimpleQueue[Any] = SimpleQueue()
        running: dict[str, tuple[Task, Any]] = {}
        task = next(waiting, None)
        if task is None:
            return
        yield from self.begin()
        threads, looked, seen = 0, -math.inf, time.monotonic()
        lost = False
        while running or (task is not None and not lost):
            now = time.monotonic()
            if now - looked >= GLANCE:
                try:
                    threads, looked = (yield from self._threads(folder)), time.monotonic()
                except OSError:
                    threads = 0
                if threads:
                    seen = time.monotonic()
            while task is not None and not lost and len(running) < IN_FLIGHT * threads:
                # Dask returns an old result for an old key whatever the arguments, so the key carries the run too.
                key = f"{run_id}-{task.key}{'-alone' * alone}"
                future = self._client.submit(execute, folder, run_id, task, key=key, pure=False)
                running[key] = task, future
                future.add_done_callback(ended.put)
                task = next(waiting, None)
            if time.monotonic() - seen > self.patience:
                yield from ((given, "lost") for given, _ in running.values())
                running.clear()
                break
            try:
                future = ended.get(timeout=GLANCE if running else GLANCE / 10)
            except Empty:
                yield None
                continue
            given, _ = running.pop(future.key)
            end = yield from self._end(future)
            lost = lost or end == "lost"
            yield given, end
        if task is not None:
            yield task, "lost"

    def _end(self, future: Any) -> Generator[None, None, End]:
        """How a task ended; its own errors are raised."""
        try:
            record: Record = yield from patiently(future.result, self.patience)
        except KilledWorker:
            return "killed"
        except (NoWorkerError, CancelledError):
            return "lost"
        except OSError:
            # Of the task; or whoever holds its result is gone (a time-out too), and nobody is left to do it again.
            if future.status == "error":
                raise
            return "lost"
        return record

    def _threads(self, folder: str) -> Generator[None, None, int]:
        """Threads of all workers there are; before any work for a run, those are met.

        Raises
        ------
        OSError
            If the scheduler or a worker does not answer.
        ClusterError
            If a worker must not be given tasks.
        """
        try:
            threads: dict[str, int] = yield from patiently(self._client.nthreads, self.patience)
        except CancelledError:
            return 0
        # Whoever comes later may die of its first task meanwhile, and asking the dead takes half a minute.
        if threads and folder not in self._met:
            yield from shake_hands(self._client, folder)
            self._met.add(folder)
        return sum(threads.values())


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
