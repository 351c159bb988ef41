"""One change explained: what gives its bound, which pair attains how much of it, and which centres make that.

A change is of one input, or of a group of inputs that count as one.
"""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskab.attack.attained import terms
from daskab.bound import sequences
from daskab.bound.contributions import DIRECTIONS, slice_edges
from daskab.bound.nodes import BOUND, FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW, UNIT
from daskab.errors import IntegrityError, JobError
from daskab.model.expansion import KernelExpansion
from daskab.report.facts import Facts, facts_of
from daskab.run.reading import PartsReading, Reading, RunReading
from daskab.run.store import CLOSED
from daskab.run.workspace import Workspace

Array = NDArray[np.float64]

MOST_CENTRES = 5


@dataclass(frozen=True)
class Sequence:
    """The run of neighbouring slices whose bound is the input's.

    A path that starts in one range and ends in the other changes the latent by no more than the bound; none of another
    sequence changes it by more. Ranges are in the units of the data; the second is the first where the path stays in
    one slice.
    """

    direction: int  #: +1 where the input rises, -1 where it falls
    slices: int  #: slices the input was cut into
    from_slice: int
    to_slice: int
    from_range: tuple[float, float]
    to_range: tuple[float, float]
    enhanced: bool  #: whether these are slices of an enhancement


@dataclass(frozen=True)
class OpenPart:
    """The part of that sequence, of those left open, whose bound is highest: cells the path starts and ends in."""

    parts: int  #: left open in all
    bound: float
    from_range: tuple[float, float]
    to_range: tuple[float, float]


@dataclass(frozen=True)
class Centre:
    """What one centre adds to the change between the two points of the pair."""

    centre: int  #: row of the model's centres
    adds: float
    values: tuple[float, ...]  #: at the centre, of the inputs that are changed, in the units of the data
    weight: float


@dataclass(frozen=True)
class Part:
    """What is proved of one part of a model whose kernel is replaced by a sum."""

    run: str
    times: float  #: its lengthscales over the model's
    upper_bound: float


@dataclass(frozen=True)
class Move:
    """An input that is changed, from one point of the pair to the other; ``range`` is that of the box."""

    input: str
    number: int
    unit: str
    range: tuple[float, float]
    start: float
    end: float


