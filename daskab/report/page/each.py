"""One input at a time: its bound and what is attained of it, as bars or over the image."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from daskab.report.facts import Facts, Pixels
from daskab.report.page.drawing import ATTACK, PROVED, UNKNOWN, canvas, picture
from daskab.report.page.parts import Picture, Table, number, shortened
from daskab.report.verdict import inputs
from daskab.run.reading import Reading

Array = NDArray[np.float64]

MOST_BARS = 40
"""As many as a page holds; more inputs are folded away in a table."""

HEAT = "YlOrRd"


def bounds_table(reading: Reading, facts: Facts) -> Table:
    """Bound, attained change and the pair of every input, the highest bound first."""
    certificate, model = reading.certificate, reading.model
    rows: list[tuple[str, ...]] = []
    for c in by_bound(certificate.upper_bound):
        upper, attained = float(certificate.upper_bound[c]), float(certificate.attained[c])
        above = f"{100 * (upper / attained - 1):.3g} %" if attained > 0 else ""
        row = certificate.input_names[c], number(upper), number(attained), above
        changed, (x, moved) = model.domain.changes[c], map(facts.original, reading.witnesses.pair(c))
        if model.domain.groups:
            told = (
                f"{model.input_names[j]}: {number(x[j])} to {number(moved[j])}" for j in changed if x[j] != moved[j]
            )
            rows.append((*row, ", ".join(told)))
        else:
            d = changed[0]
            rows.append((*row, number(x[d]), number(moved[d]), *unit_cell(facts, d)))
    more = ("changes",) if model.domain.groups else ("from", "to", *unit_head(facts))
    head = (facts.noun, "bound", "attained", "above attained", *more)
    caption = f"The bound of each {facts.noun}, and the change of it that attains what is attained{all_in(facts)}"
    return Table(caption, head, rows)


def all_in(facts: Facts) -> str:
    """The unit of all inputs, as the end of a caption; empty where they have several, or none that is known."""
    return f", in {facts.units[0]}" if len(set(facts.units)) == 1 and facts.units[0] else ""


def unit_head(facts: Facts) -> tuple[str, ...]:
    """Head of a column of units, where inputs have several."""
    return ("unit",) if len(set(facts.units)) > 1 else ()


def unit_cell(facts: Facts, d: int) -> tuple[str, ...]:
    """Its cell for input ``d``."""
    return (facts.units[d],) if unit_head(facts) else ()


def by_bound(upper: Array) -> list[int]:
    """Inputs, the highest bound first."""
    order: list[int] = np.argsort(-upper, kind="stable").tolist()
    return order


def bars(reading: Reading, name: str, table: Table | None) -> Picture:
    """The highest bounds as bars, with what is attained of them."""
    upper, attained = reading.certificate.upper_bound, reading.certificate.attained
    names = reading.certificate.input_names
    shown = by_bound(upper)[:MOST_BARS]
    figure, (axes,) = canvas(1.1 + 0.24 * len(shown))
    at = np.arange(len(shown))
    axes.barh(at - 0.19, upper[shown], 0.38, color=PROVED, label="bound")
    axes.barh(at + 0.19, attained[shown], 0.38, color=ATTACK, label="attained")
    axes.set_yticks(at, [shortened(names[d]) for d in shown])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlabel("change of the latent by changing one input")
    figure.legend(loc="outside upper left", ncols=2)
    first = shown[0]
    words = f"{names[first]} has the highest bound, {number(upper[first])}; {number(attained[first])} is attained."
    if len(shown) < len(names):
        words += f" Shown are the {len(shown)} highest of {len(names)}; the table has all."
    return picture(name, "The bound of each input", words, figure, table)


def heat_map(reading: Reading, facts: Facts, pixels: Pixels, name: str, table: Table) -> Picture:
    """Bounds over the average image, beside that image."""
    certificate, model = reading.certificate, reading.model
    average, whose = model.centres.mean(axis=0), averaged(reading, facts)
    figure, (left, right) = canvas(3.4, 1, 2)
    edges = float(model.lower.min()), float(model.upper.max())
    for axes in (left, right):
        show_image(axes, pixels.image(average), *edges)
    of_input = np.empty(model.n_inputs)
    for bound, changed in zip(certificate.upper_bound, model.domain.changes, strict=True):
        of_input[list(changed)] = bound
    heat = pixels.image(of_input)
    top = float(certificate.upper_bound.max()) or 1.0
    colours = colormaps[HEAT](heat / top)
    colours[..., 3] = np.where(np.isnan(heat), 0.0, 0.85)
    right.imshow(colours, interpolation="nearest")
    colours_of = ScalarMappable(Normalize(0.0, top), HEAT)
    figure.colorbar(colours_of, ax=[left, right], orientation="horizontal", label="bound", aspect=40)
    left.set_title("average")
    right.set_title(f"bound of each {facts.noun}")
    first = by_bound(certificate.upper_bound)[0]
    words = (
        f"Left, {whose}; right, the bound of each {facts.noun} over it. {certificate.input_names[first]} "
        f"(row and column, from 0) has the highest, {number(certificate.upper_bound[first])}."
    )
    if pixels.left_out:
        words += f" Hatched: {inputs(pixels.left_out, 'pixel')} the model knows nothing of."
    return picture(name, f"The bound of each {facts.noun}", words, figure, table)


def averaged(reading: Reading, facts: Facts) -> str:
    """Which images the average is of: a run keeps the model, not what it was trained on."""
    fitted = facts.made_of.get("model")
    n = reading.model.n_centres
    if isinstance(fitted, dict) and "inducing_points" in fitted:
        dense = fitted["inducing_points"] is None
        return f"the average of the {n} {'images it was trained on' if dense else 'inducing points, its centres'}"
    return f"the average of the model's {n} centres"


def show_image(axes: Axes, image: Array, low: float, high: float) -> None:
    """An image in grey, dark where values are high; pixels that are no inputs are hatched."""
    axes.patch.set(facecolor="white", edgecolor=UNKNOWN, hatch="////")  # seen where there is no pixel
    axes.imshow(image, cmap="Greys", vmin=low, vmax=high + 0.25 * (high - low), interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(True)


def outline(axes: Axes, row: int, column: int, **look: object) -> None:
    """A rectangle around one pixel."""
    axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1.0, 1.0, **look))  # type: ignore[arg-type]
