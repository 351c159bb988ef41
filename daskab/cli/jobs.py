"""The models of a job, certified one and all, and what each comes to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from daskab.cli.printing import indent
from daskab.cli.signals import signals
from daskab.cli.watching import Watch
from daskab.model.expansion import KernelExpansion
from daskab.report.results import Results
from daskab.report.verdict import verdict
from daskab.run.asked import ask
from daskab.run.baseline import CertifiedBaseline, certified_baseline
from daskab.run.certify import make_question
from daskab.run.deadline import has_passed
from daskab.run.executors import Executor
from daskab.run.job import Baseline, Job
from daskab.run.models import JobModel, job_models
from daskab.run.queue import Queue
from daskab.run.stages import Outcome, Run


def certify_job(
    job: Job, results: Results, runs: Path, workers: Executor, watch: Watch, deadline: float = math.inf
) -> None:
    """Certify the models of a job, going on where an earlier try stopped; print and add to ``results`` what they are.

    Models that would have to be fitted after the deadline, on the monotonic clock, are left out.
    """
    baselines: dict[Baseline | None, CertifiedBaseline | None] = {}
    items: dict[Run, JobModel] = {}
    late = partial(has_passed, deadline)

    def asked_of_models() -> Iterator[Run]:
        models = job_models(job, runs, late)
        while True:
            with signals.at_once():  # a fit leaves nothing half-written
                item = next(models, None)
                if item is None:
                    return
                beside = None
                if item.baseline is not None and item.baseline not in baselines:
                    results.begin(item.baseline.name)
                    baselines[item.baseline] = beside = certified_baseline(item.baseline, runs, late)
            if beside is not None:
                results.add_baseline(beside)
                with watch.paused():
                    tell_baseline(job, item, beside)
            results.begin(item.name)
            question = make_question(item.model, item.bound, job.attack)
            progress = watch.parts(f"{job.name}/{item.name}")
            run = ask(question, item.model, runs, batch=job.run.batch, deadline=deadline, progress=progress)
            items[run] = item
            yield run

    for run, outcome in Queue(asked_of_models(), workers).outcomes():
        item = items.pop(run)
        results.add(item.name, outcome, item.model.accuracy, baselines.get(item.baseline))
        with watch.paused():
            tell(job, item, outcome)


def tell(job: Job, item: JobModel, outcome: Outcome) -> None:
    """Print what a model of a job came to."""
    model = item.model
    headline(f"{job.name}/{item.name}", f"{model.n_centres} centres, {model.n_inputs} inputs", model.accuracy)
    attacker(model)
    for note in item.notes:
        click.echo(f"  Fit: {note}")
    click.echo(indent(verdict(outcome.certificate, item.classes, item.noun)))
    state = "found" if outcome.found else "sealed" if outcome.sealed else "not sealed"
    click.echo(f"  Run: {outcome.folder} ({state})\n")


def tell_baseline(job: Job, item: JobModel, baseline: CertifiedBaseline) -> None:
    """Print what the baseline of a model, and of others of the same data, comes to."""
    model = baseline.model
    headline(f"{job.name}/{baseline.name}", f"linear, {model.n_inputs} inputs", model.accuracy)
    click.echo(indent(verdict(baseline.certificate, item.classes, item.noun)))
    click.echo(f"  Certificate: {baseline.path}\n")


def attacker(model: KernelExpansion) -> None:
    """Say what its attacker can do, if that is less than the box allows: the certificate is about that."""
    if model.domain.words:
        click.echo(f"  Attacker: {model.domain.words}")


def headline(label: str, size: str, accuracy: float | None) -> None:
    """Print the line above what is said of a model."""
    click.echo(f"{label} ({size}{'' if accuracy is None else f', accuracy {accuracy:.3f}'})")
