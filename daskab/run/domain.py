"""The domain of a job: what its ``[domain]`` says an attacker can do, told to each of its models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from daskab.datasets.readers import pixel_place
from daskab.datasets.registry import Entry
from daskab.errors import JobError, ModelError
from daskab.model.expansion import KernelExpansion
from daskab.model.provenance import made_of, zero_and_one
from daskab.run.data import DataOptions
from daskab.run.sections import Count, Section, wrong

Array = NDArray[np.float64]

Inputs = Annotated[tuple[str, ...], Field(strict=False)]
Numbers = Annotated[tuple[float, ...], Field(strict=False, min_length=1)]
Limit = Annotated[float, Field(ge=0)]


class DomainOptions(Section):
    """``[domain]``: what an attacker can do to which inputs, by their names.

    ``frozen`` inputs cannot be changed, others by ``max_change`` at most; some have only some ``values``, or are
    ``integers``. Inputs of one of the ``groups`` count as one change, as do pixels of an image in the same square of
    ``patch`` x ``patch``. ``categories`` are groups that are the columns of a one-hot code, of which one is at its
    upper edge, or ``at_most_one``. Values and changes are in the units of the data where a model is fitted to them.
    With ``known_values`` inputs that the data's registry calls integer or categorical have the values it says.
    """

    frozen: Inputs = ()
    max_change: dict[str, Limit] = Field(default_factory=dict)
    values: dict[str, Numbers] = Field(default_factory=dict)
    integers: Inputs = ()
    known_values: bool = False
    groups: dict[str, Inputs] = Field(default_factory=dict)
    categories: dict[str, Inputs] = Field(default_factory=dict)
    at_most_one: bool = False
    patch: Count | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> DomainOptions:
        if self.patch is not None and self.groups:
            raise wrong(f"{self.patch} is given, but groups too; give one of them", ("patch",))
        if self.at_most_one and not self.categories:
            raise wrong("true is given, but there are no categories", ("at_most_one",))
        return self

    @property
    def whole(self) -> bool:
        """Whether it says nothing."""
        return self == DomainOptions()

    def applied(self, model: KernelExpansion, data: DataOptions | None) -> KernelExpansion:
        """The model with this domain; of data, the inputs and units are those of the data.

        Raises
        ------
        JobError
            If an input is not one of the model's, or a value not in its box.
        """
        if self.whole:
            return model
        units = _Units(model)
        names = set(model.input_names)
        values = {name: units.scaled(name, given) for name, given in self.values.items() if name in names}
        for name in sorted(self.values.keys() & set(self.integers)):
            raise JobError(f"domain: values, integers: input {name} is told twice")
        values |= {name: units.integers(name) for name in self.integers if name in names}
        known = _known_values(data.entry) if self.known_values and data is not None and data.pool is None else {}
        values |= {name: units.scaled(name, v) for name, v in known.items() if name in names and name not in values}
        try:
            self._check_names(model.input_names, data)
            return model.restrict(
                frozen=[name for name in self.frozen if name in names],
                max_change={n: units.change(n, limit) for n, limit in self.max_change.items() if n in names},
                values=values,
                groups=self.groups if self.patch is None else _patches(model.input_names, self.patch),
                categories=self.categories,
                at_most_one=self.at_most_one,
            )
        except ModelError as error:
            raise JobError(f"domain: {error}") from None

    def _check_names(self, names: Iterable[str], data: DataOptions | None) -> None:
        """What is left out of the data because it hardly varies may be named all the same."""
        known = {*names, *([] if data is None else _names(data.entry))}
        told = [*self.frozen, *self.max_change, *self.values, *self.integers]
        for name in told:
            if name not in known:
                raise ModelError(f"there is no input {name!r}")


class _Units:
    """What 0 and 1 stand for in the units of the data, input by input, where a model's provenance says it."""

    def __init__(self, model: KernelExpansion) -> None:
        self.model = model
        span = zero_and_one(made_of(model.provenance), model.n_inputs)
        zero, one = (np.zeros(model.n_inputs), np.ones(model.n_inputs)) if span is None else span
        self.zero: Array = zero
        # An input that is always the same is left at that.
        self.width: Array = np.where(one > zero, one - zero, 1.0)

    def scaled(self, name: str, given: Iterable[float]) -> Array:
        """Values in the model's units, those within a rounding of an edge at it."""
        j = self.model.input_names.index(name)
        values: Array = (np.asarray(tuple(given), dtype=np.float64) - self.zero[j]) / self.width[j]
        for edge in (self.model.lower[j], self.model.upper[j]):
            values = np.where(np.abs(values - edge) <= 1e-12 * (1.0 + abs(edge)), edge, values)
        return values

    def change(self, name: str, given: float) -> float:
        """A change in the model's units."""
        return float(given / self.width[self.model.input_names.index(name)])

    def integers(self, name: str) -> Array:
        """The whole numbers of the data that lie in the box."""
        j = self.model.input_names.index(name)
        low, high = (self.zero[j] + edge * self.width[j] for edge in (self.model.lower[j], self.model.upper[j]))
        return self.scaled(name, np.arange(np.ceil(low - 1e-9), np.floor(high + 1e-9) + 1.0))


def _names(entry: Entry) -> list[str]:
    return [name for columns in entry.columns for name in columns.names]


def _known_values(entry: Entry) -> dict[str, Array]:
    """What the registry says integer and categorical inputs can be."""
    out: dict[str, Array] = {}
    for columns in entry.columns:
        if columns.type == "real" or columns.edges is None:
            continue
        low, high = columns.edges
        values = np.array(columns.values) if columns.values else np.arange(np.ceil(low), np.floor(high) + 1.0)
        out |= dict.fromkeys(columns.names, values)
    return out


def _patches(names: Iterable[str], side: int) -> dict[str, list[str]]:
    """Pixels by the square of an image they lie in."""
    out: dict[str, list[str]] = {}
    for name in names:
        place = pixel_place(name)
        if place is None:
            raise ModelError(f"patch: input {name} is no pixel; those of an image are called r3c4")
        row, column = (at // side for at in place)
        out.setdefault(f"patch-{row}-{column}", []).append(name)
    return out
