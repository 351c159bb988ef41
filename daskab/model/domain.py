"""What an attacker can do beyond the box: inputs that stay, move only so far, or take listed values; groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskab.errors import ModelError
from daskab.model.checked import Array, numbers, shaped

Input = str | int
"""An input by its name or its place."""

OneHot = Literal["exactly one", "at most one"]
ONE_HOT: tuple[OneHot, ...] = ("exactly one", "at most one")

MOST_INTEGERS = 10_000
"""Values that an integer input may have; with more there is nothing to be gained."""

KEYS = ("max_change", "listed_input", "listed_value", "group_of", "group_kind", "group_names")
"""The arrays of the neutral format that say all of this; those that say nothing are left out."""


@dataclass(frozen=True)
class Group:
    """Inputs that count as one change together.

    ``kind`` is "free", or says that the inputs are the columns of one category: "exactly one" of them is at its upper
    edge, or "at most one", the others at their lower edges.
    """

    name: str
    inputs: tuple[int, ...]
    kind: Literal["free", "exactly one", "at most one"] = "free"

    @property
    def states(self) -> int:
        """How many a category has; 0 of a free group."""
        return {"free": 0, "exactly one": len(self.inputs), "at most one": len(self.inputs) + 1}[self.kind]


@dataclass(frozen=True, eq=False)
class Domain:
    """Which points there are in a box, and which of them an attacker can get to from which.

    Parameters
    ----------
    lower, upper : (D,) the box
    max_change : (D,)
        Most an input may change, at most its width; 0 for one that is frozen.
    listed : mapping of input to (K,)
        The only values some inputs have: ascending, different, in the box.
    groups : tuple of Group
        Disjoint.
    """

    lower: Array
    upper: Array
    max_change: Array
    listed: Mapping[int, Array]
    groups: tuple[Group, ...]

    @classmethod
    def read(cls, arrays: Mapping[str, Any], lower: Array, upper: Array, names: Sequence[str]) -> Domain:
        """From the arrays of the neutral format, checked.

        Raises
        ------
        ModelError
            If one does not fit, is not finite, or contradicts another.
        """
        d = lower.size
        given = shaped("max_change", np.asarray(arrays.get("max_change", np.full(d, np.inf))), (d,))
        # Infinite is no limit.
        most = numbers("max_change", np.where(given == np.inf, upper - lower, given), shape=(d,))
        if np.any(most < 0.0):
            raise ModelError(f"max_change: {most.min():g} of input {names[int(np.argmin(most))]} is negative")
        owner = _integers("listed_input", arrays.get("listed_input", ()), d)
        value = numbers("listed_value", arrays.get("listed_value", ()), shape=owner.shape)
        listed = {int(j): np.unique(value[owner == j]) for j in np.unique(owner)}
        for j, own in listed.items():
            if own[0] < lower[j] or own[-1] > upper[j]:
                wrong = own[0] if own[0] < lower[j] else own[-1]
                raise ModelError(f"listed_value: {wrong:g} of input {names[j]} lies outside the box")
        return cls(lower, upper, np.minimum(most, upper - lower), listed, _groups(arrays, d)).checked(names)

    def checked(self, names: Sequence[str]) -> Domain:
        """Itself, if its parts agree."""
        for group in self.groups:
            if group.name in names and names.index(group.name) not in group.inputs:
                raise ModelError(f"groups: {group.name} is the name of an input that is not in it")
            for j in group.inputs:
                if group.kind != "free" and (self.max_change[j] != self.upper[j] - self.lower[j] or j in self.listed):
                    what = f"input {names[j]} can have no values or limit of its own"
                    raise ModelError(f"groups: {group.name} is one category, so {what}")
        return self

    @cached_property
    def frozen(self) -> NDArray[np.bool_]:
        """(D,) inputs that cannot change, of columns of a category not alone."""
        fixed: NDArray[np.bool_] = self.max_change == 0.0
        for j, own in self.listed.items():
            fixed[j] |= bool(np.all(np.diff(own) > self.max_change[j]))
        return fixed

    @cached_property
    def in_category(self) -> NDArray[np.bool_]:
        """(D,) columns of a category, which do not change alone."""
        out = np.zeros(self.lower.size, dtype=np.bool_)
        for group in self.groups:
            out[list(group.inputs)] |= group.kind != "free"
        return out

    @cached_property
    def limited(self) -> NDArray[np.bool_]:
        """(D,) inputs that may change by less than the width of the box."""
        return np.asarray(self.max_change < self.upper - self.lower)

    @cached_property
    def group_of(self) -> NDArray[np.int64]:
        """(D,) number of each input's group, -1 where it has none."""
        out = np.full(self.lower.size, -1, dtype=np.int64)
        for k, group in enumerate(self.groups):
            out[list(group.inputs)] = k
        return out

    @cached_property
    def changes(self) -> tuple[tuple[int, ...], ...]:
        """The inputs of everything that counts as one change, in the order of their first ones."""
        return tuple(
            (j,) if k < 0 else self.groups[k].inputs
            for j, k in enumerate(self.group_of.tolist())
            if k < 0 or self.groups[k].inputs[0] == j
        )

    def change_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """What everything that counts as one change is called: an input by its name, a group by its own."""
        return tuple(
            names[inputs[0]] if self.group_of[inputs[0]] < 0 else self.groups[self.group_of[inputs[0]]].name
            for inputs in self.changes
        )

    @cached_property
    def whole(self) -> bool:
        """Whether an attacker can do all that the box allows."""
        return not (self.listed or self.groups or self.limited.any())

    @property
    def words(self) -> str:
        """What it takes away from the box, ``2 inputs frozen, 1 limited``; empty where that is nothing."""
        frozen, limited = int(self.frozen.sum()), int(np.sum(self.limited & ~self.frozen))
        counts = [(frozen, "frozen"), (limited, "limited"), (len(self.listed), "with listed values")]
        said = [f"{n} {what}" for n, what in counts if n]
        if said:
            said[0] = said[0].replace(" ", " input " if said[0].startswith("1 ") else " inputs ", 1)
        if self.groups:
            said.append(f"{len(self.groups)} group{'s' if len(self.groups) > 1 else ''}")
        return ", ".join(said)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the neutral format; none where the domain is whole."""
        limits = np.where(self.limited, self.max_change, np.inf)
        kinds, names = [group.kind for group in self.groups], [group.name for group in self.groups]
        return _arrays(limits, self.listed, self.group_of, kinds, names)

    def nearest(self, points: Array) -> Array:
        """The points (..., D) with every listed input, and every category, at the nearest state it has; in the box."""
        out = np.clip(points, self.lower, self.upper)
        for j, own in self.listed.items():
            out[..., j] = own[np.argmin(np.abs(out[..., j, None] - own), axis=-1)]
        for group in self.groups:
            if group.kind == "free":
                continue
            cols = list(group.inputs)
            span = np.where(self.upper[cols] > self.lower[cols], self.upper[cols] - self.lower[cols], 1.0)
            share = (out[..., cols] - self.lower[cols]) / span
            best = np.argmax(share, axis=-1)
            on = np.arange(len(cols)) == best[..., None]
            if group.kind == "at most one":
                on &= np.max(share, axis=-1)[..., None] >= 0.5
            out[..., cols] = np.where(on, self.upper[cols], self.lower[cols])
        return out

    def holds(self, x: Array) -> bool:
        """Whether a point (D,) is one of the domain's."""
        return bool(np.all(self.nearest(x) == x))

    def allows(self, x: Array, x_prime: Array) -> bool:
        """Whether both points (D,) are of the domain, and one can be changed into the other."""
        near = np.abs(x_prime - x) <= self.max_change
        # A difference may round up to just above the limit's own value; what counts is the difference as a number.
        return self.holds(x) and self.holds(x_prime) and bool(np.all(near | ~self.limited))

    def is_change(self, c: int, x: Array, x_prime: Array) -> bool:
        """Whether one point (D,) can be changed into the other by change ``c`` alone."""
        return self.allows(x, x_prime) and set(np.flatnonzero(x != x_prime).tolist()) <= set(self.changes[c])

    def reconciled(self, x: Array, x_prime: Array, inputs: Sequence[int]) -> tuple[Array, Array]:
        """Two points (D,) of the domain near these, in some inputs apart: by no more than they may be, to the bit.

        Where rounding leaves none, the first and itself.
        """
        a, b = self.nearest(x), self.nearest(x_prime)
        may = np.zeros(a.size, dtype=np.bool_)
        may[list(inputs)] = True
        b = np.where(may & (x != x_prime), b, a)
        for j in np.flatnonzero(self.limited & (np.abs(b - a) > self.max_change)):
            b[j] = np.clip(b[j], a[j] - self.max_change[j], a[j] + self.max_change[j])
            if not abs(b[j] - a[j]) <= self.max_change[j]:
                b[j] = np.nextafter(b[j], a[j])
        return (a, b) if self.allows(a, b) else (a, a.copy())

    def n_changes(self, x: Array, x_prime: Array) -> int:
        """How many inputs and groups two points (D,) differ in."""
        moved = x != x_prime
        in_groups = np.unique(self.group_of[moved & (self.group_of >= 0)]).size
        return int(np.sum(moved & (self.group_of < 0))) + in_groups


