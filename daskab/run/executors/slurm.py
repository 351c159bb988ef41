"""Workers as jobs of a SLURM cluster, asked for with dask-jobqueue; the scheduler runs in this process, over TLS."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
from distributed import Client
from distributed.security import Security

from daskab.errors import ClusterError, DaskabError, one_line
from daskab.run.cluster import ClusterOptions
from daskab.run.executors.cluster import Cluster
from daskab.run.executors.processes import SETTINGS, signals_held


class Slurm(Cluster):
    """Runs tasks in jobs; one that is cancelled or ends has a successor asked for."""

    name = "slurm"

    def __init__(self, options: ClusterOptions) -> None:
        super().__init__(options.patience)
        self.options = options

    def jobs(self, **how: Any) -> Any:
        """The cluster, of whose workers none is asked for yet.

        Raises
        ------
        DaskabError
            If dask-jobqueue is not installed.
        """
        try:
            from dask_jobqueue.slurm import SLURMCluster
        except ImportError:
            raise DaskabError("clusters of SLURM need dask-jobqueue: pip install 'daskab[slurm]'") from None
        o = self.options
        return SLURMCluster(
            cores=o.cores,
            processes=o.cores,  # of one thread each, as everywhere
            memory=o.memory,
            walltime=o.walltime,
            queue=o.queue,
            account=o.account,
            interface=o.interface,
            job_extra_directives=list(o.directives),
            log_directory=None if o.logs is None else str(o.logs),
            job_name="daskab",
            scheduler_options={"dashboard_address": "127.0.0.1:0"},
            worker_extra_args=["--dashboard-address", "127.0.0.1:0"],
            silence_logs=logging.CRITICAL,
            **how,
        )

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Ask for the jobs."""
        # The certificates of this one run go to its workers by files that only the user can read.
        how = {"security": Security.temporary(), "shared_temp_directory": str(Path.cwd()), "protocol": "tls://"}
        with dask.config.set(SETTINGS):
            try:
                with signals_held():
                    cluster = self.jobs(**how)
                    most = self.options.workers or 1
                    cluster.adapt(minimum=self.options.minimum or most, maximum=most)
            except (OSError, RuntimeError, ValueError) as error:
                raise ClusterError(f"SLURM: {one_line(error)}") from None
            with cluster, Client(cluster, set_as_default=False) as client:
                yield client
