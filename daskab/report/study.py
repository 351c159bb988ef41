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

NOT_KNOWN = "not known here"

COLUMNS = (
    "model",
    "published",
    "certified",
    "attack",
    "logistic regression",
    "accuracy",
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
    rows : one a model, as in `COLUMNS`
    problem : what ended its job, if something did
    """

    experiment: Experiment
    rows: Sequence[Sequence[str]]
    problem: str | None = None


def told_experiment(experiment: Experiment, job: Job, results: Sequence[Result]) -> Told:
    """An experiment with what became of the models of its job."""
    problem = next((one.error for one in results if one.error is not None), None)
    known = [one for one in results if one.outcome is not None]
    return Told(experiment, [_row(experiment, one) for one in known], problem)


def _row(experiment: Experiment, result: Result) -> list[str]:
    assert result.outcome is not None
    certificate, known = result.outcome.certificate, told_of(result)
    largest = float(np.max(certificate.upper_bound))
    return [
        result.model,
        experiment.published or NOT_KNOWN,
        certified_said(known),
        str(known.get("attack", "none found")),
        certified_said(known, "baseline_"),
        accuracy_said(known),
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
    for line in (heading(study, setting, told), *study.remarks, EXPLAINED):
        yield ""
        yield marked(line)
    for one in told:
        yield ""
        yield f"## {marked(one.experiment.title)}"
        if one.rows:
            yield ""
            yield from table(COLUMNS, (map(marked, row) for row in one.rows))
        for line in lines_below(one):
            yield ""
            yield marked(line)


def heading(study: Study, setting: str, told: Sequence[Told]) -> str:
    """Which setting, and how much of it is here."""
    done = sum(one.problem is None for one in told)
    return f"The {setting} setting of {study.name}; {done} of {len(study.experiments)} experiments done."


def lines_below(one: Told) -> list[str]:
    """What is to be said of an experiment below its table."""
    return [*([f"Not done: {one.problem}."] if one.problem else []), *one.experiment.remarks]


def study_page(study: Study, setting: str, told: Sequence[Told]) -> str:
    """The page in HTML: one file that needs no other."""
    return rendered(
        "study.html.jinja",
        title=study.title,
        heading=heading(study, setting, told),
        remarks=[*study.remarks, EXPLAINED],
        columns=COLUMNS,
        told=[(one.experiment.title, one.rows, lines_below(one)) for one in told],
    )
