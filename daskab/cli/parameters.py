"""Parameters that click takes too lightly: numbers that are not finite, and file names that are empty."""

from __future__ import annotations

import math
from typing import Any

import click


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
