"""Figures of a sweep: certified inputs over what was swept, beside accuracy or time, with the regions shaded."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from daskab.report.page.drawing import ATTACK, BESIDE, INK, PROVED, canvas, picture
from daskab.report.page.parts import Picture, Table, number, shortened
from daskab.report.page.points import Points, in_words, named, robustness, spaced

Array = NDArray[Any]

FIRST_AXES = ("lengthscale", "inducing_points")
"""What is put along the horizontal axis if it was swept over."""

SLICES = "slices"
"""They change no model and no accuracy, but what it costs to bound one, and how tightly."""

MOST_PANELS = 8

BASELINE = "logistic regression"

BANDS = {2: "#e3eef9", 3: "#bcd7ee", 4: "#8fbbe0", 5: "#5b97cc"}
"""Shades of the regions where so many inputs are certified; the last is of more, too."""


def over_axis(flat: Points, anchor: str) -> list[Picture]:
    """Accuracy and certified inputs over one axis, a picture for each combination of the others."""
    long = [name for name in flat.long() if name != SLICES]
    along = next((name for name in (*FIRST_AXES, *long[::-1]) if name in long), None)
    if along is None:
        return []
    return [
        panel(flat, along, members, others, f"{anchor}-{number}")
        for number, (others, members) in enumerate(groups(flat, along))
    ]


def over_slices(flat: Points, anchor: str) -> list[Picture]:
    """Certified inputs and seconds over the slices, a picture for each combination of the others."""
    if SLICES not in flat.long():
        return []
    return [
        panel(flat, SLICES, members, others, f"{anchor}-slices-{number}", slices_table(flat, members, others))
        for number, (others, members) in enumerate(groups(flat, SLICES))
    ]


def groups(flat: Points, along: str) -> list[tuple[str, list[int]]]:
    """Points that differ in what is ``along`` the axis alone, and in words what they have in common."""
    found: dict[str, list[int]] = {}
    long = flat.long()
    for i, label in enumerate(flat.labels):
        others = named({key: value for key, value in label.items() if key != along and key in long})
        found.setdefault(others, []).append(i)
    return list(found.items())[:MOST_PANELS]


def slices_table(flat: Points, members: list[int], others: str) -> Table:
    """The numbers of a picture over the slices."""
    rows = [
        (
            in_words(flat.labels[i][SLICES]),
            robustness(flat.robust[i]),
            "" if math.isnan(flat.attack[i]) else f"{flat.attack[i]:.0f}",
            "" if math.isnan(flat.bounds[i]) else number(flat.bounds[i]),
            "" if math.isnan(flat.seconds[i]) else f"{flat.seconds[i]:,.1f}",
        )
        for i in members
    ]
    head = ("slices", "certified", "attack", "sum of bounds", "seconds")
    return Table(f"Slices against time{f', {others}' if others else ''}", head, rows)


def panel(flat: Points, along: str, members: list[int], others: str, name: str, table: Table | None = None) -> Picture:
    """One picture over one axis: accuracy above, or seconds over the slices; certified inputs and the attack below."""
    timed = along == SLICES
    values = [flat.labels[i][along] for i in members]
    at, edges, log = positions(values)
    what, above = ("seconds", flat.seconds) if timed else ("accuracy", flat.accuracy)
    above, robust, attack = above[members], flat.robust[members], flat.attack[members]
    known = not np.all(np.isnan(above))
    figure, axes = canvas(4.2 if known else 2.9, 2 if known else 1, 1, share_x=True)
    lower, handles = axes[-1], list[Line2D | Patch]()
    for ax in axes:
        for count, start, end in bands(robust, edges):
            ax.axvspan(start, end, color=BANDS[count], linewidth=0.0, zorder=0)
    if known:
        handles.append(plotted(axes[0], at, above, INK, "o", "-", what))
        axes[0].set_ylabel(what)
        if timed and np.nanmin(above) > 0.0 and np.nanmax(above) > 20.0 * np.nanmin(above):
            axes[0].set_yscale("log")
            axes[0].yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))  # a power of ten would be in TeX
            axes[0].yaxis.set_minor_formatter(NullFormatter())
        elif timed:
            axes[0].set_ylim(0.0, 1.1 * float(np.nanmax(above)) or 1.0)
    finite = np.where(np.isfinite(robust), robust, np.nan)
    top = [*finite, *attack, 1.0]
    if flat.has_baseline and not timed:
        beside = flat.baseline_robust[members]
        if known:
            plotted(axes[0], at, flat.baseline_accuracy[members], BESIDE, "D", ":", BASELINE)
        # First, and larger: what lies over it leaves it to be seen.
        handles.append(plotted(lower, at, np.where(np.isfinite(beside), beside, np.nan), BESIDE, "D", ":", BASELINE))
        none_exists(lower, at[beside == math.inf], BESIDE, 0.88)
        top += beside[np.isfinite(beside)].tolist()
    handles.append(plotted(lower, at, finite, PROVED, "s", "-", "inputs certified"))
    handles.append(plotted(lower, at, attack, ATTACK, "^", "--", "inputs the attack changes"))
    if np.any(flat.none[members]):
        handles.append(none_exists(lower, at[flat.none[members]], PROVED, 0.95))
    if not timed and np.any(ringed := flat.best[members]):
        ring(axes[0], at[ringed], above[ringed])
        ring(lower, at[ringed], finite[ringed])
        handles.append(ring_mark())
    there = sorted({count for count, _, _ in bands(robust, edges)})
    handles += [Patch(color=BANDS[n], label=f"{n}{' or more' if n == 5 else ''} inputs certified") for n in there]
    lower.set_ylabel("inputs")
    lower.set_ylim(0.0, 1.2 * float(np.nanmax(top)))
    lower.yaxis.set_major_locator(MaxNLocator(integer=True))
    if log:
        lower.set_xscale("log")
    lower.set_xlim(edges[0], edges[-1])
    lower.set_xticks(at, [shortened(in_words(value), 10) for value in values], rotation=45 if len(values) > 7 else 0)
    lower.minorticks_off()
    lower.set_xlabel("slices an input" if timed else spaced(along))
    figure.legend(handles=handles, loc="outside lower left", ncols=2, fontsize=8.5)
    return picture(name, title(along, others), words(flat, along, members, what if known else ""), figure, table)


def title(along: str, others: str) -> str:
    """What a picture over an axis is called."""
    said = "Slices against time" if along == SLICES else f"Over the {spaced(along)}"
    return f"{said}{f', {others}' if others else ''}"


def words(flat: Points, along: str, members: list[int], what: str) -> str:
    """What a picture over an axis shows, ``what`` beside the certified inputs."""
    said = []
    for i in members:
        above = flat.seconds[i] if what == "seconds" else flat.accuracy[i]
        beside = f" and {above:.3g}" if what and not math.isnan(above) else ""
        said.append(f"{in_words(flat.labels[i][along])}: {robustness(flat.robust[i]) or 'not known'}{beside}")
    text = f"Inputs certified{f' and {what}' if what else ''} by {spaced(along)}: {'; '.join(said)}."
    return text if what == "seconds" or not flat.has_baseline else f"{text} {baseline_words(flat, members)}"


def baseline_words(flat: Points, members: list[int] | slice = slice(None)) -> str:
    """What the baseline beside some points comes to."""
    accuracy, robust = (ends(values[members]) for values in (flat.baseline_accuracy, flat.baseline_robust))
    if not robust:
        return "Of the logistic regression nothing is known."
    certified = " to ".join(robustness(value) for value in robust)
    certified += "" if robust[-1] == math.inf else " inputs certified"
    shares = " to ".join(f"{value:.4g}" for value in accuracy)
    return f"A logistic regression on the same data: {f'accuracy {shares}, ' if shares else ''}{certified}, exactly."


def ends(values: Array) -> list[float]:
    """The least and the largest of the values that are known, one if they are the same."""
    there = values[~np.isnan(values)]
    return sorted({float(there.min()), float(there.max())}) if there.size else []


def bands(robust: Array, edges: Array) -> list[tuple[int, float, float]]:
    """The regions where two or more inputs are certified: how many, as in `BANDS`, from where to where."""
    found = []
    shades = [int(min(count, max(BANDS))) if count >= 2 else 0 for count in robust.tolist()]
    start = 0
    for shade, members in groupby(shades):
        stop = start + len(list(members))
        if shade:
            found.append((shade, float(edges[start]), float(edges[stop])))
        start = stop
    return found


def positions(values: list[Any]) -> tuple[Array, Array, bool]:
    """Where values stand on an axis (n,), the edges between them (n + 1,), and whether the axis is logarithmic."""
    numeric = all(isinstance(value, int | float) for value in values) and sorted(values) == values
    at = np.array(values if numeric else range(len(values)), dtype=float)
    log = numeric and bool(np.all(at > 0.0)) and at[-1] / at[0] > 5.0
    scaled = np.log(at) if log else at
    middle = (scaled[1:] + scaled[:-1]) / 2.0
    edges = np.concatenate([[2 * scaled[0] - middle[0]], middle, [2 * scaled[-1] - middle[-1]]])
    return at, np.exp(edges) if log else edges, log


def plotted(axes: Axes, at: Array, values: Array, colour: str, marker: str, line: str, label: str) -> Line2D:
    """A line through what is known; the same in a legend."""
    look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.5, "linestyle": line, "linewidth": 1.3}
    if colour == BESIDE:
        look |= {"markersize": 7.5, "markerfacecolor": "none"}
    axes.plot(at, values, **look, clip_on=False)
    return Line2D([], [], **look, label=label)


def none_exists(axes: Axes, at: Array, colour: str, height: float) -> Line2D:
    """Stars at the top, where no attack exists; the same in a legend."""
    look: dict[str, Any] = {"color": colour, "marker": "*", "linestyle": ""}
    axes.plot(at, np.full(at.size, height), **look, transform=axes.get_xaxis_transform())
    return Line2D([], [], **look, label="no attack exists")


def ring(axes: Axes, at: Array, values: Array) -> None:
    """Mark points as of the Pareto set."""
    axes.plot(at, values, linestyle="", marker="o", markersize=11, markerfacecolor="none", color=INK, clip_on=False)


def ring_mark() -> Line2D:
    """That mark in a legend."""
    return Line2D([], [], linestyle="", marker="o", markersize=9, markerfacecolor="none", color=INK, label="Pareto set")


def trade(flat: Points, anchor: str) -> Picture | None:
    """Accuracy against certified inputs, the Pareto set marked; None where accuracies do not differ."""
    shown = np.isfinite(flat.accuracy) & ~np.isnan(flat.robust)
    if not np.any(shown) or len(ends(np.append(flat.accuracy[shown], flat.baseline_accuracy))) < 2:
        return None
    every = np.concatenate([flat.robust[shown], flat.baseline_robust])
    top = float(np.max(every[np.isfinite(every)], initial=1.0))

    def height(robust: Array) -> Array:
        return np.where(np.isinf(robust), top + 1.0, robust)

    figure, (axes,) = canvas(3.2)
    axes.plot(flat.accuracy[shown], height(flat.robust[shown]), linestyle="", marker="o", color=PROVED, alpha=0.7)
    handles = [Line2D([], [], linestyle="", marker="o", color=PROVED, alpha=0.7, label="a model"), ring_mark()]
    ring(axes, flat.accuracy[flat.best], height(flat.robust[flat.best]))
    if flat.has_baseline:
        look: dict[str, Any] = {"linestyle": "", "marker": "D", "markersize": 7.5, "color": BESIDE}
        look["markerfacecolor"] = "none"
        axes.plot(flat.baseline_accuracy, height(flat.baseline_robust), **look)
        handles.append(Line2D([], [], **look, label=BASELINE))
    axes.set_xlabel("accuracy")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_ylabel("inputs certified")
    axes.set_ylim(0.0, float(np.nanmax(height(every))) + 0.6)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if np.any(np.isinf(every)):
        axes.axhline(top + 1.0, color=PROVED, linewidth=0.8, linestyle=":")
        axes.annotate("no attack exists", (1.0, top + 1.0), (0, 3), xycoords=("axes fraction", "data"),
                      textcoords="offset points", ha="right", fontsize=9)  # fmt: skip
    figure.legend(handles=handles, loc="outside upper left", ncols=3)
    best = [
        f"{flat.name(i)} ({flat.accuracy[i]:.3g}, {robustness(flat.robust[i])})"
        for i in np.flatnonzero(flat.best).tolist()
    ]
    said = f"The Pareto set, with accuracy and inputs certified: {'; '.join(best)}."
    said += f" {baseline_words(flat)}" if flat.has_baseline else ""
    return picture(f"{anchor}-pareto", "Accuracy against robustness", said, figure)
