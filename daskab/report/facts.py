"""What a model's own provenance says of its inputs: classes, units, pixels. What it does not say is not guessed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskab.datasets.registry import Entry, known
from daskab.model.expansion import KernelExpansion

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

PIXEL = re.compile(r"r(\d{1,4})c(\d{1,4})")
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
    made_of = _made_of(model)
    data = made_of.get("data")
    data = data if isinstance(data, dict) else {}
    entry = known().get(str(data.get("source")))
    pair = data.get("classes")
    classes = (str(pair[0]), str(pair[1])) if isinstance(pair, list) and len(pair) == 2 else None
    pixels = pixels_of(model.input_names, _shape(data, entry))
    unit_of = {} if entry is None else {name: c.unit for c in entry.columns for name in c.names}
    every = entry.columns[0].unit if entry is not None and entry.image is not None else ""
    return Facts(
        made_of=made_of,
        entry=entry,
        classes=classes,
        noun="group" if model.domain.groups else "input" if pixels is None else "pixel",
        pixels=pixels,
        zero_and_one=_zero_and_one(made_of, model.n_inputs),
        units=tuple(unit_of.get(name, every) for name in model.input_names),
    )


def pixels_of(names: tuple[str, ...], shape: tuple[int, int] | None = None) -> Pixels | None:
    """The image whose pixels these are, if each name is one of a row and column, ``r3c4``, and none is there twice.

    Where its ``shape`` is not known, the smallest square they fit in: pixels at the border may have been left out.
    """
    found = [PIXEL.fullmatch(name) for name in names]
    places = np.array([(int(m[1]), int(m[2])) for m in found if m is not None], dtype=np.int64).reshape(-1, 2)
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


def _made_of(model: KernelExpansion) -> dict[str, Any]:
    try:
        made_of = json.loads(model.provenance or "")
    except ValueError:
        return {}
    return made_of if isinstance(made_of, dict) else {}


def _zero_and_one(made_of: dict[str, Any], n_inputs: int) -> Array | None:
    try:
        span = np.asarray(made_of.get("zero_and_one"), dtype=np.float64)
    except (ValueError, TypeError):
        return None
    return span if span.shape == (2, n_inputs) and bool(np.all(np.isfinite(span))) else None
