"""Where files are: on a disk, or under ``s3://`` on object storage; and how they are written whole.

A path on object storage is a `UPath`, which is used as a `Path` is. Only what is not the same there is here, and in
`run.lease`.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, cast

from daskab.errors import IncompleteError, JobError, one_line

AS_IT_IS: dict[str, Any] = {"use_listings_cache": False, "max_concurrency": 1}
"""Options of s3fs: what others write meanwhile is seen, and an object is read without asking for its size first."""

OF_S3 = {"botocore", "aiobotocore", "aiohttp"}
"""Packages with errors of their own for what is an OSError of a disk."""


def path_at(address: str | os.PathLike[str]) -> Path:
    """The path of an address.

    Raises
    ------
    JobError
        If it is on storage that is not known, or whose packages are not installed.
    """
    text = str(address)
    if "://" not in text:
        return Path(text)
    if not re.match("s3://[^/]", text):
        raise JobError(f"{text}: expected a path or s3://bucket/prefix")
    try:
        from upath import UPath

        path = UPath(text, **AS_IT_IS)
        path.fs  # noqa: B018  imports s3fs
    except ImportError:
        raise JobError(f"{text}: needs the packages s3fs and universal_pathlib: pip install 'daskab[s3]'") from None
    return cast("Path", path)


def on_s3(path: Path) -> bool:
    """Whether a path is on object storage."""
    return not isinstance(path, Path)


def s3(path: Path) -> tuple[Any, str]:
    """The file system of a path on object storage, and its name there."""
    there = cast("Any", path)
    return there.fs, there.path


def storage_options(path: Path) -> dict[str, Any] | None:
    """What zarr is given beside a path, to open it as `path_at` did."""
    return AS_IT_IS if on_s3(path) else None


@contextmanager
def reaching(path: Path) -> Iterator[None]:
    """Whatever object storage raises is an OSError that names the path; what a disk raises is as it was."""
    try:
        yield
    except Exception as error:
        foreign = type(error).__module__.partition(".")[0] in OF_S3 or str(error).startswith("Invalid endpoint")
        if not on_s3(path) or not (foreign or isinstance(error, OSError)) or getattr(error, "filename", None):
            raise
        raise OSError(errno.EIO, one_line(error), str(path)) from None


@contextmanager
def storage_of(run: Path) -> Iterator[None]:
    """Name a run in what the operating system says, which of a full disk names no file; nothing is sealed then."""
    try:
        with reaching(run):
            yield
    except OSError as error:
        where = error.filename or run
        raise IncompleteError(f"{where}: {error.strerror or error}; mend it, and the same command goes on") from None


def make_folder(path: Path) -> None:
    """Make a directory, unless it is there; object storage has none."""
    if not on_s3(path):
        path.mkdir(parents=True, exist_ok=True)


def stamp(path: Path) -> tuple[object, ...]:
    """What is another once a file was replaced."""
    if on_s3(path):
        fs, name = s3(path)
        return (fs.ukey(name),)
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_ino


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace a file; a crash at any point leaves the old one or the new one, flushed to disk. A link stays one."""
    raw = content.encode() if isinstance(content, str) else content
    # An object is always written whole; a device or pipe is written to, never replaced.
    if on_s3(path) or (path.exists() and not path.is_file()):
        path.write_bytes(raw)
        return
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as handle:
            handle.write(raw)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def remove_folder(folder: Path, aside: Path) -> None:
    """Remove a directory with all that is in it.

    A disk moves it to ``aside`` first, so that it is gone at once or is whole.
    """
    if on_s3(folder):
        fs, root = s3(folder)
        # What says that it is a run goes first, the lease that is held meanwhile stays.
        names = sorted((n for n in fs.find(root) if not n.endswith("/.lease")), key=lambda n: n.count("/"))
        for name in names:
            fs.rm_file(name)
        return
    aside.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    os.replace(folder, aside)
    shutil.rmtree(aside)


def copy_here(folder: Path, copy: Path, *without: str) -> None:
    """Copy a directory to one on a disk, which is made, ``without`` files of some names (patterns)."""
    if not on_s3(folder):
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(*without))
        return
    fs, root = s3(folder)
    names = [name for name in fs.find(root) if not any(fnmatch(name.rpartition("/")[2], w) for w in without)]
    fs.get(names, [str(copy / name.removeprefix(f"{root}/")) for name in names])