def restricted(
    names: Sequence[str],
    lower: Array,
    upper: Array,
    *,
    frozen: Iterable[Input],
    max_change: Mapping[Any, float],
    values: Mapping[Any, ArrayLike],
    integers: Iterable[Input],
    groups: Mapping[str, Iterable[Input]],
    categories: Mapping[str, Iterable[Input]],
    at_most_one: bool,
) -> dict[str, NDArray[Any]]:
    """The arrays of a domain that is told in words; see `KernelExpansion.restrict`."""
    limits = _once("max_change", [(place_of(g, names), g) for g in _told("max_change", max_change)], names)
    still = _once("frozen", [(place_of(g, names), g) for g in _told("frozen", frozen)], names)
    most = np.full(lower.size, np.inf)
    for j, given in limits:
        most[j] = float(numbers(f"max_change of {names[j]}", max_change[given], shape=()))
    for j, _ in still:
        most[j] = 0.0
    told = [(place_of(g, names), g) for g in _told("values", values)]
    whole = [(place_of(g, names), g) for g in _told("integers", integers)]
    _once("values, integers", [*told, *whole], names)
    listed = {j: numbers(f"values of {names[j]}", values[given], ndim=1) for j, given in told}
    for j, own in listed.items():
        if not own.size:
            raise ModelError(f"values: none are given for input {names[j]}")
    for j, _ in whole:
        few = upper[j] - lower[j] <= MOST_INTEGERS
        listed[j] = np.arange(np.ceil(lower[j]), np.floor(upper[j]) + 1.0) if few else np.empty(0)
        if not listed[j].size:
            raise ModelError(f"integers: input {names[j]} has none, or over {MOST_INTEGERS}, in its box")
    kinds = [(name, groups[name], "free") for name in _told("groups", groups)]
    kinds += [(name, categories[name], ONE_HOT[at_most_one]) for name in _told("categories", categories)]
    for name in set(groups) & set(categories):
        raise ModelError(f"groups, categories: {name!r} is the name of one of each")
    group_of = np.full(len(names), -1, dtype=np.int64)
    for k, (name, inputs, _) in enumerate(kinds):
        for given in _told(f"groups: {name}", inputs):
            j = place_of(given, names)
            if group_of[j] >= 0:
                raise ModelError(f"groups: input {names[j]} is in {kinds[group_of[j]][0]} and in {name}")
            group_of[j] = k
    return _arrays(most, listed, group_of, [kind for _, _, kind in kinds], [name for name, _, _ in kinds])


