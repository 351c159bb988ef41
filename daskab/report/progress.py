"""Progress of a run: a live bar on a terminal, one log line every 30 s anywhere else. Written to standard error."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from daskab.run.records import Failure, Record

LOG_EVERY = 30.0


class ProgressDisplay:
    """Shows the stages of a run; rich honours NO_COLOR and plain terminals."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._console = Console(stderr=True)
        self._live: Progress | None = None
        self._task = TaskID(0)
        self._name = ""
        self._total = self._done = self._open = 0
        self._logged: float | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            self._live = Progress(*columns, console=self._console, transient=True)
            self._live.start()
            self._task = self._live.add_task(self._label, total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def stage(self, name: str, total: int, done: int) -> None:
        """A stage begins."""
        self._name, self._total, self._done, self._open = name, total, done, 0
        self._show()

    def advance(self, record: Record) -> None:
        """A task is done."""
        self._done += 1
        self._open += record.left_open
        self._show()

    def fail(self, failure: Failure) -> None:
        """A task could not be done: said at once, and for good."""
        self._console.print(f"{self._label}: {failure.task} {failure.why}; it is left out", highlight=False)

    def _show(self) -> None:
        text = f"{self._label}: {self._name}" + (f", {self._open} sequences open" if self._open else "")
        if self._live is not None:
            self._live.update(self._task, description=text, completed=self._done, total=self._total)
        elif self._logged is None:
            self._logged = time.monotonic()  # compiling before the first stage does not count
        elif time.monotonic() - self._logged >= LOG_EVERY:
            self._logged = time.monotonic()
            print(f"{text}, {self._done} of {self._total} tasks", file=sys.stderr, flush=True)
