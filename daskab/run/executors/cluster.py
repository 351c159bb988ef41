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
from distributed.comm.core import CommClosedError
from distributed.scheduler import NoWorkerError

from daskab.errors import ClusterError, IncompleteError
from daskab.run.executors.handshake import shake_hands
from daskab.run.records import Failure, Record, Task
from daskab.run.tasks import execute

IN_FLIGHT = 4
"""Tasks handed to the scheduler for each thread: enough to keep it fed, few enough to stop quickly."""

CLUSTERS = 3
"""Begun for one stage, if those before lost their scheduler or all their workers."""

GLANCE = 1.0
"""Seconds between two looks at how many workers there are."""

End = Record | Literal["killed", "lost"]
"""How a task ended: done, two workers died with it, or the cluster could not do it."""


class Cluster(ABC):
    """Runs tasks on a Dask cluster, for as long as the context lives."""

    name: str

    def __init__(self, patience: float) -> None:
        self.patience = patience  #: seconds to wait for a scheduler to answer, and for a worker to come (back)

    @abstractmethod
    def client(self) -> AbstractContextManager[Client]:
        """Begin or join the cluster.

        Raises
        ------
        ClusterError
            If there is none, or daskab must not use it.
        """

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(quiet())
            self._client: Any = stack.enter_context(self.client())
            self._stack = stack.pop_all()
        self._met: set[str] = set()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, folder: str, run_id: str, tasks: Iterable[Task]) -> Iterator[Record | Failure]:
        """Keep a bounded number of tasks with the scheduler and yield records as they finish.

        If the scheduler is lost, or all workers are and none comes back, the cluster is begun anew with what is not
        done.

        Raises
        ------
        ClusterError
            If a worker must not be given tasks: see `handshake`.
        IncompleteError
            If no cluster is left to go on with.
        """
        waiting = iter(tasks)
        for number in range(CLUSTERS):
            if number > 0:
                self._begin_anew()
            lost: list[Task] = []
            if (yield from self._run(folder, run_id, waiting, lost)):
                return
            waiting = chain(lost, waiting)
        raise IncompleteError(
            f"no worker came in {self.patience:g} s, {CLUSTERS} times; the same command goes on from here"
        )

    def _run(
        self, folder: str, run_id: str, waiting: Iterator[Task], lost: list[Task]
    ) -> Generator[Record | Failure, None, bool]:
        """One cluster's part of `run`: whether it did all; if not, what it was given and did not do is in ``lost``.

        A task that two workers died with may be innocent: others were with them. It is tried again at the end, by
        itself; if that kills two more, it is the culprit.
        """
        if not self._workers_come():
            return False
        if folder not in self._met:
            try:
                shake_hands(self._client, folder)
            except CommClosedError:
                return False
            self._met.add(folder)
        suspects: list[Task] = []
        for task, end in self._results(folder, run_id, waiting):
            if isinstance(end, Record):
                yield end
            else:
                (lost if end == "lost" else suspects).append(task)
        if lost:
            lost.extend(suspects)
            return False
        for task in suspects:
            [(_, end)] = self._results(folder, run_id, iter([task]), alone=True)
            if isinstance(end, Record):
                yield end
                continue
            yield Failure(task.key, "killed every worker it was given to, alone as well")
            if end == "lost":
                self._begin_anew()
        return True

    def _results(
        self, folder: str, run_id: str, waiting: Iterator[Task], *, alone: bool = False
    ) -> Iterator[tuple[Task, End]]:
        """Tasks as they end; no more are handed over once one is lost."""
        ended: SimpleQueue[Any] = SimpleQueue()
        running: dict[str, tuple[Task, Any]] = {}
        threads, looked, seen = 0, -math.inf, time.monotonic()
        task = next(waiting, None)
        lost = False
        while running or (task is not None and not lost):
            now = time.monotonic()
            if now - looked >= GLANCE:
                threads, looked = self._threads(), now
                if threads:
                    seen = now
            while task is not None and not lost and len(running) < IN_FLIGHT * threads:
                # Dask returns an old result for an old key whatever the arguments, so the key carries the run too.
                key = f"{run_id}-{task.key}{'-alone' * alone}"
                future = self._client.submit(execute, folder, run_id, task, key=key, pure=False)
                running[key] = task, future
                future.add_done_callback(ended.put)
                task = next(waiting, None)
            if now - seen > self.patience:
                yield from ((given, "lost") for given, _ in running.values())
                running.clear()
                break
            try:
                future = ended.get(timeout=GLANCE)
            except Empty:
                continue
            given, _ = running.pop(future.key)
            end = self._end(future)
            lost = lost or end == "lost"
            yield given, end
        if task is not None:
            yield task, "lost"

    def _end(self, future: Any) -> End:
        """How a task ended; its own errors are raised."""
        try:
            record: Record = future.result(timeout=self.patience)
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

    def _workers_come(self) -> bool:
        try:
            self._client.wait_for_workers(1, timeout=self.patience)
        except (TimeoutError, OSError):
            return False
        return True

    def _threads(self) -> int:
        """Threads of all workers there are; 0 if the scheduler does not answer."""
        try:
            return sum(self._client.nthreads().values())
        except (OSError, CancelledError):
            return 0

    def _begin_anew(self) -> None:
        self.__exit__()
        try:
            self.__enter__()
        except ClusterError as error:
            raise IncompleteError(f"{error}; the same command goes on from here") from None


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
