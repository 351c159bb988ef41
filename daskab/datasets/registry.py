"""What is known of each data set before any file of it is opened: ``datasets.toml``, which comes with daskab."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from daskab.errors import DataError

REGISTRY: Traversable = files("daskab.datasets").joinpath("datasets.toml")


class Facts(BaseModel):
    """A table of ``datasets.toml``, where the fields are explained."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class File(Facts):
    """A file of a data set: size and SHA-256 of its content, and of what its address serves where that differs."""

    name: str
    bytes: int
    sha256: str
    url: str | None = None
    served_bytes: int | None = None
    served_sha256: str | None = None

    @property
    def checksums(self) -> set[str | None]:
        """Of content that is this file's: all of them hold the same data."""
        return {self.sha256, self.served_sha256}


class Columns(Facts):
    """Neighbouring inputs that have type, unit and values in common."""

    type: Literal["real", "integer", "categorical"]
    names: tuple[str, ...] = ()
    prefix: str = ""
    count: int = 0
    unit: str = ""
    range: tuple[float, float] | None = None
    values: tuple[float, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, given: dict[str, object]) -> dict[str, object]:
        names = given.get("names")
        if isinstance(names, list):
            return {"count": len(names), **given}
        if "prefix" in given:
            return {"names": [f"{given['prefix']}{i + 1}" for i in range(int(str(given["count"])))], **given}
        return given

    @property
    def edges(self) -> tuple[float, float] | None:
        """The least and the most that these inputs can be, where that is known."""
        return (min(self.values), max(self.values)) if self.values else self.range


class Entry(Facts):
    """A data set."""

    name: str
    title: str
    source: str
    licence: str
    citation: str
    format: Literal["bundled", "made", "idx", "spaces", "commas", "csv", "arff"]
    rows: int
    duplicates: int
    classes: dict[str, str]
    counts: tuple[int, ...]
    columns: tuple[Columns, ...]
    files: tuple[File, ...] = ()
    image: tuple[int, int] | None = None
    traps: tuple[str, ...] = ()

    @property
    def n_inputs(self) -> int:
        """D."""
        return sum(columns.count for columns in self.columns)

    @property
    def class_names(self) -> tuple[str, ...]:
        """In the order of ``counts``."""
        return tuple(self.classes.values())

    @property
    def edges(self) -> tuple[tuple[float, float], ...] | None:
        """The least and the most that each input can be, where that is known of all."""
        edges = [(columns.edges, columns.count) for columns in self.columns]
        if any(pair is None for pair, _ in edges):
            return None
        return tuple(pair for pair, count in edges if pair is not None for _ in range(count))


@cache
def known() -> dict[str, Entry]:
    """Every data set by its name."""
    tables = tomllib.loads(REGISTRY.read_text(encoding="utf-8"))
    return {name: Entry(name=name, **facts) for name, facts in tables.items()}


def entry(name: str) -> Entry:
    """The data set of a name; DataError if there is none."""
    if name not in known():
        close = difflib.get_close_matches(name, known(), n=1)
        what = f"did you mean {close[0]}?" if close else f"known: {', '.join(known())}"
        raise DataError(f"{name!r} is not a data set; {what}")
    return known()[name]
