"""The one way daskab compiles a numerical kernel: cached, GIL-free, strict IEEE arithmetic, single-threaded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from filelock import FileLock, Timeout
from numba.core import config
from platformdirs import user_cache_path

P = ParamSpec("P")
R = TypeVar("R")

# fastmath is off because the rounding proofs count every operation in the order written, and parallel is off
# because parallel workers are Dask's business.
OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy", "fastmath": False, "parallel": False}


def _source_hash() -> str:
    h = hashlib.sha256()
    here = Path(__file__).parent
    of_rooms = (source for room in ("bound", "attack", "joint") for source in sorted((here / room).rglob("*.py")))
    for source in (here / "_compile.py", here / "_elementary.py", *of_rooms):
        h.update(f"{source.relative_to(here).as_posix()}\n".encode())
        h.update(source.read_bytes())
    return h.hexdigest()


TURN = 120.0
"""Seconds to wait for another process to compile a kernel, before compiling it here as well."""

SOURCE_HASH = _source_hash()
"""SHA-256 over the source of everything that computes a bound or an attack."""


def _cache_folder() -> str:
    base = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(base) if base else user_cache_path("daskab")
    return str(folder / f"kernels-{SOURCE_HASH[:16]}")


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    # numba recompiles a cached function when its own file changes, but not when a function it calls does.
    # A bound from a stale kernel could be wrong, so the cache's folder is named after all of the source.
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = folder = _cache_folder()
    try:
        dispatcher = numba.njit(**OPTIONS, **options)(function)
    finally:
        settings.CACHE_DIR = before
    # The first workers of a cluster all want the same kernels at once: one compiles, the others find what it kept.
    lock = FileLock(Path(folder) / f"{function.__module__}.{function.__qualname__}.lock", thread_local=False)
    compile_now = dispatcher.compile

    def compile_in_turn(signature: object) -> object:
        with _turn(lock):
            return compile_now(signature)

    dispatcher.compile = compile_in_turn
    return cast("Callable[P, R]", dispatcher)


@contextmanager
def _turn(lock: FileLock) -> Iterator[None]:
    """Wait for one's turn; where it does not come, or files cannot be locked, go on without."""
    with suppress(Timeout, OSError, NotImplementedError):
        Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=TURN)
    try:
        yield
    finally:
        lock.release()


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function over flat float64 arrays with numba; to the type checker it stays what it was."""
    return _compiled(function)


def inner_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that allocates nothing: without numba's reference counting, so that it cannot."""
    return _compiled(function, _nrt=False)


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `inner_kernel`, but made part of its only caller: LLVM works on a callee again in every caller above it."""
    return _compiled(function, _nrt=False, inline="always")
