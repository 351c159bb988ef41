"""A Dask cluster of local processes, one thread each."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from multiprocessing import resource_tracker
from typing import Any, Self

import dask
from distributed import Client, LocalCluster, as_completed

from daskab.run.records import Record, Task
from daskab.run.tasks import execute

IN_FLIGHT = 4
"""Tasks handed to the scheduler for each thread: enough to keep it fed, few enough to stop quickly."""

SETTINGS = {
    # Tasks are of even size and name nothing they need moved, so stealing only costs.
    "distributed.scheduler.work-stealing": False,
    # The default waits for ever for a worker that may never come.
    "distributed.scheduler.no-workers-timeout": "60s",
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

    def run(self, folder: str, run_id: str, tasks: Iterable[Task]) -> Iterator[Record]:
        """Keep a bounded number of tasks with the scheduler and yield records as they finish."""
        waiting = iter(tasks)
        threads = sum(self._client.nthreads().values()) or 1
        first = [self._submit(folder, run_id, t) for t in islice(waiting, IN_FLIGHT * threads)]
        running = as_completed(first, loop=self._client.loop)
        for future in running:
            record = future.result()
            for task in islice(waiting, 1):
                running.add(self._submit(folder, run_id, task))
            yield record

    def _submit(self, folder: str, run_id: str, task: Task) -> Any:
        # Dask returns an old result for an old key whatever the arguments, so the key carries the run too.
        return self._client.submit(execute, folder, run_id, task, key=f"{run_id}-{task.key}", pure=False)
