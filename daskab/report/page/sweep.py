"""What a page says of a sweep: accuracy and certified robustness over what was swept, and the Pareto set."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from daskab.report.page.drawing import style
from daskab.report.page.panels import BASELINE, baseline_words, over_axis, over_slices, trade
from daskab.report.page.parts import Part, Section, Table, shortened
from daskab.report.page.points import Array, Points, in_words, robustness, spaced


def sweep_section(dataset: xr.Dataset, anchor: str) -> Section:
    """The section of a sweep."""
    flat = Points(dataset)
    job = shortened(str(dataset.attrs.get("job", "")), 60)
    with style():
        pictures = (*over_axis(flat, anchor), trade(flat, anchor))
        timed = over_slices(flat, anchor)
    drawn = (
        Part("Accuracy and robustness", pictures=tuple(p for p in pictures if p is not None)),
        Part("Slices against time", "Seconds are those of all tasks of a model together.", pictures=tuple(timed)),
    )
    left = int(np.sum(~flat.complete))
    return Section(
        anchor=anchor,
        title=f"Sweep {job}: {flat.complete.size} models",
        verdict=sweep_verdict(flat),
        warning=f"Incomplete: {left} of {flat.complete.size} models are not certified to the end." if left else "",
        complete=left == 0,
        parts=(*(part for part in drawn if part.pictures), Part("All models", tables=(sweep_table(flat),))),
    )


def sweep_verdict(flat: Points) -> tuple[str, ...]:
    """What came of it: the most robust, the most accurate, the Pareto set, and the baseline beside them."""
    lines = []
    if not np.all(np.isnan(flat.robust)):
        top = _first(flat.robust, flat.accuracy)
        said = "no attack exists" if flat.none[top] else f"{robustness(flat.robust[top])} inputs are certified"
        lines.append(f"Most robust, with {flat.name(top)}: {said}{_accuracy(flat, top)}.")
    if not np.all(np.isnan(flat.accuracy)):
        top = _first(flat.accuracy, flat.robust)
        certified = robustness(flat.robust[top]) or "nothing"
        lines.append(f"Most accurate, with {flat.name(top)}: {flat.accuracy[top]:.4g}, {certified} certified.")
        best = int(np.sum(flat.best))
        lines.append(
            f"{best} of {flat.best.size} are in the Pareto set: no other is better in one and no worse in the other."
        )
    if flat.has_baseline:
        lines.append(baseline_words(flat))
    return tuple(lines) or ("Nothing is known yet.",)


def _first(values: Array, others: Array) -> int:
    """Where the largest of the values is that are known; of several, the one with the largest of the others."""
    by_both = [np.where(np.isnan(one), math.inf, -one) for one in (others, values)]
    return int(np.lexsort(by_both)[0])


def _accuracy(flat: Points, i: int) -> str:
    return "" if math.isnan(flat.accuracy[i]) else f", accuracy {flat.accuracy[i]:.4g}"


def sweep_table(flat: Points) -> Table:
    """Every point, and the baseline beside it if there is one."""
    rows = []
    for i, label in enumerate(flat.labels):
        known: tuple[str, ...] = (
            _share(flat.accuracy[i]),
            robustness(flat.robust[i]) + ("" if flat.complete[i] else " so far" if robustness(flat.robust[i]) else ""),
            "" if math.isnan(flat.attack[i]) else f"{flat.attack[i]:.0f}",
            "yes" if flat.best[i] else "",
        )
        if flat.has_baseline:
            known = (*known, robustness(flat.baseline_robust[i]), _share(flat.baseline_accuracy[i]))
        rows.append((*(in_words(value) for value in label.values()), *known, str(flat.run[i])))
    head = (*map(spaced, flat.dims), "accuracy", "certified", "attack", "Pareto set")
    beside = (BASELINE, "its accuracy") if flat.has_baseline else ()
    return Table("All models of the sweep", (*head, *beside, "run"), rows)


def _share(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"
