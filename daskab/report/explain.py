"""One input explained: which path gives its bound, which pair attains how much of it, and which centres make that."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table
from rich.text import Text

from daskab.attack.attained import terms
from daskab.bound import sequences
from daskab.bound.contributions import DIRECTIONS, slice_edges
from daskab.bound.nodes import BOUND, FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW, UNIT
from daskab.errors import IntegrityError, JobError
from daskab.report.facts import Facts, facts_of
from daskab.report.verdict import inputs
from daskab.run.reading import RunReading
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
    value: float  #: of the explained input at the centre, in the units of the data
    weight: float


@dataclass(frozen=True)
class Explanation:
    """What is known of one input. Values are in the units of the data, where the model's provenance tells them.

    Attributes
    ----------
    upper_bound, attained : of the change of the latent
    ratio : upper_bound / attained; None where nothing is attained
    rank : 1 for the input with the highest bound
    closed : whether the bound is as close as was asked for, or cannot matter
    rtol : how close that is; None where slices are fixed
    witness_from, witness_to : of this input, at the two points of the pair that attains ``attained``
    others : the values of the other inputs, which are the same at both points
    latent_from, latent_to : at the two points
    centres : those that add most, either way
    """

    run: str
    sealed: bool
    input: str
    number: int
    unit: str
    range: tuple[float, float]
    upper_bound: float
    attained: float
    ratio: float | None
    rank: int
    n_inputs: int
    closed: bool
    rtol: float | None
    sequence: Sequence
    open_part: OpenPart | None
    witness_from: float
    witness_to: float
    latent_from: float
    latent_to: float
    others: dict[str, float]
    centres: tuple[Centre, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def input_of(names: tuple[str, ...], wanted: str) -> int:
    """Number of the input that a person calls by its name or by its number, from 0.

    Raises
    ------
    JobError
        If it is neither.
    """
    if wanted in names:
        return names.index(wanted)
    if wanted.isascii() and wanted.isdigit() and int(wanted) < len(names):
        return int(wanted)
    close = difflib.get_close_matches(wanted, names, 1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    raise JobError(f"INPUT: {wanted!r} is neither the name of an input nor a number from 0 to {len(names) - 1}{meant}")


def explain(reading: RunReading, d: int) -> Explanation:
    """Explain input ``d`` of a run."""
    model, certificate = reading.model, reading.certificate
    facts = facts_of(model)
    x, x_prime = reading.witnesses.pair(d)
    before, after = facts.original(x), facts.original(x_prime)
    upper, attained = float(certificate.upper_bound[d]), float(certificate.attained[d])
    latent = model.latent(np.stack([x, x_prime]))
    edges = facts.original(np.stack([model.lower, model.upper]))[:, d]
    sequence = deciding_sequence(reading, facts, d)
    return Explanation(
        run=reading.folder.name,
        sealed=reading.sealed,
        input=model.input_names[d],
        number=d,
        unit=facts.units[d],
        range=(float(edges[0]), float(edges[1])),
        upper_bound=upper,
        attained=attained,
        ratio=upper / attained if attained > 0.0 else None,
        rank=1 + int(np.sum(certificate.upper_bound > upper)),
        n_inputs=model.n_inputs,
        closed=bool(np.all(reading.units.status[:, d] == CLOSED)),
        rtol=certificate.rtol,
        sequence=sequence,
        open_part=None if sequence.enhanced else highest_open(reading, facts, d),
        witness_from=float(before[d]),
        witness_to=float(after[d]),
        latent_from=float(latent[0]),
        latent_to=float(latent[1]),
        others={name: float(v) for j, (name, v) in enumerate(zip(model.input_names, before, strict=True)) if j != d},
        centres=driving_centres(reading, facts, d),
    )


def deciding_sequence(reading: RunReading, facts: Facts, d: int) -> Sequence:
    """The sequence whose bound is the input's: of the first slices, or of an enhancement that proved less."""
    evidence, slices = reading.space.evidence, reading.question.slices
    bound = reading.units.bound[:, d]
    upper = float(reading.certificate.upper_bound[d])
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


