"""Faults on purpose: a store whose writes fail, tear or vanish, and an executor that loses, repeats, shuffles tasks."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import pytest
from zarr.core.buffer import Buffer, default_buffer_prototype
from zarr.storage import LocalStore

from daskab.errors import IncompleteError
from daskab.run import driver, records, workspace
from daskab.run.executors.inline import Inline
from daskab.run.records import Assignment, Failure, Record
from daskab.run.tasks import execute

WRITES = ("disk full", "killed before", "killed after", "torn", "vanished")
"""What may become of a write: it fails; the process dies just before or after it; or nobody notices that half of it
is there, or nothing."""

ENDS = ("killed", "interrupted", "no workers")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "flipped": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "deleted": lambda path: path.unlink(),
}
"""What may become of a file at rest."""


def flipped(content: bytes) -> bytes:
    """With one bit in the middle turned over, if there is one."""
    middle = len(content) // 2
    return content[:middle] + bytes(byte ^ 4 for byte in content[middle : middle + 1]) + content[middle + 1 :]


class Killed(BaseException):
    """In the place of the death of a process: nothing in the code under test may catch it."""


class FaultyStore:
    """Lets the n-th write from now on go wrong, into zarr's store or of a file of the run."""

    def __init__(self, number: int, how: str) -> None:
        self.left = number
        self.how = how

    def next_goes_wrong(self) -> bool:
        """Whether this write does; some of the ways end here."""
        self.left -= 1
        if self.left != 0:
            return False
        if self.how == "disk full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.how == "killed before":
            raise Killed
        return True

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While the context lives."""
        faults, into_store, into_file = self, LocalStore.set, records.write_atomically

        async def set_faulty(store: LocalStore, key: str, value: Buffer) -> None:
            if not faults.next_goes_wrong():
                return await into_store(store, key, value)
            if faults.how == "torn":
                half = value.to_bytes()[: len(value) // 2]
                return await into_store(store, key, default_buffer_prototype().buffer.from_bytes(half))
            if faults.how == "killed after":
                await into_store(store, key, value)
                raise Killed
            return None

        def write_faulty(path: Path, text: str) -> None:
            wrong = faults.next_goes_wrong()
            if not wrong or faults.how == "killed after":
                into_file(path, text)
            elif faults.how == "torn":
                into_file(path, text[: len(text) // 2])
            if wrong and faults.how == "killed after":
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LocalStore, "set", set_faulty)
            for module in (records, driver, workspace):
                patch.setattr(module, "write_atomically", write_faulty)
            yield


class FaultyExecutor(Inline):
    """Does tasks in any order, some twice, gives some up, and comes to an end after a number of them."""

    name = "faulty"

    def __init__(self, seed: int, *, fails: float, repeats: float, most: int, end: str) -> None:
        self.random = random.Random(seed)
        self.fails = fails
        self.repeats = repeats
        self.most = most
        self.end = end

    def run(  # type: ignore[override]
        self, assignments: Iterable[Assignment | None]
    ) -> Iterator[tuple[Assignment, Record | Failure]]:
        stream = iter(assignments)
        while wanted := list(takewhile(lambda given: given is not None, stream)):
            self.random.shuffle(wanted)
            for given in wanted:
                assert given is not None
                if self.most == 0:
                    ends = {"killed": Killed(), "interrupted": KeyboardInterrupt()}
                    raise ends.get(self.end, IncompleteError("lost"))
                self.most -= 1
                if self.random.random() < self.fails:
                    yield given, Failure(given.task.key, "on purpose")
                    continue
                record = execute(*given)
                if self.random.random() < self.repeats:
                    record = execute(*given)
                yield given, record
