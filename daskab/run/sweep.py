"""``[sweep]``: values to try, in every combination, in place of what the other tables of a job say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Annotated, Literal

from pydantic import Field, model_validator

from daskab.run.sections import Count, Positive, Section, Seed, wrong

Value = float | int | str | tuple[int | str, ...]
Values = dict[str, Value]

MOST_POINTS = 10_000

OF_DATA = ("classes", "pool", "train_size", "seed")
OF_FITS = ("lengthscale", "variance", "inducing_points", *OF_DATA)
OF_BOUNDS = ("slices", "rtol")
"""Keys that say what a model is fitted to, those that say how, the data among it, and how it is bounded."""


class SweepOptions(Section):
    """``[sweep]``: each key is a list; the job's models are made and certified with every combination of them.

    ``inducing_points = ["dense"]`` stands for none; ``seed`` is that of the data.
    """

    lengthscale: tuple[Positive, ...] = Field(default=(), strict=False)
    variance: tuple[Positive, ...] = Field(default=(), strict=False)
    inducing_points: tuple[Count | Literal["dense"], ...] = Field(default=(), strict=False)
    classes: tuple[Annotated[tuple[int | str, ...], Field(strict=False)], ...] = Field(default=(), strict=False)
    pool: tuple[Count, ...] = Field(default=(), strict=False)
    train_size: tuple[Count, ...] = Field(default=(), strict=False)
    seed: tuple[Seed, ...] = Field(default=(), strict=False)
    slices: tuple[Count, ...] = Field(default=(), strict=False)
    rtol: tuple[Positive, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _of_several(self) -> SweepOptions:
        for name in sorted(self.model_fields_set):
            values = getattr(self, name)
            if not values:
                raise wrong("[] leaves nothing to try", (name,))
            if len(set(values)) < len(values):
                raise wrong(f"{list(values)} has a value twice", (name,))
        if (points := prod(map(len, self.axes.values()))) > MOST_POINTS:
            raise wrong(f"{points} combinations; the most is {MOST_POINTS}")
        return self

    @property
    def axes(self) -> dict[str, tuple[Value, ...]]:
        """The values tried of each key that is given, in the order a name has them."""
        return {name: values for name in (*OF_FITS, *OF_BOUNDS) if (values := getattr(self, name))}

    def combinations(self) -> Iterator[Values]:
        """Every combination, the last key's values fastest; a single empty one if nothing is swept over."""
        return (dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values()))


def said(value: Value) -> str:
    """A value as a part of a name."""
    if isinstance(value, tuple):
        return "-".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
