"""What is told of a night: a summary in Markdown, a page with the trends of the nights before it, and gauges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from daskab.report.markdown import marked, table
from daskab.report.pages import rendered
from daskab.report.prometheus import Sample
from daskab.run.comparison import certified
from daskab.run.nightly import Nightly
from daskab.run.nights import Kept, Measured, ModelNight, Night, missed

COLUMNS = ("certified inputs", "attack", "sum of bounds", "accuracy", "seconds")

VERDICTS = {
    "first": "first result, nothing to compare with",
    "unchanged": "unchanged",
    "held": "held",
    "improved": "improved",
    "regressed": "**regressed**",
}


@dataclass(frozen=True)
class Report:
    """A night that ended, and those before it.

    Attributes
    ----------
    nights : oldest first; the last is the one that is told of
    before : by label, what each of its models is compared with
    notes : what else is to be said
    """

    nightly: Nightly
    nights: Sequence[Kept]
    before: dict[str, ModelNight]
    notes: Sequence[str] = ()

    @property
    def night(self) -> Night:
        """The night that is told of."""
        night = self.nights[-1].night
        assert night is not None
        return night

    @property
    def past(self) -> Sequence[Kept]:
        """Those before it."""
        return self.nights[:-1]

    @property
    def missed(self) -> int:
        """Nights missed before this one."""
        return missed(self.past[-1].begun, self.night.begun, self.nightly) if self.past else 0

    @property
    def regressed(self) -> list[ModelNight]:
        """Models that are worse than before."""
        return [model for model in self.night.models if model.verdict == "regressed"]

    @property
    def damaged(self) -> list[Kept]:
        """Nights whose files are damaged."""
        return [kept for kept in self.past if kept.night is None]


def summary(report: Report) -> str:
    """The night in Markdown."""
    return "\n".join(_summary(report)) + "\n"


def _summary(report: Report) -> Iterator[str]:
    night, nightly = report.night, report.nightly
    yield f"# {nightly.name}: {outcome(night)}"
    yield ""
    yield f"Night {night.number}, begun {when(night.begun)}, exit code {night.exit_code}."
    for line in remarks(report):
        yield ""
        yield marked(line)
    yield ""
    yield from table(("model", "outcome", *COLUMNS), (_row(report, model) for model in night.models))
    for model in night.models:
        lines = [*model.worse, *(f"warning: {line}" for line in model.warned)]
        lines += [] if model.error is None else [model.error]
        if lines:
            with_what = "" if model.compared_with is None else f", compared with night {model.compared_with}"
            yield ""
            yield f"## {marked(model.label)}{with_what}"
            yield ""
            yield from (f"- {marked(line)}" for line in lines)


def _row(report: Report, model: ModelNight) -> list[str]:
    before = report.before.get(model.label)
    return [marked(model.label), told(model), *changes(None if before is None else before.measured, model)]


def outcome(night: Night) -> str:
    """A night in a few words."""
    if night.state != "told":
        return night.state
    models = night.models
    regressed = sum(model.verdict == "regressed" for model in models)
    unsealed = sum(model.state != "sealed" for model in models)
    said = [f"{regressed} of {len(models)} models regressed"] if regressed else []
    said += [f"{unsealed} of {len(models)} models not sealed"] if unsealed else []
    short = sum(model.state == "sealed" and model.error is not None for model in models)
    said += [f"{short} of {len(models)} models less than required, or incomplete"] if short else []
    if not said and all(model.verdict == "first" for model in models):
        said = ["first night"]
    return ", ".join(said) or "as robust as before"


def remarks(report: Report) -> Iterator[str]:
    """What is to be said of the night as a whole."""
    night = report.night
    if not report.past:
        yield "This is the first night: there is nothing to compare with."
    elif report.missed:
        last = report.past[-1].begun
        nights = "1 night was" if report.missed == 1 else f"{report.missed} nights were"
        yield f"Missed: {nights} expected between {when(last)} and {when(night.begun)}, and did not begin."
    if report.past and (earlier := report.past[-1].night) is not None and earlier.state != "told":
        yield f"Night {earlier.number}, begun {when(earlier.begun)}, was {earlier.state}; nothing is compared with it."
    for kept in report.damaged:
        yield f"Damaged: {kept.damage}; nothing is compared with it."
    yield from report.notes


def told(model: ModelNight) -> str:
    """What became of a model."""
    if model.verdict is None:
        return model.state
    measured = model.measured
    return VERDICTS[model.verdict] + ("" if measured is None or measured.complete else ", incomplete")


def changes(before: Measured | None, model: ModelNight) -> list[str]:
    """Before and now of each number."""
    now = model.measured
    if now is None:
        return [""] * 5
    pairs = zip(cells(before or now), cells(now), strict=True)
    return [new if old == new else f"{old} to {new}" for old, new in pairs]


def cells(measured: Measured) -> list[str]:
    """The numbers of a model as people read them."""
    return [
        certified(measured),
        "none found" if measured.attack_inputs is None else str(measured.attack_inputs),
        f"{measured.bound_sum:.4g}",
        number(measured.accuracy, ".4g"),
        number(measured.seconds, ".1f"),
    ]


def number(value: float | None, how: str) -> str:
    """A number, if it is known."""
    return "not known" if value is None else format(value, how)


def when(time: datetime) -> str:
    """A time as people read it."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


