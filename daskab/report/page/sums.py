"""How many inputs: the strip of what is proved and what an attack does, and the sums that prove it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from daskab.bound.topn import largest_sums, lower_side
from daskab.report.page.drawing import ATTACK, FAINT, INK, PROVED, UNKNOWN, canvas, picture
from daskab.report.page.parts import Picture, Table, number
from daskab.report.verdict import inputs
from daskab.run.certificate import Certificate


def sandwich(certificate: Certificate, name: str, noun: str) -> Picture | None:
    """What is proved of every number of changed inputs, as a strip; None where the model has no thresholds."""
    d, attack = len(certificate.input_names), certificate.attack_inputs
    if certificate.delta is None:
        return None
    proved = d if certificate.no_attack_exists else (certificate.inputs_required or 1) - 1
    unknown = (d if attack is None else attack - 1) - proved
    last = d if attack is None else min(d, attack + max(2, attack // 4))
    pieces = [
        (proved, PROVED, "", f"1 to {proved}: proved impossible", "no attack exists"),
        (unknown, UNKNOWN, "////", f"{proved + 1} to {proved + unknown}: not known", "nobody knows"),
        (last - proved - unknown, ATTACK, "", f"{attack} and more: an attack does it", "attack"),
    ]
    figure, (axes,) = canvas(1.75)
    start, legend, rows = 0.5, [], []
    for length, colour, hatch, label, _ in pieces:
        if length > 0:
            look: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "edgecolor": FAINT if hatch else colour}
            axes.barh([0], [length], left=start, height=1.0, linewidth=0.0, **look)
            legend.append(Patch(label=_one(label), linewidth=0.0, **look))
            rows.append(tuple(_one(label).split(": ")))
        start += max(length, 0)
    axes.set_xlim(0.5, last + 0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xticks(strip_ticks((1, proved + 1, attack or last, last), last))
    axes.set_xlabel(f"{noun}s changed at once")
    figure.legend(handles=legend, loc="outside upper left", ncols=1, borderpad=0.0)
    words = "; ".join(": ".join(row) for row in rows) + "."
    title = f"How many {noun}s must change"
    table = Table(title, (f"{noun}s changed", "what is known"), rows)
    return picture(f"{name}-sandwich", title, words, figure, table)


def strip_ticks(marks: tuple[int, ...], last: int) -> list[int]:
    """Every number from 1 to ``last``, or of many only those that are marks, without what would be written over."""
    if last <= 25:
        return list(range(1, last + 1))
    shown: list[int] = []
    for mark in marks:
        if mark <= last and (not shown or mark - shown[-1] >= 0.06 * last):
            shown.append(mark)
    return shown


def _one(label: str) -> str:
    """``3 to 3`` as ``3``."""
    numbers, _, said = label.partition(": ")
    low, _, high = numbers.partition(" to ")
    return f"{low}: {said}" if low == high else label


def curve(certificate: Certificate, name: str, noun: str) -> Picture:
    """Sums of the n largest bounds and of the n largest attained values, against the distance of the thresholds."""
    upper = largest_sums(certificate.upper_bound, towards=math.inf)
    attained = largest_sums(certificate.attained, towards=-math.inf)
    delta, by_sum, best = certificate.delta, certificate.inputs_required_by_sum, certificate.inputs_required_at_best
    d = upper.size
    last = d if delta is None else min(d, 2 + math.ceil(1.35 * max(best or d, certificate.attack_inputs or 1)))
    n = np.arange(last + 1)
    figure, (axes,) = canvas(3.3)
    marker = "o" if last <= 40 else ""
    axes.plot(n, [0.0, *upper[:last]], color=PROVED, marker=marker, label="sum of the n largest bounds")
    axes.plot(
        n,
        [0.0, *attained[:last]],
        color=ATTACK,
        linestyle="--",
        marker=marker,
        markersize=3.5,
        label="the same of what is attained",
    )
    if delta is not None:
        axes.axhline(delta, color=INK, linewidth=1.0)
        over = upper[last - 1] < delta  # where the sums are not
        axes.annotate(
            f"distance of the thresholds, {delta:.4g}",
            (last, delta),
            (0, 3 if over else -4),
            textcoords="offset points",
            ha="right",
            va="bottom" if over else "top",
            fontsize=9,
        )
    if by_sum is not None:
        axes.axvline(by_sum, color=FAINT, linewidth=1.0, linestyle=":")
        axes.annotate(f"n = {by_sum}", (by_sum, 0.0), (3, 3), textcoords="offset points", fontsize=9)
    axes.set_xlim(0, last)
    axes.set_ylim(0.0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(f"n, {noun}s changed")
    axes.set_ylabel("change of the latent")
    figure.legend(loc="outside upper left")
    words = f"All {d} bounds sum to {number(upper[-1])}, what is attained to {number(attained[-1])}."
    if by_sum is not None and delta is not None:
        words = (
            f"The {inputs(by_sum, noun)} with the largest bounds are the fewest whose bounds sum to the distance of the"
            f" thresholds, {number(delta)}: they sum to {number(upper[by_sum - 1])}, what is attained to "
            f"{number(attained[by_sum - 1])}."
        )
    elif delta is not None:
        words += f" Neither reaches the distance of the thresholds, {number(delta)}."
    title = f"Sums of the one-{noun} bounds"
    rows = [
        (str(k + 1), number(u), number(a), "" if delta is None else "below" if u < lower_side(delta) else "reached")
        for k, (u, a) in enumerate(zip(upper.tolist(), attained.tolist(), strict=True))
    ]
    table = Table(title, ("n", "sum of n bounds", "sum attained", "distance of the thresholds"), rows)
    return picture(f"{name}-sums", title, words, figure, table)
