"""The log of a run: one JSON object a line, for whatever collects logs.

Each has its ``time`` (UTC), ``event`` and, where they are known, ``model`` and ``run`` (its id). Events: begun, resumed
or found; stage; task; failure; known (what is certified so far); sealed or not sealed; error.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from daskab.run.progress import Begun, Progress, SoFar
from daskab.run.records import Failure, Record
from daskab.run.stages import Outcome


class Log:
    """Appends to a file; ``-`` is standard error, None is no log.

    Raises
    ------
    OSError
        If the file cannot be opened. A log that can no longer be written later, on a full disk, is given up with
        one line: the run is worth more.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        # Unbuffered: a line is one write, so those of several processes do not mix, and nothing is lost with one.
        self._file = None if path in (None, "-") else open(str(path), "ab", buffering=0)
        self._on = path is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with suppress(OSError):  # said when it was written to
                self._file.close()

    def of(self, model: str) -> Progress:
        """Of the run of a model."""
        return RunLog(self, model)

    def error(self, code: int, message: str) -> None:
        """The command ends with an error."""
        self.write("error", exit_code=code, message=message)

    def write(self, event: str, **said: object) -> None:
        """Append a line, unless the log is off."""
        if not self._on:
            return
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": time, "event": event, **said}) + "\n"
        try:
            if self._file is None:
                sys.stderr.write(line)
                sys.stderr.flush()
            else:
                self._file.write(line.encode())
        except OSError as error:
            self._on = False
            with suppress(OSError):
                print(f"daskab: {self.path}: {error.strerror}; the log ends here, the run goes on", file=sys.stderr)


class RunLog(Progress):
    """Logs one of the runs."""

    def __init__(self, log: Log, model: str) -> None:
        self._log = log
        self._about: dict[str, object] = {"model": model}

    def begin(self, run_id: str, how: Begun) -> None:
        """The run is begun, resumed or found."""
        self._about["run"] = run_id
        self._write(how)

    def stage(self, name: str, total: int, done: int) -> None:
        """A stage begins."""
        self._write("stage", stage=name, total=total, done=done)

    def advance(self, record: Record) -> None:
        """A task is finished."""
        names = ("task", "seconds", "host", "opened", "left_open")
        self._write("task", **{name: getattr(record, name) for name in names})

    def fail(self, failure: Failure) -> None:
        """A task could not be done."""
        self._write("failure", **asdict(failure))

    def known(self, so_far: SoFar) -> None:
        """What is certified has changed."""
        self._write("known", **so_far._asdict())

    def end(self, outcome: Outcome) -> None:
        """The run has an outcome."""
        names = ("inputs_required", "attack_inputs", "no_attack_exists", "exact", "complete")
        said = {name: getattr(outcome.certificate, name) for name in names}
        event = "sealed" if outcome.sealed else "not sealed"
        self._write(event, folder=str(outcome.folder), **said, failures=len(outcome.failures))

    def _write(self, event: str, **said: object) -> None:
        self._log.write(event, **self._about, **said)
