"""Pairs of points: those that attain one-input changes, and the attack on several at once."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from daskab.report.facts import Facts, Pixels
from daskab.report.page.drawing import ATTACK, canvas, picture
from daskab.report.page.each import all_in, outline, show_image, unit_cell, unit_head
from daskab.report.page.parts import Picture, Table, number
from daskab.report.verdict import inputs
from daskab.run.certificate import Attack
from daskab.run.reading import Reading

Array = NDArray[np.float64]

MOST_PAIRS, MOST_NAMES = 4, 12


def witness_images(reading: Reading, facts: Facts, pixels: Pixels, name: str) -> Picture:
    """The pairs that attain most, each with the pixels that it changes marked."""
    certificate, model = reading.certificate, reading.model
    shown = np.argsort(-certificate.attained, kind="stable")[:MOST_PAIRS].tolist()
    figure, axes = canvas(1.5 * -(-len(shown) // 2) + 0.2, -(-len(shown) // 2), 4)
    said = []
    for place, d in enumerate(shown):
        points = reading.witnesses.pair(d)
        latents = model.latent(np.stack(points))
        for end, (point, latent) in enumerate(zip(points, latents.tolist(), strict=True)):
            ax = axes[2 * place + end]
            marked_image(ax, reading, pixels, point, np.flatnonzero(points[0] != points[1]).tolist())
            ax.set_title(certificate.input_names[d] if end == 0 else "changed", fontsize=9)
            ax.set_xlabel(f"latent {latent:.3g}", fontsize=8.5)
        said.append(f"{certificate.input_names[d]} changes it from {latents[0]:.4g} to {latents[1]:.4g}")
    for ax in axes[2 * len(shown) :]:
        ax.set_visible(False)
    outlined = "pixel" if facts.noun == facts.input else f"{facts.input}s, of one {facts.noun},"
    words = f"Each pair differs in the outlined {outlined} alone, which moves the latent most: {'; '.join(said)}."
    return picture(f"{name}-witnesses", f"Pairs of images that differ in one {facts.noun}", words, figure)


def marked_image(axes: Axes, reading: Reading, pixels: Pixels, point: Array, marked: list[int]) -> None:
    """A point as an image, with some pixels outlined."""
    model = reading.model
    show_image(axes, pixels.image(point), float(model.lower.min()), float(model.upper.max()))
    for d in marked:
        row, column = int(pixels.row[d]), int(pixels.column[d])
        outline(axes, row, column, facecolor="none", edgecolor=ATTACK, linewidth=1.6)


def attack_images(reading: Reading, facts: Facts, attack: Attack, pixels: Pixels, name: str) -> Picture:
    """The two points of the attack as images, with the pixels it changes marked."""
    x, x_prime = np.array(attack.x), np.array(attack.x_prime)
    changed = np.flatnonzero(x != x_prime).tolist()
    figure, axes = canvas(3.2, 1, 2)
    ends = zip(axes, (x, x_prime), (attack.latent_x, attack.latent_x_prime), strict=True)
    for ax, point, latent in ends:
        marked_image(ax, reading, pixels, point, changed)
        ax.set_title(class_of(reading, facts, latent))
        ax.set_xlabel(f"latent {latent:.4g}")
    names = ", ".join(reading.model.input_names[d] for d in changed[:MOST_NAMES])
    more = f" and {len(changed) - MOST_NAMES} more" if len(changed) > MOST_NAMES else ""
    words = f"{attack_words(reading, facts, attack)} Outlined is where they differ: {names}{more}."
    return picture(f"{name}-attack", f"An attack that changes {inputs(attack.n_inputs, facts.noun)}", words, figure)


def class_of(reading: Reading, facts: Facts, latent: float) -> str:
    """The class a latent beyond a threshold stands for."""
    low = reading.certificate.latent_low
    second = low is not None and latent > low
    return f"confidently {facts.classes[second] if facts.classes else f'class {int(second)}'}"


def attack_words(reading: Reading, facts: Facts, attack: Attack) -> str:
    """What the attack does, in words."""
    latents = attack.latent_x, attack.latent_x_prime
    first, second = (f"{class_of(reading, facts, latent)} (latent {latent:.4g})" for latent in latents)
    return f"Of two points that differ in {inputs(attack.n_inputs, facts.noun)} one is {first}, the other {second}."


def attack_tables(reading: Reading, facts: Facts, attack: Attack) -> tuple[Table, Table]:
    """The inputs an attack changes, and those it leaves as they are, in the units of the data."""
    x, x_prime = np.array(attack.x), np.array(attack.x_prime)
    before, after = facts.original(x), facts.original(x_prime)
    lower, upper = (facts.original(edge) for edge in (reading.model.lower, reading.model.upper))
    changed, kept = [], []
    for d, name in enumerate(reading.model.input_names):
        span = (f"{number(lower[d])} to {number(upper[d])}",)
        if x[d] != x_prime[d]:
            changed.append((name, number(before[d]), number(after[d]), *span, *unit_cell(facts, d)))
        else:
            kept.append((name, number(before[d]), *span, *unit_cell(facts, d)))
    more = ("can be", *unit_head(facts))
    return (
        Table(
            f"What the attack changes, of {inputs(len(x), facts.input)}{all_in(facts)}",
            (facts.input, "from", "to", *more),
            changed,
        ),
        Table(f"What is the same at both points{all_in(facts)}", (facts.input, "value", *more), kept),
    )
