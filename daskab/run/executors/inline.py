"""One task after another in this process, without Dask: the bit-exact reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from daskab.run.records import Record, Task
from daskab.run.tasks import execute


class Inline:
    """Runs tasks where the caller is."""

    name = "inline"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def run(self, folder: str, run_id: str, tasks: Iterable[Task]) -> Iterator[Record]:
        """Do each task when its record is asked for."""
        for task in tasks:
            yield execute(folder, run_id, task)
