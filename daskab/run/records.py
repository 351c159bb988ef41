"""Records: one small file a finished batch, written after its chunks. A batch without one was not done."""

from __future__ import annotations

import json
import math
import platform
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from daskab.files import write_atomically
from daskab.run.plan import canonical_json

KEY = re.compile(
    r"((?P<once>contributions|attack|several|groups|pairs|fewest)|(?P<stage>round|joint|enhancement)-(?P<round>0|[1-9][0-9]*))"
    r"-(?P<index>[0-9]{6,})"
)
"""Of a task: its stage, which round of it if there are several, and which batch."""


@dataclass(frozen=True)
class Task:
    """A batch of one stage: what a Dask task carries, beside the address of the run."""

    stage: str
    """"contributions", "attack", "several", "round", "groups", "joint" or "enhancement"; "pairs" or "fewest" of a run
    that is made of others"""
    index: int  #: which block or batch
    round: int = 0  #: which round (of its stage) or enhancement

    @property
    def key(self) -> str:
        """Name of the task, unique in its run."""
        number = f"-{self.round}" if self.stage in ("round", "joint", "enhancement") else ""
        return f"{self.stage}{number}-{self.index:06d}"

    @classmethod
    def from_key(cls, key: str) -> Task:
        """The task of that name; a ValueError if none has it."""
        parts = KEY.fullmatch(key)
        if parts is None:
            raise ValueError(f"{key!r} is not the name of a task")
        return cls(parts["once"] or parts["stage"], int(parts["index"]), int(parts["round"] or 0))


class Assignment(NamedTuple):
    """A task of a run, as it is handed to a worker."""

    folder: str  #: of the run, as the worker sees it
    run_id: str
    task: Task


@dataclass(frozen=True)
class Record:
    """What is remembered of a finished batch: the digest of what it wrote, and how the work went."""

    task: str
    payload_sha256: str
    items: int  #: inputs, units or nodes worked on
    opened: int  #: nodes bounded
    left_open: int
    seconds: float  #: monotonic
    finished: str  #: UTC
    host: str

    @classmethod
    def of(cls, task: Task, digest: str, items: int, opened: int, left_open: int, seconds: float) -> Record:
        """Stamp a record with the time and place."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(task.key, digest, items, opened, left_open, round(seconds, 6), now, platform.node())


@dataclass(frozen=True)
class Failure:
    """A batch that could not be done. Nothing is stored of it: what it would have bounded stays unbounded."""

    task: str
    why: str


def write_record(folder: Path, record: Record) -> None:
    """Write a batch's record, atomically."""
    write_atomically(folder / f"{record.task}.json", canonical_json(asdict(record)))


def read_record(folder: Path, task: Task) -> Record | None:
    """A batch's record; None where there is none or it is not readable as one (the batch runs again)."""
    try:
        record = Record(**json.loads((folder / f"{task.key}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    counts = (record.items, record.opened, record.left_open)
    texts = (record.payload_sha256, record.finished, record.host)
    whole = all(isinstance(count, int) for count in counts) and all(isinstance(text, str) for text in texts)
    whole = whole and isinstance(record.seconds, int | float) and math.isfinite(record.seconds)
    return record if whole and record.task == task.key else None


def records_in(folder: Path) -> list[Record]:
    """The records in a folder, in order of their tasks."""
    found = (read_record(folder, task) for task in recorded(folder))
    return [record for record in found if record is not None]


def recorded(folder: Path) -> list[Task]:
    """The tasks that a folder holds records of, in order. What else is in it is none of ours."""
    tasks = []
    for path in sorted(folder.glob("*.json")):
        with suppress(ValueError):
            tasks.append(Task.from_key(path.stem))
    return tasks
