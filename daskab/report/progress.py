"""Progress of runs: live bars on a terminal, one line every 30 s of each anywhere else. Written to standard error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from daskab.run.progress import Progress, SoFar
from daskab.run.records import Failure, Record
from daskab.run.stages import Outcome

LOG_EVERY = 30.0


class ProgressDisplay:
    """Shows the stages of the runs in progress; rich honours NO_COLOR and plain terminals.

    Parameters
    ----------
    console : default: standard error
    every : seconds between two lines of a run where the console is no terminal
    """

    def __init__(self, console: Console | None = None, every: float = LOG_EVERY) -> None:
        self.console = console or Console(stderr=True)
        self.every = every
        self.live: Bar | None = None

    def __enter__(self) -> Self:
        # FORCE_COLOR, which CI systems set, makes rich take any file for a terminal.
        if self.console.is_interactive and self.console.file.isatty():
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=None),  # what the rest leaves of the line
                MofNCompleteColumn(table_column=Column(no_wrap=True)),
                TextColumn("{task.fields[left]}"),
            )
            # What is printed elsewhere meanwhile must not end up here.
            self.live = Bar(*columns, console=self.console, transient=True, redirect_stdout=False)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the bars away meanwhile."""
        if self.live is not None:
            self.live.stop()
        yield
        if self.live is not None:
            self.live.start()

    def of(self, label: str) -> Progress:
        """Of the run that is called so."""
        return RunDisplay(self, label)


class RunDisplay(Progress):
    """Shows one of the runs."""

    def __init__(self, display: ProgressDisplay, label: str) -> None:
        self._display = display
        self._label = label
        self._bar: TaskID | None = None
        self._name = ""
        self._total = self._done = self._done_here = 0
        self._so_far: SoFar | None = None
        self._begun = 0.0
        self._logged: float | None = None

    def stage(self, name: str, total: int, done: int) -> None:
        """A stage begins."""
        self._name, self._total, self._done, self._done_here = name, total, done, 0
        self._begun = time.monotonic()
        self._show(at_once=True)

    def advance(self, record: Record) -> None:
        """A task is done."""
        self._done += 1
        self._done_here += 1
        self._show()

    def fail(self, failure: Failure) -> None:
        """A task could not be done: said at once, and for good."""
        self._say(f"{self._label}: {failure.task} {failure.why}; it is left out")

    def wait(self) -> None:
        """Nothing happens, which is shown as well: time goes by."""
        self._show()

    def known(self, so_far: SoFar) -> None:
        """What is certified has changed."""
        self._so_far = so_far
        self._show(at_once=True)

    def end(self, outcome: Outcome) -> None:
        """Its bar makes room."""
        if self._display.live is not None and self._bar is not None:
            self._display.live.remove_task(self._bar)

    def _show(self, *, at_once: bool = False) -> None:
        now, live = time.monotonic(), self._display.live
        parts = [f"{self._label}: {self._name}", *self._certified()]
        left = self._left(now)
        if live is not None:
            if self._bar is None:
                self._bar = live.add_task(self._label, total=None, left="")
            text = "\n  ".join([parts[0], ", ".join(parts[1:])]) if parts[1:] else parts[0]
            live.update(
                self._bar, description=text, completed=self._done, total=self._total, left=left, refresh=at_once
            )
        elif self._logged is None:
            self._logged = now  # compiling before the first stage does not count
        elif now - self._logged >= self._display.every:
            self._logged = now
            self._say(", ".join([*parts, f"{self._done} of {self._total} tasks", *filter(None, [left])]))

    def _certified(self) -> list[str]:
        if self._so_far is None:
            return []
        required, attack, open_inputs = self._so_far
        if required is None:
            return ["no attack exists", f"{open_inputs} inputs open"]
        return [f"{required} certified", f"attack {attack or 'none found'}", f"{open_inputs} inputs open"]

    def _left(self, now: float) -> str:
        """What the rest of the stage takes if it goes on as before; how many stages follow is not known."""
        if self._done_here == 0 or self._done == self._total:
            return ""
        left = (now - self._begun) / self._done_here * (self._total - self._done)
        return f"{timedelta(seconds=round(left))} left in stage"

    def _say(self, line: str) -> None:
        self._display.console.print(line, markup=False, emoji=False, highlight=False, soft_wrap=True)
