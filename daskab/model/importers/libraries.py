"""Libraries that only their own importer needs, each an optional extra of daskab."""

from __future__ import annotations

import importlib
from typing import Any

from daskab.errors import ModelError, one_line


def library(name: str) -> Any:
    """The module of this name; ModelError where it is not installed. The extra is called like it, in lower case."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ModelError(
            f"{name}: cannot be imported here ({one_line(error)}); pip install 'daskab[{name.lower()}]'"
        ) from None


def named(thing: Any) -> str:
    """What a person calls an object of a library: by its class."""
    return type(thing).__name__
