"""A Dask cluster of local processes, one thread each."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from multiprocessing import resource_tracker
from typing import Any, Self

import dask
from distributed import Client, KilledWorker, LocalCluster, as_completed
from distributed.scheduler import NoWorkerError

from daskab.errors import IncompleteError
from daskab.run.records import Failure, Record, Task
from daskab.run.tasks import execute

IN_FLIGHT = 4
"""Tasks handed to the scheduler for each thread: enough to keep it fed, few enough to stop quickly."""

PATIENCE = "60s"
"""For a worker to come, or to come back."""

CLUSTERS = 3
"""Begun for one stage, if the workers of one are all lost."""

SETTINGS = {
    # Tasks are of even size and name nothing they need moved, so stealing only costs.
    "distributed.scheduler.work-stealing": False,
    # A task that was with two workers when they died is set aside and tried alone.
    "distributed.scheduler.allowed-failures": 1,
    # The default waits for ever for a worker that may never come.
    "distributed.scheduler.no-workers-timeout": PATIENCE,
    # Kernels are single-threaded; a nanny pins the BLAS threads but does not know of numba.
    "distributed.nanny.pre-spawn-environ.NUMBA_NUM_THREADS": "1",
}


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back; threads and processes started meanwhile never see them.

    A terminal or scheduler sends them to every process of a job, and a worker would answer with a traceback.
    Only the client stops; then it stops its workers. What came meanwhile reaches it at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # before Python 3.13, starting it lifts the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Processes:
    """Runs tasks on a LocalCluster that lives as long as the context."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(dask.config.set(SETTINGS))
            with signals_held():
                cluster = LocalCluster(
                    n_workers=os.cpu_count() or 1,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address="127.0.0.1:0",  # None is port 8787, and a warning where that is taken
                    host="127.0.0.1",
                    silence_logs=logging.ERROR,
                )
                stack.enter_context(cluster)
                self._client: Any = stack.enter_context(Client(cluster, set_as_default=False))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, folder: str, run_id: str, tasks: Iterable[Task]) -> Iterator[Record | Failure]:
        """Keep a bounded number of tasks with the scheduler and yield records as they finish.

        A nanny gives up on a worker that dies before it has told that it is up. If that has left none, the cluster
        is begun anew with what is not done.
        """
        waiting = iter(tasks)
        for _ in range(CLUSTERS):
            lost: list[Task] = []
            yield from self._run(folder, run_id, waiting, lost)
            if not lost:
                return
            waiting = chain(lost, waiting)
            self._begin_anew()
        raise IncompleteError(f"no worker came in {PATIENCE}, {CLUSTERS} times; the same command goes on from here")

    def _run(self, folder: str, run_id: str, waiting: Iterator[Task], lost: list[Task]) -> Iterator[Record | Failure]:
        """One cluster's part of `run`; tasks that no worker was left for end in ``lost``.

        A task that two workers died with may be innocent: others were with them. It is tried again at the end, by
        itself; if that kills two more, it is the culprit.
        """
        threads = sum(self._client.nthreads().values()) or 1
        names: dict[str, Task] = {}

        def submit(task: Task, name: str) -> Any:
            # Dask returns an old result for an old key whatever the arguments, so the key carries the run too.
            future = self._client.submit(execute, folder, run_id, task, key=f"{run_id}-{name}", pure=False)
            names[future.key] = task
            return future

        first = [submit(task, task.key) for task in islice(waiting, IN_FLIGHT * threads)]
        running = as_completed(first, loop=self._client.loop)
        suspects = []
        for future in running:
            record = None
            try:
                record = future.result()
            except KilledWorker:
                suspects.append(names[future.key])
            except NoWorkerError:
                lost.append(names[future.key])
            for task in islice(waiting, 0 if lost else 1):
                running.add(submit(task, task.key))
            if record is not None:
                yield record
        if lost:
            lost.extend(suspects)
            return
        for task in suspects:
            try:
                yield submit(task, f"{task.key}-alone").result()
            except (KilledWorker, NoWorkerError):
                yield Failure(task.key, "killed every worker it was given to, alone as well")
                if not self._client.nthreads():
                    self._begin_anew()

    def _begin_anew(self) -> None:
        self.__exit__()
        self.__enter__()
