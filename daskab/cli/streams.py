"""Standard output and error whose reader may be gone: what is said then is lost, the work and its exit code are not."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Heedless(io.FileIO):
    """Takes whatever is written to it, although it be a pipe that nobody reads any more."""

    def write(self, data: ReadableBuffer) -> int:
        """Write, or seem to."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


@contextmanager
def heedless_streams() -> Iterator[None]:
    """Keep a closed or broken standard stream from ending what is done meanwhile."""
    before: tuple[TextIO | None, TextIO | None] = sys.stdout, sys.stderr
    now = heedless(sys.stdout), heedless(sys.stderr)
    sys.stdout, sys.stderr = now
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream, was in zip(now, before, strict=True):
            with suppress(OSError):  # of a full disk, say, which was said when it was written to
                stream.close() if was is None else stream.flush()  # a logger may keep one over a file


def heedless(stream: TextIO | None) -> TextIO:
    """A stream over the same file; over none where it was closed when Python began, which then has None for it."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    try:
        file = Heedless(stream.fileno(), "w", closefd=False)
    except OSError:  # what stands in for a stream has no file
        return stream
    stream.flush()
    return io.TextIOWrapper(io.BufferedWriter(file), stream.encoding, stream.errors, line_buffering=True)
