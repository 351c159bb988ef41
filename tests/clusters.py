"""Real Dask schedulers and workers for tests, each a process of its own on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from examples import ask, environment, mixed_model

import daskab
from daskab.run.cluster import ClusterOptions
from daskab.run.executors import Executor
from daskab.run.executors.address import Address
from daskab.run.executors.cluster import Cluster
from daskab.run.job import bound_options
from daskab.run.records import Assignment, Failure, Record
from daskab.run.stages import Outcome

MODEL = mixed_model(20, 8)
OPTIONS = bound_options(method="fixed", slices=12)
CUT = (36, 6, 60)
"""A run of some fifty tasks that take some seconds."""


def answer(executor: Executor, runs: Path) -> Outcome:
    """That run, on a cluster."""
    with executor:
        return ask(MODEL, OPTIONS, runs, executor, cut=CUT)


class During:
    """Runs tasks as another does, and does something once when a number of records of the long stage have come."""

    def __init__(self, inner: Cluster, what: dict[int, Callable[[], object]]) -> None:
        self.inner = inner
        self.what = what
        self.name = inner.name
        self.came = 0

    def __enter__(self) -> Self:
        self.inner.__enter__()
        return self

    def __exit__(self, *how: object) -> None:
        self.inner.__exit__(*how)

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[tuple[Assignment, Record | Failure] | None]:
        for ended in self.inner.run(assignments):
            if ended is not None and isinstance(ended[1], Record) and ended[0].task.stage == "round":
                self.came += 1
                self.what.get(self.came, lambda: None)()
            yield ended


class RunningCluster:
    """A scheduler at one port, and workers, begun and killed one by one."""

    def __init__(self, folder: Path, tls: Path | None = None) -> None:
        self.folder = folder
        self.tls = tls  #: folder of certificates
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"{'tcp' if tls is None else 'tls'}://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.begin_scheduler()

    def begin_scheduler(self) -> subprocess.Popen[bytes]:
        where = ("--host", "127.0.0.1", "--port", str(self.port), "--protocol", self.address.partition(":")[0])
        self.scheduler = self._begin("scheduler", *where, "--dashboard-address", "127.0.0.1:0", "--no-show")
        return self.scheduler

    def begin_worker(self, path: Path | None = None, before: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """A worker of one thread; it finds what is in ``path`` before daskab, and is begun by what is ``before``."""
        # Without a nanny the process is the worker, which can be stopped and killed by its id.
        options = (
            "--nthreads",
            "1",
            "--no-nanny",
            "--dashboard-address",
            "127.0.0.1:0",
            "--local-directory",
            str(self.folder),
        )
        return self._begin("worker", self.address, *options, path=path, before=before)

    def _begin(
        self, what: str, *args: str, path: Path | None = None, before: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        if self.tls is not None:
            files = self.tls / "ca.pem", self.tls / f"{what}.pem", self.tls / f"{what}-key.pem"
            args += tuple(f"--tls-{name}={file}" for name, file in zip(("ca-file", "cert", "key"), files, strict=True))
        env = environment()
        if path is not None:
            env["PYTHONPATH"] = f"{path}{os.pathsep}{env['PYTHONPATH']}"
        with open(self.folder / f"{what}-{len(self.processes)}.log", "wb") as log:
            process = subprocess.Popen(
                [*before, sys.executable, "-m", f"distributed.cli.dask_{what}", *args],
                stdout=log,
                stderr=log,
                env=env,
                cwd=self.folder,
            )
        self.processes.append(process)
        return process

    def options(self, tls: Path | None = None) -> ClusterOptions:
        """Of daskab, to run tasks here, with certificates from elsewhere if wanted."""
        tls = tls or self.tls
        given: dict[str, str] = {"kind": "address", "address": self.address}
        if tls is not None:
            names = {"ca": "ca", "certificate": "client", "key": "client-key"}
            given |= {name: str(tls / f"{file}.pem") for name, file in names.items()}
        return ClusterOptions.model_validate(given)

    def executor(self) -> Address:
        """Of daskab, that runs tasks here."""
        return Address(self.options())

    def close(self) -> None:
        """End what was begun."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@contextmanager
def running_cluster(folder: Path, workers: int, tls: Path | None = None) -> Iterator[RunningCluster]:
    """A scheduler with so many workers, over TLS if there are certificates."""
    cluster = RunningCluster(folder, tls)
    try:
        for _ in range(workers):
            cluster.begin_worker()
        yield cluster
    finally:
        cluster.close()


def other_daskab(folder: Path, version: str) -> Path:
    """A folder to import daskab from that is of another version."""
    package = Path(daskab.__file__).parent
    shutil.copytree(package, folder / "daskab", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "daskab" / "_version.py").write_text(f'VERSION = "{version}"\n')
    return folder


def freeze(process: subprocess.Popen[bytes]) -> None:
    """Stop a process in its tracks."""
    process.send_signal(signal.SIGSTOP)


def thaw(process: subprocess.Popen[bytes]) -> None:
    """Let it go on."""
    process.send_signal(signal.SIGCONT)
