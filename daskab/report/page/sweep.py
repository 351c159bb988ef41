"""What a page says of a sweep: accuracy and certified robustness over what was swept, and the Pareto set."""

from __future__ import annotations

import math
import warnings
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from daskab.errors import IntegrityError, one_line
from daskab.files import storage_options
from daskab.report.page.drawing import ATTACK, INK, PROVED, canvas, picture, style
from daskab.report.page.parts import Part, Picture, Section, Table, number, shortened
from daskab.report.sweep import SAID, pareto

Array = NDArray[Any]

FIRST_AXES = ("lengthscale", "inducing_points")
"""What is put along the horizontal axis if it was swept over."""

MOST_PANELS = 8

BANDS = {2: "#e3eef9", 3: "#bcd7ee", 4: "#8fbbe0", 5: "#5b97cc"}
"""Shades of the regions where so many inputs are certified; the last is of more, too."""


def read_sweep(path: Path) -> xr.Dataset:
    """Read the dataset of a sweep.

    Raises
    ------
    IntegrityError
        If it is none, or damaged.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dataset: xr.Dataset = xr.open_zarr(str(path), storage_options=storage_options(path)).load()
    except (LookupError, ValueError, TypeError, AttributeError, RuntimeError, OSError) as error:
        raise IntegrityError(f"{path}: not a readable sweep ({one_line(error)}); run its job again") from None
    lacks = sorted({*SAID, "model"} - set(dataset.variables))
    if lacks:
        raise IntegrityError(f"{path}: is not a sweep, it lacks {lacks[0]}")
    return dataset


def sweep_section(dataset: xr.Dataset, anchor: str) -> Section:
    """The section of a sweep."""
    flat = Points(dataset)
    job = shortened(str(dataset.attrs.get("job", "")), 60)
    with style():
        pictures = (*over_axis(dataset, flat, anchor), trade(flat, anchor))
    left = int(np.sum(~flat.complete))
    return Section(
        anchor=anchor,
        title=f"Sweep {job}: {flat.complete.size} models",
        verdict=sweep_verdict(flat),
        warning=f"Incomplete: {left} of {flat.complete.size} models are not certified to the end." if left else "",
        complete=left == 0,
        parts=(
            Part("Accuracy and robustness", pictures=tuple(p for p in pictures if p is not None)),
            Part("All models", tables=(sweep_table(flat),)),
        ),
    )


class Points:
    """The points of a sweep one after another, as arrays (n,) each.

    Attributes
    ----------
    labels : (n,) of dicts, what was swept over and its value
    robust : certified inputs, infinite where no attack exists
    best : whether no other beats it in accuracy and certified inputs at once
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        def values(name: str) -> Array:
            return np.asarray(dataset[name].transpose(*dims).values).reshape(-1)

        dims = [str(name) for name in dataset.certified.dims]
        self.dims = [name for name in dims if name != "model" or dataset.sizes["model"] > 1]
        each = [[{name: one} for one in dataset[name].values.tolist()] for name in dims]
        self.labels: list[dict[str, Any]] = [
            {key: value for part in parts for key, value in part.items() if key in self.dims}
            for parts in product(*each)
        ]
        self.accuracy, self.attack = values("accuracy").astype(float), values("attack").astype(float)
        self.none, self.complete = values("no_attack_exists").astype(bool), values("complete").astype(bool)
        self.robust = np.where(self.none, math.inf, values("certified").astype(float))
        self.run = values("run")
        self.best = np.array(pareto(zip(self.accuracy.tolist(), self.robust.tolist(), strict=True)))

    def name(self, i: int) -> str:
        """A point in words."""
        return ", ".join(f"{key.replace('_', ' ')} {_said(value)}" for key, value in self.labels[i].items())


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def robustness(value: float) -> str:
    """Certified inputs in words."""
    return "no attack exists" if value == math.inf else "" if math.isnan(value) else f"{value:.0f}"


