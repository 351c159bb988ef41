"""Files that are never seen half-written: a temporary name, flushed to disk, then moved into place."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace a file by ``text``; a crash at any point leaves the old file or the new one. A link stays one."""
    if path.exists() and not path.is_file():  # a device or pipe is written to, never replaced
        path.write_text(text, encoding="utf-8")
        return
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
