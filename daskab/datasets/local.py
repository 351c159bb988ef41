"""Where the files of a data set lie on this machine: found by their checksum, whatever they are called.

Only files of the right size are read: of a packed one, that of its content stands in its last four bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from platformdirs import user_cache_path

from daskab.datasets.registry import Entry, File
from daskab.errors import DataError

PACKED = b"\x1f\x8b"


def folders() -> list[Path]:
    """Where data is looked for: ``DASKAB_DATA``, if it is set, and what was fetched."""
    given = os.environ.get("DASKAB_DATA")
    if given and not Path(given).is_dir():
        raise DataError(f"DASKAB_DATA: {given} is not a folder")
    return [*([Path(given)] if given else []), fetched()]


def fetched() -> Path:
    """Where fetched files are kept."""
    return user_cache_path("daskab") / "data"


def find(files: Iterable[File]) -> dict[File, Path]:
    """The files that are on this machine, each with a path where it lies."""
    missing, found = set(files), dict[File, Path]()
    for path in _every_file():
        if not missing:
            break
        sizes = _sizes(path)
        candidates = {file for file in missing if {file.bytes, file.served_bytes} & sizes}
        if candidates:
            checksums = _checksums(path)
            for file in candidates:
                if file.checksums & checksums:
                    found[file] = path
                    missing.discard(file)
    return found


def contents(entry: Entry) -> dict[str, bytes]:
    """Every file of a data set, unpacked.

    Raises
    ------
    DataError
        If one is not on this machine: where it was looked for, and how it is got.
    """
    found = find(entry.files)
    for file in entry.files:
        if file not in found:
            raise DataError(f"{entry.name}: {file.name} {_whereabouts(file)}; {_remedy(entry, file)}")
    return {file.name: unpacked(path) for file, path in found.items()}


def unpacked(path: Path) -> bytes:
    """The content of a file, packed with gzip or not; DataError if it is damaged."""
    content = path.read_bytes()
    if not content.startswith(PACKED):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path}: cannot be unpacked; it is damaged or cut short") from None


def _every_file() -> Iterator[Path]:
    for folder in folders():
        for inside, below, names in os.walk(folder):
            below.sort()
            yield from (Path(inside, name) for name in sorted(names))


def _sizes(path: Path) -> set[int | None]:
    """Of a file as it lies there, and of what is packed in it."""
    try:
        status = path.stat()
        sizes: set[int | None] = {status.st_size} if stat.S_ISREG(status.st_mode) else set()
        if sizes and path.suffix == ".gz":
            with open(path, "rb") as handle:
                handle.seek(-4, os.SEEK_END)
                sizes.add(int.from_bytes(handle.read(4), "little"))
        return sizes
    except OSError:  # a broken link, one that may not be read, less than four bytes
        return set()


def _checksums(path: Path) -> set[str | None]:
    try:
        return {hashlib.sha256(content).hexdigest() for content in (path.read_bytes(), unpacked(path))}
    except (OSError, DataError):
        return set()


def _whereabouts(file: File) -> str:
    names = {file.name, f"{file.name}.gz"}
    others = [path for path in _every_file() if path.name in names]
    where = " or ".join(str(folder) for folder in folders())
    if others:
        return f"is not in {where}: {others[0]} has its name, but another checksum (an edited or damaged copy)"
    return f"is not in {where}"


def _remedy(entry: Entry, file: File) -> str:
    if file.url is None:
        return f"it cannot be fetched: put it anywhere under DASKAB_DATA (sha256 {file.sha256})"
    return f"fetch it with: daskab data fetch {entry.name}"