def sweep_verdict(flat: Points) -> tuple[str, ...]:
    """What came of it: the most robust, the most accurate, the Pareto set."""
    lines = []
    if not np.all(np.isnan(flat.robust)):
        top = int(np.nanargmax(flat.robust))
        said = "no attack exists" if flat.none[top] else f"{robustness(flat.robust[top])} inputs are certified"
        lines.append(f"Most robust: with {flat.name(top)}, {said}{_accuracy(flat, top)}.")
    if not np.all(np.isnan(flat.accuracy)):
        top = int(np.nanargmax(flat.accuracy))
        certified = robustness(flat.robust[top]) or "nothing"
        lines.append(f"Most accurate: with {flat.name(top)}{_accuracy(flat, top)}, {certified} certified.")
        best = int(np.sum(flat.best))
        lines.append(
            f"{best} of {flat.best.size} are in the Pareto set: no other is better in one and no worse in the other."
        )
    return tuple(lines) or ("Nothing is known yet.",)


def _accuracy(flat: Points, i: int) -> str:
    return "" if math.isnan(flat.accuracy[i]) else f", accuracy {flat.accuracy[i]:.4g}"


def sweep_table(flat: Points) -> Table:
    """Every point."""
    rows = []
    for i, label in enumerate(flat.labels):
        known = (
            "" if math.isnan(flat.accuracy[i]) else number(flat.accuracy[i]),
            robustness(flat.robust[i]) + ("" if flat.complete[i] else " so far" if robustness(flat.robust[i]) else ""),
            "" if math.isnan(flat.attack[i]) else f"{flat.attack[i]:.0f}",
            "yes" if flat.best[i] else "",
            str(flat.run[i]),
        )
        rows.append((*(_said(value) for value in label.values()), *known) if label else known)
    head = (*(name.replace("_", " ") for name in flat.dims), "accuracy", "certified", "attack", "Pareto set", "run")
    return Table("All models of the sweep", head, rows)


def over_axis(dataset: xr.Dataset, flat: Points, anchor: str) -> list[Picture]:
    """Accuracy and certified inputs over one axis, a picture for each combination of the others."""
    long = [name for name in flat.dims if dataset.sizes[name] > 1]
    along = next((name for name in (*FIRST_AXES, *long[::-1]) if name in long), None)
    if along is None:
        return []
    groups: dict[str, list[int]] = {}
    for i, label in enumerate(flat.labels):
        others = ", ".join(f"{k.replace('_', ' ')} {_said(v)}" for k, v in label.items() if k != along and k in long)
        groups.setdefault(others, []).append(i)
    return [
        panel(flat, along, members, others, f"{anchor}-{number}")
        for number, (others, members) in enumerate(list(groups.items())[:MOST_PANELS])
    ]