def _arrays(
    most: Array, listed: Mapping[int, Array], group_of: NDArray[np.int64], kinds: Sequence[str], names: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """The arrays of the neutral format, those left out that say nothing."""
    out: dict[str, NDArray[Any]] = {}
    if not np.all(most == np.inf):
        out["max_change"] = most
    if listed:
        out["listed_input"] = np.concatenate([np.full(own.size, j) for j, own in listed.items()])
        out["listed_value"] = np.concatenate(list(listed.values()))
    if names:
        out["group_of"] = group_of
        out["group_kind"] = np.array(kinds, dtype=np.str_)
        out["group_names"] = np.array(names, dtype=np.str_)
    return out


def _told(what: str, given: Iterable[Any]) -> list[Any]:
    """What is given, as a list: a text is no list of its letters."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ModelError(f"{what}: {given!r} is no list of inputs")
    if what in ("max_change", "values", "groups", "categories") and not isinstance(given, Mapping):
        raise ModelError(f"{what}: {given!r} does not say what is meant for which input or group")
    return list(given)


def _once(what: str, places: list[tuple[int, Any]], names: Sequence[str]) -> list[tuple[int, Any]]:
    """The places, if none is there twice: of two things that are told only one could hold."""
    seen = [j for j, _ in places]
    for j in seen:
        if seen.count(j) > 1:
            raise ModelError(f"{what}: input {names[j]} is told twice")
    return places


def place_of(given: Input, names: Sequence[str]) -> int:
    """The place of an input that is given by name or place."""
    if isinstance(given, str):
        if given not in names:
            raise ModelError(f"there is no input {given!r}; the inputs are {', '.join(names[:6])} ...")
        return list(names).index(given)
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or not 0 <= given < len(names):
        raise ModelError(f"there is no input {given!r} among {len(names)}")
    return int(given)


def _groups(arrays: Mapping[str, Any], d: int) -> tuple[Group, ...]:
    if "group_of" not in arrays:
        for name in ("group_kind", "group_names"):
            if np.size(arrays.get(name, ())):
                raise ModelError(f"{name}: given without group_of")
        return ()
    names = [str(name) for name in np.atleast_1d(arrays.get("group_names", ()))]
    kinds = [str(kind) for kind in np.atleast_1d(arrays.get("group_kind", ["free"] * len(names)))]
    owner = _integers("group_of", arrays["group_of"], len(names), least=-1)
    if owner.size != d or len(kinds) != len(names) or len(set(names)) != len(names):
        raise ModelError("group_of, group_kind, group_names: do not fit each other and the inputs")
    groups = []
    for k, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        inputs = tuple(int(j) for j in np.flatnonzero(owner == k))
        if not inputs:
            raise ModelError(f"groups: {name} has no inputs")
        if kind != "free" and kind not in ONE_HOT:
            raise ModelError(f"group_kind: {kind!r} is none of free, {', '.join(ONE_HOT)}")
        groups.append(Group(name, inputs, kind))  # type: ignore[arg-type]
    return tuple(groups)


def _integers(name: str, value: object, stop: int, least: int = 0) -> NDArray[np.int64]:
    given = numbers(name, value, ndim=1)
    if given.size and not np.all((given == np.round(given)) & (given >= least) & (given < stop)):
        raise ModelError(f"{name}: holds other numbers than {least} to {stop - 1}")
    return given.astype(np.int64)
