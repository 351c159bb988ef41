"""A Dask cluster of local processes, one thread each."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

import dask
from distributed import Client, LocalCluster

from daskab.errors import ClusterError, one_line
from daskab.run.cluster import PATIENCE
from daskab.run.executors.cluster import Cluster

SETTINGS = {
    # Tasks are of even size and name nothing they need moved, so stealing only costs.
    "distributed.scheduler.work-stealing": False,
    # A task that was with two workers when they died is set aside and tried alone.
    "distributed.scheduler.allowed-failures": 1,
    # Where workers come and go with the work: the scheduler sees no more of it than what is in flight, some four
    # seconds a thread. With Dask's own five seconds it would never ask for more workers.
    "distributed.adaptive.target-duration": "1s",
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


class Processes(Cluster):
    """Runs tasks on a LocalCluster of its own."""

    name = "processes"

    def __init__(self, workers: int | None = None, patience: float = PATIENCE) -> None:
        super().__init__(patience)
        self.workers = workers or os.cpu_count() or 1

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Begin the cluster."""
        with dask.config.set(SETTINGS):
            with signals_held():
                try:
                    cluster = LocalCluster(
                        n_workers=self.workers,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address="127.0.0.1:0",  # None is port 8787, and a warning where that is taken
                        host="127.0.0.1",
                        silence_logs=logging.CRITICAL,
                    )
                except RuntimeError as error:  # one of them was killed while it started
                    raise ClusterError(f"processes: cannot be started ({one_line(error)})") from None
                with_client = Client(cluster, set_as_default=False)
            with cluster, with_client as client:
                yield client