@dataclass(frozen=True)
class Explanation:
    """What is known of one change. Values are in the units of the data, where the model's provenance tells them.

    Attributes
    ----------
    change, number : its name, and which of the changes it is
    frozen : whether an attacker cannot change it
    upper_bound, attained : of the change of the latent
    ratio : upper_bound / attained; None where nothing is attained
    rank : 1 for the change with the highest bound
    closed : whether the bound is as close as was asked for, or cannot matter; None where that is not asked
    rtol : how close that is; None where slices are fixed
    sequence : of an input alone whose bound is that of one
    searched : nodes opened by the search that bounds a group; None of anything else
    parts, replaced : of a model of another kernel than EQ, what the bound is the sum of: the parts', and what replacing
        the kernel may add
    moves : what the pair that attains ``attained`` changes
    others : the values of the other inputs, which are the same at both points
    latent_from, latent_to : at the two points
    centres : those that add most, either way
    """

    run: str
    sealed: bool
    change: str
    number: int
    frozen: bool
    upper_bound: float
    attained: float
    ratio: float | None
    rank: int
    n_changes: int
    closed: bool | None
    rtol: float | None
    sequence: Sequence | None
    open_part: OpenPart | None
    searched: int | None
    parts: tuple[Part, ...]
    replaced: float
    moves: tuple[Move, ...]
    latent_from: float
    latent_to: float
    others: dict[str, float]
    centres: tuple[Centre, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def change_of(model: KernelExpansion, wanted: str) -> int:
    """Which change a person calls by its name or by its number, from 0.

    Raises
    ------
    JobError
        If it is neither.
    """
    domain, names = model.domain, model.domain.change_names(model.input_names)
    if wanted in names:
        return names.index(wanted)
    if wanted in model.input_names:
        group = domain.groups[int(domain.group_of[model.input_names.index(wanted)])].name
        raise JobError(f"INPUT: {wanted!r} counts as one change with others; ask for {group!r}")
    if wanted.isascii() and wanted.isdigit() and int(wanted) < len(names):
        return int(wanted)
    close = difflib.get_close_matches(wanted, names, 1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    what = "an input or a group" if domain.groups else "an input"
    raise JobError(f"INPUT: {wanted!r} is neither the name of {what} nor a number from 0 to {len(names) - 1}{meant}")


def explain(reading: Reading, c: int) -> Explanation:
    """Explain change ``c`` of a run."""
    model, certificate = reading.model, reading.certificate
    facts, changed = facts_of(model), model.domain.changes[c]
    x, x_prime = reading.witnesses.pair(c)
    before, after = facts.original(x), facts.original(x_prime)
    upper, attained = float(certificate.upper_bound[c]), float(certificate.attained[c])
    latent = model.latent(np.stack([x, x_prime]))
    edges = facts.original(np.stack([model.lower, model.upper])).T.tolist()
    sequence, open_part, closed, searched = None, None, None, None
    if isinstance(reading, RunReading):
        d, group = changed[0], int(model.domain.group_of[changed[0]])
        if group >= 0:
            searched = nodes_of_group(reading, group)
        else:
            closed = bool(np.all(reading.units.status[:, d] == CLOSED))
            sequence = deciding_sequence(reading, facts, d, upper)
            open_part = None if sequence is None or sequence.enhanced else highest_open(reading, facts, d)
    parts = reading.parts if isinstance(reading, PartsReading) else ()
    return Explanation(
        run=reading.folder.name,
        sealed=reading.sealed,
        change=certificate.input_names[c],
        number=c,
        frozen=bool(np.all(model.domain.frozen[list(changed)])),
        upper_bound=upper,
        attained=attained,
        ratio=upper / attained if attained > 0.0 else None,
        rank=1 + int(np.sum(certificate.upper_bound > upper)),
        n_changes=len(certificate.input_names),
        closed=closed,
        rtol=certificate.rtol,
        sequence=sequence,
        open_part=open_part,
        searched=searched,
        parts=tuple(
            Part(
                part.folder.name,
                float(part.model.lengthscale[0] / model.lengthscale[0]),
                float(part.certificate.upper_bound[c]),
            )
            for part in parts
        ),
        replaced=2.0 * reading.error if isinstance(reading, PartsReading) else 0.0,
        moves=tuple(
            Move(model.input_names[j], j, facts.units[j], tuple(edges[j]), float(before[j]), float(after[j]))
            for j in changed
            if len(changed) == 1 or before[j] != after[j]
        ),
        latent_from=float(latent[0]),
        latent_to=float(latent[1]),
        others={name: float(before[j]) for j, name in enumerate(model.input_names) if j not in changed},
        centres=driving_centres(reading, facts, c),
    )


def nodes_of_group(reading: RunReading, group: int) -> int:
    """Nodes opened by the search that bounds a group; none before that is done."""
    used = reading.space.evidence.read("groups/used", slice(group, group + 1), may_lack=True)
    return int(used[0]) if np.isfinite(used[0]) else 0


def deciding_sequence(reading: RunReading, facts: Facts, d: int, upper: float) -> Sequence | None:
    """The sequence whose bound is the input's: of the first slices, or of an enhancement that proved less.

    None of an input that cannot change.
    """
    evidence, slices = reading.space.evidence, reading.question.slices
    bound = reading.units.bound[:, d]
    if reading.model.domain.frozen[d]:
        return None
    if float(bound.max()) == upper:
        side, number = divmod(int(np.argmax(bound)), bound.shape[1])
        return _sequence(reading, facts, d, slices, side, number, enhanced=False)
    for index in range(reading.space.laid_out("enhancement")):
        changed, slices = evidence.enhancement(index)
        if changed == d:
            proved = evidence.read(f"enhancements/{index}/bound", may_lack=True)
            if float(proved.max()) == upper:
                side, number = divmod(int(np.argmax(proved)), sequences.count(slices))
                return _sequence(reading, facts, d, slices, side, number, enhanced=True)
    raise IntegrityError(
        f"{reading.folder}: no sequence of input {reading.model.input_names[d]} has its certified bound"
    )


def _sequence(
    reading: RunReading, facts: Facts, d: int, slices: int, side: int, number: int, *, enhanced: bool
) -> Sequence:
    first, last = (int(n) for n in sequences.ends(slices)[number])
    edges = slice_edges(float(reading.space.scaled.width[d]), slices)
    start, end = (first, last) if side == 0 else (last, first)
    return Sequence(
        direction=DIRECTIONS[side],
        slices=slices,
        from_slice=start,
        to_slice=end,
        from_range=_range(reading, facts, d, edges[start], edges[start + 1]),
        to_range=_range(reading, facts, d, edges[end], edges[end + 1]),
        enhanced=enhanced,
    )


def _range(reading: RunReading, facts: Facts, d: int, low: float, high: float) -> tuple[float, float]:
    """Two scaled coordinates of input ``d`` in the units of the data."""
    model = reading.model
    at = np.tile(model.lower, (2, 1))
    at[:, d] = np.clip(model.lower[d] + np.array([low, high]) * model.lengthscale[d], model.lower[d], model.upper[d])
    shown = facts.original(at)[:, d]
    return float(shown[0]), float(shown[1])


def highest_open(reading: RunReading, facts: Facts, d: int) -> OpenPart | None:
    """The highest of the nodes of an input that the rounds of an adaptive run left open."""
    space = reading.space
    last = space.laid_out("round") - 1
    if space.plan.question.method != "adaptive" or last < 0 or bool(np.all(reading.units.status[:, d] == CLOSED)):
        return None
    # In the last round that took any of the input's up.
    found = (_left_open(space, number, d) for number in range(last, -1, -1))
    nodes = next((nodes for nodes in found if nodes.shape[0]), None)
    if nodes is None:
        return None
    top = nodes[int(np.argmax(nodes[:, BOUND]))]
    lower, upper = (_range(reading, facts, d, top[a], top[b]) for a, b in ((FROM_LOW, FROM_HIGH), (TO_LOW, TO_HIGH)))
    rises = space.plan.n_sequences > int(top[UNIT]) % (2 * space.plan.n_sequences)
    start, end = (lower, upper) if rises else (upper, lower)
    return OpenPart(nodes.shape[0], float(top[BOUND]), start, end)


def _left_open(space: Workspace, number: int, d: int) -> Array:
    """Nodes (n, width) of input ``d`` that what is done of a round left open."""
    parts, name = [], f"rounds/{number}/frontier"
    for task in space.tasks("round", number):
        if space.evidence.holds(f"{name}/{task.index}"):
            rows = space.evidence.read_rows(name, task.index)
            parts.append(rows[space.plan.input_of(rows[:, UNIT].astype(np.int64)) == d])
    return np.concatenate(parts) if parts else np.empty((0, 0))


def driving_centres(reading: Reading, facts: Facts, c: int) -> tuple[Centre, ...]:
    """The centres whose terms change most between the two points of the pair, the largest first."""
    model = reading.model
    x, x_prime = reading.witnesses.pair(c)
    adds = terms(model, x_prime)[0] - terms(model, x)[0]
    most = np.argsort(-np.abs(adds), kind="stable")[:MOST_CENTRES].tolist()
    values = facts.original(model.centres)[:, list(model.domain.changes[c])]
    return tuple(Centre(i, float(adds[i]), tuple(values[i].tolist()), float(model.weights[i])) for i in most)
