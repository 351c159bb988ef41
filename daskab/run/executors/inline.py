"""One task after another in this process, without Dask: the bit-exact reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from daskab.errors import DaskabError
from daskab.run.executors import Ended
from daskab.run.records import Assignment
from daskab.run.tasks import execute


class Inline:
    """Runs tasks where the caller is."""

    name = "inline"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[Ended]:
        """Do each task when its record is asked for."""
        for given in assignments:
            assert given is not None  # all that was given before has ended
            try:
                ended: Ended = given, execute(*given)
            except (DaskabError, OSError) as error:
                ended = given, error
            yield ended