def driving_centres(reading: RunReading, facts: Facts, d: int) -> tuple[Centre, ...]:
    """The centres whose terms change most between the two points of the pair, the largest first."""
    model = reading.model
    x, x_prime = reading.witnesses.pair(d)
    adds = terms(model, x_prime)[0] - terms(model, x)[0]
    most = np.argsort(-np.abs(adds), kind="stable")[:MOST_CENTRES].tolist()
    values = facts.original(model.centres)[:, d]
    return tuple(Centre(i, float(adds[i]), float(values[i]), float(model.weights[i])) for i in most)


def describe_explanation(it: Explanation) -> Group:
    """The explanation in words and two tables."""
    unit = f" ({it.unit})" if it.unit else ""
    lines = [
        f"{it.input} (input {it.number} of run {it.run}), from {it.range[0]:.6g} to {it.range[1]:.6g}{unit}",
        *([] if it.sealed else ["  Incomplete: this run is not sealed; what is said is what is proved so far."]),
        f"  Bound: {it.upper_bound:.6g}; changing {it.input} alone changes the latent by no more. "
        f"Rank {it.rank} of {inputs(it.n_inputs)}.",
        f"  Attained: {it.attained:.6g}, {gap(it)}.",
        f"  {'Closed' if it.closed else 'Open'}: {closed_words(it)}",
        f"  The bound is that of {sequence_words(it)}",
    ]
    if it.open_part is not None:
        part = it.open_part
        lines.append(
            f"  Of {part.parts} parts left open the highest, {part.bound:.6g}, is of paths {path(part.from_range)} "
            f"to {path(part.to_range, '')}."
        )
    lines.append(
        f"  The pair: {it.input} from {it.witness_from:.6g} to {it.witness_to:.6g}, "
        f"latent {it.latent_from:.6g} to {it.latent_to:.6g}, the other inputs as they are here:"
    )
    others = Table(box=None, pad_edge=False)
    others.add_column("  other input")
    others.add_column("value", justify="right")
    for name, value in it.others.items():
        others.add_row(Text(f"  {name}"), f"{value:.6g}")
    centres = Table(box=None, pad_edge=False)
    centres.add_column("  centre")
    for column in ("adds", "of the change", f"its {it.input}", "weight"):
        centres.add_column(Text(column), justify="right")
    change = it.latent_to - it.latent_from
    for one in it.centres:
        share = f"{one.adds / change:.0%}" if change else ""
        centres.add_row(f"  {one.centre}", f"{one.adds:.6g}", share, f"{one.value:.6g}", f"{one.weight:.6g}")
    return Group(Text("\n".join(lines)), others, Text("  The centres that make most of that change:"), centres)


def path(cell: tuple[float, float], start: str = "from ") -> str:
    """A range in words."""
    return f"{start}{cell[0]:.6g}..{cell[1]:.6g}"


def sequence_words(it: Explanation) -> str:
    """The sequence that gives the bound, as the end of a sentence."""
    s = it.sequence
    cut = f"{inputs(s.slices, 'slice')}{', of an enhancement' if s.enhanced else ''}"
    move = "rises" if s.direction > 0 else "falls"
    if s.from_slice == s.to_slice:
        return f"paths on which it {move} inside slice {s.from_slice} ({path(s.from_range, '')}) of {cut}."
    return (
        f"paths on which it {move} from slice {s.from_slice} ({path(s.from_range, '')}) to slice {s.to_slice} "
        f"({path(s.to_range, '')}) of {cut}."
    )


def gap(it: Explanation) -> str:
    """How far the bound lies above what is attained."""
    if it.ratio is None:
        return "so there is nothing to compare the bound with"
    return f"so the bound is at most {100 * (it.ratio - 1):.3g} % too high (ratio {it.ratio:.6g})"


def closed_words(it: Explanation) -> str:
    """What closed and open mean."""
    if not it.closed:
        return "more time or a larger budget may lower this bound."
    if it.rtol is None:
        return "all its sequences are bounded; more slices may lower this bound."
    if it.ratio is None or it.ratio > 1.0 + it.rtol:
        return "inputs that attain more decide how many are required; a lower bound of this one would change nothing."
    return f"the bound is within {100 * it.rtol:.3g} % of what is attained, as was asked for."
