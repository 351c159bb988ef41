"""The data of a job: what its ``[data]`` says, and the points that are made of it."""

from __future__ import annotations

import reprlib
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator
from pydantic.functional_validators import AfterValidator

from daskab.datasets import points
from daskab.datasets.points import Dataset
from daskab.datasets.readers import load
from daskab.datasets.registry import Entry, entry
from daskab.errors import DataError
from daskab.run.sections import Count, Section, Seed, wrong


def _known(source: str) -> str:
    try:
        return entry(source).name
    except DataError as error:
        raise wrong(str(error)) from None


def _hashable(group: Any) -> Any:
    return tuple(group) if isinstance(group, list) else group


class DataOptions(Section):
    """``[data]``: what models are fitted to and scored on.

    Of the rows of two ``classes`` of ``source``, or of two lists of them that count as one each, images are averaged
    to ``pool`` x ``pool`` pixels, copies left out (``deduplicate``), inputs scaled to 0..1 and left out where they then
    deviate by at most ``min_std``. ``scale`` is ``unit``, by what an input can be, or ``range``, by what it is, without
    the share below and above ``clip_percentile``; default: ``unit`` where the data's registry knows it. All of that is
    by all rows. Then ``train_size`` of them are drawn, in the classes' proportions, copies never on both sides; the
    score is over ``test_size`` of the others (default: all).
    """

    source: Annotated[str, AfterValidator(_known)]
    classes: Annotated[tuple[Annotated[Any, AfterValidator(_hashable)], ...] | None, Field(strict=False)] = None
    train_size: int = Field(ge=2)
    test_size: Count | None = None
    seed: Seed = 0
    pool: Count | None = None
    deduplicate: bool = False
    scale: Literal["unit", "range"] | None = None
    clip_percentile: float = Field(default=0.0, ge=0, lt=50)
    min_std: float = Field(default=0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _of_the_source(self) -> DataOptions:
        names = self.entry.class_names
        if self.classes is None and len(names) != 2:
            raise wrong(f"missing; {self.source} has more than two: {', '.join(names)}", ("classes",))
        asked = [name for group in self._groups for name in group]
        if len(self._groups) != 2 or not all(self._groups) or len(set(asked) & set(names)) != len(asked):
            given = reprlib.repr([list(one) if isinstance(one, tuple) else one for one in self.classes or ()])
            raise wrong(f"{given} is not two different classes of {self.source}: {', '.join(names)}", ("classes",))
        if self.pool is not None and self.entry.image is None:
            raise wrong(f"{self.pool} is given, but the inputs of {self.source} are no pixels", ("pool",))
        if self.pool is not None and any(side < self.pool for side in self.entry.image or ()):
            shape = " x ".join(map(str, self.entry.image or ()))
            raise wrong(f"{self.pool} is more than the {shape} pixels of {self.source}", ("pool",))
        if self.scale == "unit" and self.entry.edges is None:
            raise wrong(f"'unit' needs to know what each input of {self.source} can be; use 'range'", ("scale",))
        if self.how == "unit" and self.clip_percentile:
            raise wrong(f"{self.clip_percentile} is given, but scale 'unit' clips nothing", ("clip_percentile",))
        return self

    @property
    def entry(self) -> Entry:
        """What is known of the source."""
        return entry(self.source)

    @property
    def pair(self) -> tuple[str, str]:
        """The names of the two classes."""
        first, second = map(points.group_name, self._groups)
        return first, second

    @property
    def groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The classes that count as the first, and those that count as the second."""
        first, second = self._groups
        return first, second

    @property
    def _groups(self) -> list[tuple[str, ...]]:
        """As many as are given."""
        given = self.entry.class_names if self.classes is None else self.classes
        return [tuple(map(str, one)) if isinstance(one, tuple) else (str(one),) for one in given]

    @property
    def how(self) -> Literal["unit", "range"]:
        """How inputs are scaled."""
        return self.scale or ("range" if self.entry.edges is None else "unit")

    @property
    def noun(self) -> str:
        """What an input is called."""
        return "input" if self.entry.image is None else "pixel"

    def facts(self) -> dict[str, Any]:
        """All that the points depend on: what was asked for, and the checksums of the files they are made of."""
        files = {file.name: file.sha256 for file in self.entry.files}
        return {**self.model_dump(), "classes": list(self.pair), "scale": self.how, "files": files}


def prepared(data: DataOptions) -> tuple[Dataset, Dataset]:
    """Training and test part of a job's data, scaled to 0..1."""
    dataset = points.two_classes(load(data.source), data.groups)
    if data.pool is not None:
        dataset = points.pool(dataset, data.pool)
    if data.deduplicate:
        dataset = points.deduplicate(dataset)
    if data.how == "range":
        dataset = points.rescale_to_seen(dataset, data.clip_percentile)
    else:
        edges = np.array(data.entry.edges).T
        dataset = points.rescale(dataset, *(edges if data.entry.image is None else edges[:, 0]))
    train, test = points.split(points.drop_constant(dataset, data.min_std), data.train_size, data.seed)
    kept = slice(data.test_size)  # of rows that were shuffled
    return train, replace(test, X=test.X[kept], y=test.y[kept])
