"""Ctrl-C and SIGTERM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from daskab.run.progress import Progress
from daskab.run.records import Record


class Signals(Progress):
    """Ctrl-C and SIGTERM: heeded at once, but in the midst of a run between two of its tasks.

    An exception in the midst of a task leaves zarr with half its work done, and is lost where Python calls
    back. A second signal is always heeded at once.
    """

    def __init__(self) -> None:
        self.caught: list[int] = []
        self.between_tasks = False

    def handle(self, signum: int, frame: object) -> None:
        """Called by Python when a signal comes."""
        self.caught.append(signum)
        if len(self.caught) > 1 or not self.between_tasks:
            raise KeyboardInterrupt

    def heed(self) -> None:
        """Stop here if a signal came."""
        if self.caught:
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        self.between_tasks = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.between_tasks = False
        if kind is None:
            self.heed()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Heed them at once meanwhile, as nothing is begun that must be ended well."""
        self.heed()
        self.between_tasks = False
        try:
            yield
        finally:
            self.between_tasks = True

    def stage(self, name: str, total: int, done: int) -> None:
        """A stage begins."""
        self.heed()

    def advance(self, record: Record) -> None:
        """A task is done."""
        self.heed()

    def wait(self) -> None:
        """Nothing happens."""
        self.heed()


signals = Signals()
