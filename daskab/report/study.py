"""What a study came to, beside what was published: a page in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from daskab.report.markdown import marked, table
from daskab.report.pages import rendered
from daskab.report.results import Result
from daskab.report.sweep import accuracy_said, certified_said, told_of
from daskab.run.job import Job
from daskab.run.study import Experiment, Study

PUBLISHED = "published"

COLUMNS = (
    "model",
    PUBLISHED,
    "certified",
    "attack",
    "accuracy",
    "logistic regression",
    "its accuracy",
    "one input at most",
    "sum of bounds",
    "seconds",
)
EXPLAINED = (
    "Certified is k: proved for the whole box, no attack changes fewer inputs. Attack is what the best attack found "
    "changes, so the truth lies between the two. Logistic regression is the exact k of one on the same data, with its "
    "accuracy. One input at most is the largest one-input bound, in parts of the distance of the thresholds; the sum "
    "of bounds is of all inputs, of the latent mean. Seconds are those of all tasks of a model together."
)


@dataclass(frozen=True)
class Told:
    """What is known of one experiment of a study.

    Attributes
    ----------
    rows : one a model, as in `columns`
    problem : what ended its job, if something did
    undone : models that are not certified to the end, as time ended first or a task failed
    """

    experiment: Experiment
    rows: Sequence[Sequence[str]]
    problem: str | None = None
    undone: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Heads of the columns of its table: without what was published, where that is not known."""
        return [name for name in COLUMNS if name != PUBLISHED or self.experiment.published]

    @property
    def done(self) -> bool:
        """Whether nothing of it is left to do."""
        return self.problem is None and not self.undone


def told_experiment(experiment: Experiment, job: Job, results: Sequence[Result]) -> Told:
    """An experiment with what became of the models of its job."""
    problem = next((one.error for one in results if one.error is not None), None)
    known = [one for one in results if one.outcome is not None]
    rows = [_row(experiment, one) for one in known]
    undone = [one.model for one in results if one.outcome is None or not one.outcome.sealed]
    return Told(experiment, rows, problem, tuple(undone))


def _row(experiment: Experiment, result: Result) -> list[str]:
    assert result.outcome is not None
    certificate, known = result.outcome.certificate, told_of(result)
    largest = float(np.max(certificate.upper_bound))
    return [
        result.model,
        *([experiment.published.get(result.model, "")] if experiment.published else []),
        certified_said(known),
        str(known.get("attack", "none found")),
        accuracy_said(known),
        certified_said(known, "baseline_"),
        accuracy_said(known, "baseline_"),
        f"{largest / certificate.delta:.3g}" if certificate.delta else "",
        f"{known['upper_bound_sum']:.5g}",
        f"{known['task_seconds']:.1f}" if "task_seconds" in known else "",
    ]


def study_markdown(study: Study, setting: str, told: Sequence[Told]) -> str:
    """The page in Markdown."""
    return "\n".join(_markdown(study, setting, told)) + "\n"


def _markdown(study: Study, setting: str, told: Sequence[Told]) -> Iterator[str]:
    yield f"# {marked(study.title)}"
    for line in head(study, setting, told):
        yield ""
        yield marked(line)
    for one in told:
        yield ""
        yield f"## {marked(one.experiment.title)}"
        if one.rows:
            yield ""
            yield from table(one.columns, (map(marked, row) for row in one.rows))
        for line in lines_below(one):
            yield ""
            yield marked(line)


def head(study: Study, setting: str, told: Sequence[Told]) -> Iterator[str]:
    """What is to be said before all tables: which setting, how much of it is here, and what holds for all of it."""
    done = sum(one.done for one in told)
    yield f"The {setting} setting of {study.name}; {done} of {len(study.experiments)} experiments done."
    yield from study.remarks
    unknown = [one.experiment.name for one in told if not one.experiment.published]
    if unknown:
        which = "" if len(unknown) == len(told) else f" of {', '.join(unknown)}"
        yield f"The published numbers{which} are not at hand here, so none stands beside daskab's; none is guessed."
    yield EXPLAINED


def lines_below(one: Told) -> list[str]:
    """What is to be said of an experiment below its table."""
    return [
        *([f"Not done: {one.problem}."] if one.problem else []),
        *([f"Left undone: {'; '.join(one.undone)}."] if one.undone else []),
        *one.experiment.remarks,
    ]


def study_page(study: Study, setting: str, told: Sequence[Told]) -> str:
    """The page in HTML: one file that needs no other."""
    return rendered(
        "study.html.jinja",
        title=study.title,
        head=list(head(study, setting, told)),
        told=[(one.experiment.title, one.columns, one.rows, lines_below(one)) for one in told],
    )