def panel(flat: Points, along: str, members: list[int], others: str, name: str) -> Picture:
    """One picture: accuracy above, certified inputs and the attack below, over one axis."""
    values = [flat.labels[i][along] for i in members]
    at, edges, log = positions(values)
    accuracy, robust, attack = flat.accuracy[members], flat.robust[members], flat.attack[members]
    known = not np.all(np.isnan(accuracy))
    figure, axes = canvas(4.2 if known else 2.9, 2 if known else 1, 1, share_x=True)
    lower, handles = axes[-1], list[Line2D | Patch]()
    for ax in axes:
        for count, start, end in bands(robust, edges):
            ax.axvspan(start, end, color=BANDS[count], linewidth=0.0, zorder=0)
    ringed = flat.best[members]
    if known:
        plotted(axes[0], at, accuracy, INK, "o", "-")
        ring(axes[0], at[ringed], accuracy[ringed])
        axes[0].set_ylabel("accuracy")
        handles.append(Line2D([], [], color=INK, marker="o", markersize=4, label="accuracy"))
    finite = np.where(np.isfinite(robust), robust, np.nan)
    plotted(lower, at, finite, PROVED, "s", "-")
    plotted(lower, at, attack, ATTACK, "^", "--")
    handles += [
        Line2D([], [], color=PROVED, marker="s", markersize=4, label="inputs certified"),
        Line2D([], [], color=ATTACK, marker="^", markersize=4, linestyle="--", label="inputs the attack changes"),
    ]
    if np.any(flat.none[members]):
        everywhere = at[flat.none[members]]
        lower.plot(everywhere, np.full(everywhere.size, 0.95), "*", color=PROVED, transform=lower.get_xaxis_transform())
        handles.append(Line2D([], [], color=PROVED, marker="*", linestyle="", label="no attack exists"))
    ring(lower, at[ringed], finite[ringed])
    if np.any(ringed):
        handles.append(ring_mark())
    there = sorted({count for count, _, _ in bands(robust, edges)})
    handles += [Patch(color=BANDS[n], label=f"{n}{' or more' if n == 5 else ''} inputs certified") for n in there]
    lower.set_ylabel("inputs")
    lower.set_ylim(0.0, 1.2 * float(np.nanmax([*finite, *attack, 1.0])))
    lower.yaxis.set_major_locator(MaxNLocator(integer=True))
    if log:
        lower.set_xscale("log")
    lower.set_xlim(edges[0], edges[-1])
    lower.set_xticks(at, [shortened(_said(value), 10) for value in values], rotation=45 if len(values) > 7 else 0)
    lower.minorticks_off()
    lower.set_xlabel(along.replace("_", " "))
    figure.legend(handles=handles, loc="outside lower left", ncols=2, fontsize=8.5)
    said = [
        f"{_said(value)}: {robustness(count) or 'not known'}{'' if math.isnan(a) else f' and {a:.3g}'}"
        for value, count, a in zip(values, robust.tolist(), accuracy.tolist(), strict=True)
    ]
    words = f"Inputs certified{' and accuracy' if known else ''} at each {along.replace('_', ' ')}: {'; '.join(said)}."
    title = f"Over the {along.replace('_', ' ')}{f', {others}' if others else ''}"
    return picture(name, title, words, figure)


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


def plotted(axes: Axes, at: Array, values: Array, colour: str, marker: str, line: str) -> None:
    """A line through what is known."""
    axes.plot(at, values, color=colour, marker=marker, markersize=4.5, linestyle=line, linewidth=1.3)


def ring(axes: Axes, at: Array, values: Array) -> None:
    """Mark points as of the Pareto set."""
    axes.plot(at, values, linestyle="", marker="o", markersize=11, markerfacecolor="none", color=INK, clip_on=False)


def ring_mark() -> Line2D:
    """That mark in a legend."""
    return Line2D([], [], linestyle="", marker="o", markersize=9, markerfacecolor="none", color=INK, label="Pareto set")


def trade(flat: Points, anchor: str) -> Picture | None:
    """Accuracy against certified inputs, the Pareto set marked; None where there is nothing to compare."""
    known = np.isfinite(flat.accuracy) & ~np.isnan(flat.robust)
    if not np.any(known):
        return None
    top = float(np.max(flat.robust[np.isfinite(flat.robust)], initial=1.0))
    height = np.where(np.isinf(flat.robust), top + 1.0, flat.robust)
    figure, (axes,) = canvas(3.2)
    axes.plot(flat.accuracy[known], height[known], linestyle="", marker="o", color=PROVED, label="a model", alpha=0.7)
    ring(axes, flat.accuracy[flat.best], height[flat.best])
    axes.set_xlabel("accuracy")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_ylabel("inputs certified")
    axes.set_ylim(0.0, float(height[known].max()) + 0.6)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if np.any(flat.none[known]):
        axes.axhline(top + 1.0, color=PROVED, linewidth=0.8, linestyle=":")
        axes.annotate("no attack exists", (1.0, top + 1.0), (0, 3), xycoords=("axes fraction", "data"),
                      textcoords="offset points", ha="right", fontsize=9)  # fmt: skip
    handles = [Line2D([], [], linestyle="", marker="o", color=PROVED, alpha=0.7, label="a model"), ring_mark()]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    best = [
        f"{flat.name(i)} ({flat.accuracy[i]:.3g}, {robustness(flat.robust[i])})"
        for i in np.flatnonzero(flat.best).tolist()
    ]
    words = f"The Pareto set, with accuracy and inputs certified: {'; '.join(best)}."
    return picture(f"{anchor}-pareto", "Accuracy against robustness", words, figure)