# The page.


@dataclass(frozen=True)
class Dot:
    """One night in the trend of a model: the rest is empty where it has no result."""

    number: int
    begun: str
    outcome: str
    missed: int  #: nights, before it
    numbers: list[str] = field(default_factory=list)
    height: float | None = None  #: of the certified inputs, 0 to 1
    regressed: bool = False


@dataclass(frozen=True)
class Trend:
    """A model over the nights."""

    label: str
    most: int  #: certified inputs at height 1
    dots: list[Dot]


def history_page(report: Report) -> str:
    """The page: one file that needs no other."""
    night, nightly = report.night, report.nightly
    seen = [model.label for kept in reversed(report.nights) if kept.night for model in kept.night.models]
    return rendered(
        "history.html.jinja",
        name=nightly.name,
        outcome=outcome(night),
        night=night,
        begun=when(night.begun),
        due=when(night.begun + timedelta(seconds=nightly.every + nightly.slack)),
        remarks=list(remarks(report)),
        trends=[trend(label, report.nights, nightly) for label in dict.fromkeys(seen)],
        columns=COLUMNS,
    )


def trend(label: str, nights: Sequence[Kept], nightly: Nightly) -> Trend:
    """A model over the nights."""
    found = [_model(kept, label) for kept in nights]
    known = [model.measured.robustness for model in found if model is not None and model.measured is not None]
    most = max((int(k) for k in known if k is not None and math.isfinite(k)), default=1)
    dots = []
    for i, (kept, model) in enumerate(zip(nights, found, strict=True)):
        gap = missed(nights[i - 1].begun, kept.begun, nightly) if i else 0
        dot = Dot(kept.number, when(kept.begun), _became(kept, model), gap)
        if model is not None and model.measured is not None:
            robustness = model.measured.robustness if model.state == "sealed" else None
            height = None if robustness is None else min(robustness / most, 1.0)
            dot = replace(dot, numbers=cells(model.measured), height=height, regressed=model.verdict == "regressed")
        dots.append(dot)
    return Trend(label, most, dots)


def _model(kept: Kept, label: str) -> ModelNight | None:
    models = () if kept.night is None else kept.night.models
    return next((model for model in models if model.label == label), None)


def _became(kept: Kept, model: ModelNight | None) -> str:
    if kept.night is None:
        return "damaged"
    said = "not in this night" if model is None else told(model).replace("**", "")
    return said if kept.night.state == "told" else f"{kept.night.state}: {said}"


# The gauges.


def gauges(report: Report) -> Iterator[Sample]:
    """Samples for Prometheus."""
    night, nightly = report.night, report.nightly
    labels = {"nightly": nightly.name}

    def of_night(name: str, what: str, value: float) -> Sample:
        return Sample(f"nightly_{name}", what, labels, value)

    yield of_night("begun_timestamp_seconds", "When the last night began", night.begun.timestamp())
    yield of_night(
        "due_seconds",
        "A night that began longer ago than this should have been followed by another",
        nightly.every + nightly.slack,
    )
    yield of_night("missed", "Nights missed before the last one", report.missed)
    yield of_night("damaged", "Kept nights whose files are damaged", len(report.damaged))
    yield of_night("models_regressed", "Models worse than before by more than is tolerated", len(report.regressed))
    if night.exit_code is not None:
        yield of_night("exit_code", "Exit code of the last night", night.exit_code)
    for model in night.models:
        of_model = {**labels, "job": model.job, "model": model.model}
        yield Sample("nightly_regressed", "1 if the model is worse than before", of_model, model.verdict == "regressed")
