"""Parameters that click takes too lightly: numbers that are not finite, file names that are empty, and directories
that are not on a disk."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from daskab.files import path_at


class Finite(click.FloatRange):
    """A number in a range, in which click would also let NaN and, without an upper end, infinity be."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class FilePath(click.Path):
    """A path. An empty one, as of a variable that is not set, is not taken for the working directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if value == "":
            self.fail("it is empty.", param, ctx)
        return super().convert(value, param, ctx)


class Folder(FilePath):
    """A directory on a disk, or on object storage, of which click knows nothing."""

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(exists=exists, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path of what was given."""
        return path_at(value) if "://" in str(value) else super().convert(value, param, ctx)
