"""Libraries that only their own importer needs, each an optional extra of daskab."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from daskab.errors import ModelError, one_line
from daskab.model.kernels import KernelName


def library(name: str) -> Any:
    """The module of this name; ModelError where it is not installed. The extra is called like it, in lower case."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ModelError(
            f"{name}: cannot be imported here ({one_line(error)}); pip install 'daskab[{name.lower()}]'"
        ) from None


@contextmanager
def reading() -> Iterator[None]:
    """Whatever the parts of a model that is of a class of one's own raise is a ModelError."""
    try:
        yield
    except ModelError:
        raise
    except (AttributeError, TypeError, ValueError, LookupError, RuntimeError) as error:
        raise ModelError(f"model: cannot be read ({one_line(error)})") from error


def named(thing: Any) -> str:
    """What a person calls an object of a library: by its class."""
    return type(thing).__name__


def kernel_name(kernel: Any, known: Mapping[type, KernelName]) -> KernelName:
    """What daskab calls a kernel of a library; ModelError if it is not of these classes, but of a subclass perhaps."""
    if type(kernel) not in known:
        *others, last = (kind.__name__ for kind in known)
        raise ModelError(
            f"kernel: {named(kernel)} is not supported; daskab certifies one {', '.join(others)} or {last}"
        )
    return known[type(kernel)]
