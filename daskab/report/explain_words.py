"""The explanation of a change in words and tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group
from rich.table import Table
from rich.text import Text

from daskab.report.explain import Explanation, Move
from daskab.report.verdict import inputs


def describe_explanation(it: Explanation) -> Group:
    """The explanation in words and tables."""
    if it.frozen:
        return Group(Text("\n".join(lines(it))))
    others = Table(box=None, pad_edge=False)
    others.add_column("  other input")
    others.add_column("value", justify="right")
    for name, value in it.others.items():
        others.add_row(Text(f"  {name}"), f"{value:.6g}")
    alone = len(it.moves) == 1 and it.moves[0].input == it.change
    centres = Table(box=None, pad_edge=False)
    centres.add_column("  centre")
    for column in ("adds", "of the change", *([f"its {it.change}"] if alone else []), "weight"):
        centres.add_column(Text(column), justify="right")
    change = it.latent_to - it.latent_from
    for one in it.centres:
        share = f"{one.adds / change:.0%}" if change else ""
        values = [f"{one.values[0]:.6g}"] if alone else []
        centres.add_row(f"  {one.centre}", f"{one.adds:.6g}", share, *values, f"{one.weight:.6g}")
    text = Text("\n".join(lines(it)))
    return Group(text, others, Text("  The centres that make most of that change:"), centres)


def lines(it: Explanation) -> Iterator[str]:
    """What is said before the tables."""
    only = it.moves[0] if len(it.moves) == 1 else None
    where = "" if only is None else f", from {only.range[0]:.6g} to {only.range[1]:.6g}{unit(only)}"
    kind = "input" if only is not None and only.input == it.change else "change"
    yield f"{it.change} ({kind} {it.number} of run {it.run}){where}"
    if not it.sealed:
        yield "  Incomplete: this run is not sealed; what is said is what is proved so far."
    if it.frozen:
        yield "  It is frozen: an attacker cannot change it, so its bound is 0."
        return
    yield (
        f"  Bound: {it.upper_bound:.6g}; changing {it.change} alone changes the latent by no more. "
        f"Rank {it.rank} of {inputs(it.n_changes, kind)}."
    )
    yield f"  Attained: {it.attained:.6g}, {gap(it)}."
    if it.closed is not None:
        yield f"  {'Closed' if it.closed else 'Open'}: {closed_words(it)}"
    yield from bound_words(it)
    if only is not None:
        yield (
            f"  The pair: {only.input} from {only.start:.6g} to {only.end:.6g}, "
            f"latent {it.latent_from:.6g} to {it.latent_to:.6g}, the other inputs as they are here:"
        )
        return
    yield f"  The pair: latent {it.latent_from:.6g} to {it.latent_to:.6g}, {len(it.moves) or 'no'} inputs move:"
    for move in it.moves:
        yield f"    {move.input} from {move.start:.6g} to {move.end:.6g}{unit(move)}"
    yield "  The inputs that are not of it, as they are at both points:"


def bound_words(it: Explanation) -> Iterator[str]:
    """Where the bound comes from."""
    if it.sequence is not None:
        yield f"  The bound is that of {sequence_words(it)}"
    if it.open_part is not None:
        top = it.open_part
        yield (
            f"  Of {top.parts} parts left open the highest, {top.bound:.6g}, is of paths {path(top.from_range)} "
            f"to {path(top.to_range, '')}."
        )
    if it.searched is not None:
        if it.searched:
            yield f"  The bound is that of a search over its inputs together, which opened {it.searched} nodes."
        else:
            yield "  The bound is the sum of what its inputs do alone, or less: no search over them is done."
    if it.parts:
        yield "  The kernel is replaced by a sum; the bound is what its parts come to, each a run of its own:"
        for part in it.parts:
            yield f"    {part.upper_bound:.6g} of {part.run}, of {part.times:.3g} times the lengthscale"
        yield f"    {it.replaced:.6g} for what the sum leaves out"


def unit(move: Move) -> str:
    """The unit of an input, if that is known."""
    return f" ({move.unit})" if move.unit else ""


def path(cell: tuple[float, float], start: str = "from ") -> str:
    """A range in words."""
    return f"{start}{cell[0]:.6g}..{cell[1]:.6g}"


def sequence_words(it: Explanation) -> str:
    """The sequence that gives the bound, as the end of a sentence."""
    s = it.sequence
    assert s is not None
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
