"""Where tasks run. Every executor has one shape: a context manager whose ``run`` yields records as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Protocol, Self

from daskab.errors import DaskabError
from daskab.run.cluster import ClusterOptions
from daskab.run.records import Assignment, Failure, Record

Ended = tuple[Assignment, Record | Failure | DaskabError | OSError]
"""A task that is done, cannot be done, or found something that its run cannot go on with."""


class Executor(Protocol):
    """Runs independent tasks, in any order."""

    name: str  #: as in a job's ``[cluster]`` table

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[Ended | None]:
        """Yield each task with its record when it is done; stop starting tasks when the caller stops asking.

        None among the assignments says that more may come once some of those given have ended. A task that cannot be
        done is a failure, and one may come with an error of its own; the others are done all the same. None comes every
        second or so while there is nothing to tell, so that a caller who must stop can.
        """
        ...


def executor(options: ClusterOptions) -> Executor:
    """Make the executor of a kind of cluster."""
    match options.kind:
        case "inline":
            from daskab.run.executors.inline import Inline

            return Inline()
        case "processes":
            from daskab.run.executors.processes import Processes

            return Processes(options.workers, options.patience)
        case "slurm":
            from daskab.run.executors.slurm import Slurm

            return Slurm(options)
        case "kubernetes":
            from daskab.run.executors.kubernetes import Kubernetes

            return Kubernetes(options)
        case "address":
            from daskab.run.executors.address import Address

            return Address(options)
