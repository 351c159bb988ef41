"""What a model's own provenance says of its inputs: classes, units, pixels. What it does not say is not guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskab.datasets.readers import pixel_place
from daskab.datasets.registry import Entry, known
from daskab.model.expansion import KernelExpansion
from daskab.model.provenance import made_of, zero_and_one
from daskab.run.models import noun_of

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_PIXELS = 1_000_000


@dataclass(frozen=True, eq=False)
class Pixels:
    """Where in an image each input is.

    Attributes
    ----------
    shape : rows and columns of the image
    row, column : ndarray of int, shape (D,)
    """

    shape: tuple[int, int]
    row: Ints
    column: Ints

    def image(self, values: ArrayLike) -> Array:
        """Values (D,) as an image, NaN where a pixel is no input."""
        out = np.full(self.shape, np.nan)
        out[self.row, self.column] = values
        return out

    @property
    def left_out(self) -> int:
        """Pixels that are no inputs."""
        return self.shape[0] * self.shape[1] - self.row.size


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of a model beyond its numbers.

    Attributes
    ----------
    made_of : what the model's provenance says, empty where it says nothing that can be read
    entry : its data set, if daskab knows it
    classes : names of class 0 and class 1
    noun : what an input is called
    pixels : if the inputs are pixels
    zero_and_one : ndarray, shape (2, D), optional
        What 0 and 1 of each input stand for in the units of the data.
    units : of each input, empty where not known
    """

    made_of: dict[str, Any]
    entry: Entry | None
    classes: tuple[str, str] | None
    noun: str
    pixels: Pixels | None
    zero_and_one: Array | None
    units: tuple[str, ...]

    @property
    def input(self) -> str:
        """What one input is called; ``noun`` is what counts as one change."""
        return "input" if self.pixels is None else "pixel"

    def original(self, values: Array) -> Array:
        """Values (..., D) of the model's inputs in the units of the data."""
        if self.zero_and_one is None:
            return values
        zero, one = self.zero_and_one
        return np.asarray(zero + values * (one - zero))


def facts_of(model: KernelExpansion) -> Facts:
    """Read a model's provenance; what another program wrote there counts for nothing."""
    said = made_of(model.provenance)
    data = said.get("data")
    data = data if isinstance(data, dict) else {}
    entry = known().get(str(data.get("source")))
    pair = data.get("classes")
    classes = (str(pair[0]), str(pair[1])) if isinstance(pair, list) and len(pair) == 2 else None
    pixels = pixels_of(model.input_names, _shape(data, entry))
    unit_of = {} if entry is None else {name: c.unit for c in entry.columns for name in c.names}
    every = entry.columns[0].unit if entry is not None and entry.image is not None else ""
    return Facts(
        made_of=said,
        entry=entry,
        classes=classes,
        noun=noun_of(model, "input" if pixels is None else "pixel"),
        pixels=pixels,
        zero_and_one=zero_and_one(said, model.n_inputs),
        units=tuple(unit_of.get(name, every) for name in model.input_names),
    )


def pixels_of(names: tuple[str, ...], shape: tuple[int, int] | None = None) -> Pixels | None:
    """The image whose pixels these are, if each name is one of a row and column, ``r3c4``, and none is there twice.

    Where its ``shape`` is not known, the smallest square they fit in: pixels at the border may have been left out.
    """
    found = [pixel_place(name) for name in names]
    places = np.array([place for place in found if place is not None], dtype=np.int64).reshape(-1, 2)
    if len(places) < len(names) or len(np.unique(places, axis=0)) < len(names):
        return None
    if shape is None or np.any(places >= shape):
        shape = (int(places.max()) + 1,) * 2
    return Pixels(shape, places[:, 0], places[:, 1]) if shape[0] * shape[1] <= MOST_PIXELS else None


def _shape(data: dict[str, Any], entry: Entry | None) -> tuple[int, int] | None:
    pool = data.get("pool")
    if entry is None or entry.image is None:
        return None
    return (pool, pool) if isinstance(pool, int) and pool > 0 else entry.image
