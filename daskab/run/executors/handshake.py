"""Before any work: whether every worker computes as this process does, and sees the run directory it would write to.

Workers that come later are held to the same by `workspace.worker_workspace`, which every task opens.
"""

from __future__ import annotations

import platform
import uuid
from collections.abc import Iterator
from typing import Any

from daskab.errors import ClusterError, one_line
from daskab.files import path_at, reaching
from daskab.run.executors.patience import patiently
from daskab.run.plan import numerics

PATIENCE = 300.0
"""Seconds until a worker must have answered: it imports daskab first, perhaps from a slow disk that all share."""


def versions() -> dict[str, str]:
    """All that two processes have to agree on to share a run."""
    major, minor, _ = platform.python_version_tuple()
    return {"python": f"{major}.{minor}", **numerics()}


def greet(probe: str) -> tuple[dict[str, str], str]:
    """On a worker: its versions, and what it reads in the probe; empty if it does not see it."""
    path = path_at(probe)
    try:
        with reaching(path):
            return versions(), path.read_text(encoding="utf-8")
    except OSError:
        return versions(), ""


def shake_hands(client: Any, folder: str) -> Iterator[None]:
    """Ask all workers of a cluster at once.

    Raises
    ------
    ClusterError
        Names the first that must not be given tasks of a run in ``folder``, and why.
    OSError
        If the scheduler is gone, or one of them does not answer.
    """
    token = uuid.uuid4().hex
    probe = path_at(folder) / f".probe-{token}"
    probe.write_text(token, encoding="utf-8")

    def ask() -> tuple[dict[str, Any], dict[str, int]]:
        return client.run(greet, str(probe), on_error="return"), client.nthreads()

    try:
        answers, there = yield from patiently(ask, PATIENCE)
    finally:
        probe.unlink(missing_ok=True)
    for worker, answer in sorted(answers.items()):
        # One that went away meanwhile is no matter; whoever comes in its place is checked by its first task.
        if worker in there:
            check_answer(worker, answer, token, folder)


def check_answer(worker: str, answer: Any, token: str, folder: str) -> None:
    """Raise ClusterError unless a worker may be given tasks."""
    if isinstance(answer, OSError):  # Dask hangs up on a worker that does not understand what it is asked
        raise ClusterError(f"worker {worker}: gave no answer; install daskab there, or look into its log")
    if isinstance(answer, BaseException):
        what = f"{type(answer).__name__}: {one_line(answer)}"
        raise ClusterError(f"worker {worker}: cannot run daskab ({what}); install it there")
    theirs, read = answer
    check_versions(f"worker {worker}", theirs)
    if read != token:
        raise ClusterError(f"worker {worker}: does not see {folder}; put runs where all workers can read and write")


def check_versions(who: str, theirs: dict[str, str]) -> None:
    """Raise ClusterError if another process computes with other versions than this one."""
    for name, here in versions().items():
        there = theirs.get(name, "none")
        if there != here:
            raise ClusterError(f"{who}: has {name} {there}, here it is {here}; install the same everywhere")
