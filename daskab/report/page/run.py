"""What a page says of one run."""

from __future__ import annotations

from typing import Any

from daskab.model.kernels import EQ
from daskab.report.facts import Facts, facts_of
from daskab.report.page.drawing import style
from daskab.report.page.each import MOST_BARS, bars, bounds_table, heat_map
from daskab.report.page.pairs import attack_images, attack_tables, attack_words, witness_images
from daskab.report.page.parts import Part, Section, Table, number
from daskab.report.page.sums import curve, sandwich
from daskab.report.verdict import inputs, verdict
from daskab.run.baseline import baselines_beside
from daskab.run.certificate import Certificate
from daskab.run.reading import Reading


def run_section(reading: Reading) -> Section:
    """The section of a run."""
    facts, certificate = facts_of(reading.model), reading.certificate
    name = f"run-{certificate.run_id}"
    with style():
        parts = (how_many(reading, facts, name), each(reading, facts, name), *several(reading, facts, name))
    return Section(
        anchor=name,
        title=title(reading, facts),
        verdict=tuple(verdict(certificate, facts.classes, facts.noun).splitlines()),
        warning=warning(reading, facts),
        complete=reading.sealed and certificate.complete,
        parts=(*parts, *beside(reading, facts), made_of(reading, facts)),
    )


def title(reading: Reading, facts: Facts) -> str:
    """What the model is, as far as is known."""
    model = reading.model
    what = "A model" if facts.entry is None else facts.entry.title
    pair = "" if facts.classes is None else f", {facts.classes[0]} against {facts.classes[1]}"
    return f"{what}{pair}: {inputs(model.n_centres, 'centre')}, {inputs(model.n_inputs, facts.input)}"


def warning(reading: Reading, facts: Facts) -> str:
    """What must not be overlooked of a run that is not all it could be."""
    if not reading.sealed:
        return (
            "Incomplete: this run is not sealed. What stands here is what its finished tasks prove so far; "
            "the command that began it goes on with it."
        )
    if not reading.certificate.complete:
        still = inputs(reading.certificate.open_inputs, facts.noun)
        return f"Incomplete: {still} not closed to the tolerance. What is proved holds."
    return ""


def how_many(reading: Reading, facts: Facts, name: str) -> Part:
    """The sandwich and the sums."""
    strip = sandwich(reading.certificate, name, facts.noun)
    sums = curve(reading.certificate, name, facts.noun)
    return Part(f"How many {facts.noun}s", pictures=(sums,) if strip is None else (strip, sums))


def each(reading: Reading, facts: Facts, name: str) -> Part:
    """One-input bounds, and the pairs that attain most."""
    certificate, table = reading.certificate, bounds_table(reading, facts)
    text = (
        f"No change of one {facts.noun} alone, anywhere in the box, moves the latent by more than its bound. "
        "Some pair of points that differ in it alone moves it by what is attained"
        f"{', in the units of the data' if facts.zero_and_one is not None else ''}."
    )
    if certificate.rtol is not None and certificate.delta is not None:
        text += f" A bound is brought no lower where its {facts.noun} cannot decide how many are required."
    if facts.pixels is not None:
        heat = heat_map(reading, facts, facts.pixels, f"{name}-bounds", table)
        witnesses = witness_images(reading, facts, facts.pixels, name)
        return Part(f"One {facts.noun} at a time", text, (heat, witnesses))
    if len(table.rows) <= MOST_BARS:
        return Part(f"One {facts.noun} at a time", text, (bars(reading, f"{name}-bounds", None),), (table,))
    return Part(f"One {facts.noun} at a time", text, (bars(reading, f"{name}-bounds", table),))


def several(reading: Reading, facts: Facts, name: str) -> tuple[Part, ...]:
    """The attack, if there is one."""
    attack = reading.certificate.attack
    if attack is None:
        return ()
    changed, kept = attack_tables(reading, facts, attack)
    pictures = () if facts.pixels is None else (attack_images(reading, facts, attack, facts.pixels, name),)
    folded = (kept,) if len(changed.rows) <= MOST_BARS else (changed, kept)
    seen = (changed,) if changed not in folded else ()
    return (Part("The attack", attack_words(reading, facts, attack), pictures, seen, folded),)


def beside(reading: Reading, facts: Facts) -> tuple[Part, ...]:
    """The model and the baselines on its data, if there are any."""
    model, certificate = reading.model, reading.certificate
    rows = [_compared(one.name, one.model.accuracy, one.certificate) for one in baselines_beside(reading.folder, model)]
    if not rows:
        return ()
    text = (
        "A logistic regression was fitted to the same points and scored on the same, with thresholds at the same "
        "percentiles of its own latent. What is certified of it is exact."
    )
    head = ("model", "accuracy", f"{facts.noun}s certified", f"{facts.noun}s the attack changes")
    this = _compared("this model", model.accuracy, certificate)
    table = Table("This model and a logistic regression", head, (this, *rows))
    return (Part("Beside a logistic regression", text, tables=(table,)),)


def _compared(name: str, accuracy: float | None, certificate: Certificate) -> tuple[str, ...]:
    none = certificate.no_attack_exists
    certified = "no attack exists" if none else str(certificate.inputs_required or "")
    certified += "" if certificate.complete else " so far"
    attack = "none exists" if none else str(certificate.attack_inputs or "none found")
    return name, "" if accuracy is None else f"{accuracy:.4g}", certified, attack


def made_of(reading: Reading, facts: Facts) -> Part:
    """Where all of it comes from."""
    certificate, model, question = reading.certificate, reading.model, reading.question
    spent = reading.spent
    said: dict[str, Any] = {
        "run": certificate.run_id,
        "state": "sealed" if reading.sealed else "not sealed",
        "model": f"sha256 {certificate.model_digest}",
        "evidence": f"sha256 {certificate.evidence_sha256}",
        "latent thresholds": None if certificate.delta is None else _pair(model.latent_low, model.latent_high),
        "kernel": None if model.kernel == EQ else f"{model.kernel}, as a sum of EQ kernels",
        "attacker": model.domain.words or None,
        "accuracy": None if model.accuracy is None else f"{model.accuracy:.4g} of points that were held out",
        "data": facts.made_of.get("title"),
        "licence": facts.made_of.get("licence"),
        "cite": facts.made_of.get("citation"),
        "fitted to": _rows(facts.made_of.get("train_rows")),
        "scored on": _rows(facts.made_of.get("test_rows")),
        "method": question.method,
        "slices": str(question.slices),
        "tolerance": None if question.rtol is None else f"{question.rtol:g}",
        "certified by": f"daskab {certificate.daskab_version}",
        "numerics": ", ".join(f"{k} {v[:16]}" for k, v in sorted(question.numerics.items()) if k != "daskab"),
        "begun": _time(spent.get("begun")),
        "ended": _time(spent.get("ended")),
        "time of all tasks": _seconds(spent.get("task_seconds")),
    }
    known = tuple((key, str(value)) for key, value in said.items() if value)
    text = f"Whoever has the run checks it with: daskab verify {reading.folder.name}"
    return Part("Where this comes from", text, facts=known)


def _pair(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{number(low)} and {number(high)}"


def _rows(value: Any) -> str:
    return f"{value:,} points" if isinstance(value, int) else ""


def _time(value: Any) -> str:
    return value.replace("T", " ").replace("+00:00", " UTC") if isinstance(value, str) else ""


def _seconds(value: Any) -> str:
    return f"{value:,.1f} s" if isinstance(value, int | float) else ""
