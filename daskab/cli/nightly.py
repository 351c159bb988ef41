"""``daskab nightly``: last night's models beside those of the nights before."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from daskab.cli.options import cluster_option, junit_option, log_option, prometheus_option, runs_option
from daskab.cli.parameters import FilePath
from daskab.cli.watching import check_reports, ending, logged, watched, write_reports, written
from daskab.errors import BusyError, DaskabError
from daskab.files import reaching, write_atomically
from daskab.report.junit import what_is_wrong
from daskab.report.log import Log
from daskab.report.nightly import Report, gauges, history_page, summary
from daskab.report.results import INCOMPLETE, NOT_MET, Results, exit_code
from daskab.run.asked import ask
from daskab.run.baseline import CertifiedBaseline, baselines_of, certified_baseline
from daskab.run.certificate import Certificate
from daskab.run.certify import make_question
from daskab.run.cluster import ClusterOptions
from daskab.run.comparison import compare
from daskab.run.driver import Outcome, read_provenance
from daskab.run.executors import Executor, executor
from daskab.run.job import Baseline, Job, Point, read_cluster, read_job
from daskab.run.lease import one_writer
from daskab.run.models import JobModel, job_model
from daskab.run.nightly import Nightly, NightlyJob, read_nightly
from daskab.run.nights import Ending, Measured, ModelNight, Nights
from daskab.run.pruning import prune

WORST_FIRST = (4, NOT_MET, 2, INCOMPLETE)
"""Exit codes of models; the night's is the first of these that one of them has. An incomplete night may be tried again,
but not one with a regression, which is told once and then is what the next night is compared with."""


@click.command()
@click.argument("nightly_file", metavar="NIGHTLY.toml", type=FilePath(path_type=Path))
@cluster_option
@runs_option("runs and nights")
@log_option
@junit_option
@prometheus_option
def nightly(
    nightly_file: Path,
    cluster: str | None,
    runs: Path,
    log: str | None,
    junit: Path | None,
    prometheus: Path | None,
) -> int:
    """Run the jobs of a nightly file, and say which models, or baselines, fell behind their last sealed result.

    1 if one did by more than is tolerated, 3 if something was left undone, 75 if the night before goes on. A summary
    and a page with the trends are written to nightly/NAME among the runs.
    """
    options = read_nightly(nightly_file)
    jobs = [(entry, read_job(entry.file)) for entry in options.jobs]
    where = None if cluster is None else read_cluster(cluster)
    check_reports(junit, prometheus)
    folder = runs / "nightly" / options.name
    with reaching(folder), logged(log) as lines, one_writer(folder, "night") as check:
        tonight = Tonight(options, jobs, runs, Nights(folder), where, lines)
        try:
            with tonight.clusters:
                for entry, job in jobs:
                    tonight.do(entry, job)
        except BaseException as error:
            code, message = ending(error)
            tonight.stop(code, message)
            with suppress(OSError, BusyError):  # which is not what ended it
                check()
                tonight.end("interrupted", code, junit, prometheus)
            raise
        check()
        click.echo(tonight.end("told", tonight.code, junit, prometheus), nl=False)
    return tonight.night.exit_code or 0


@dataclass
class Tonight:
    """The night in progress."""

    options: Nightly
    jobs: Sequence[tuple[NightlyJob, Job]]
    runs: Path
    nights: Nights
    cluster: ClusterOptions | None
    lines: Log
    codes: set[int] = field(default_factory=set)  #: of models so far
    clusters: ExitStack = field(default_factory=ExitStack)  #: ends the one that is in use
    in_use: tuple[ClusterOptions, Executor] | None = None

    def __post_init__(self) -> None:
        models = [model for entry, job in self.jobs for model in models_of(entry, job)]
        self.night = self.nights.begin(self.options, models)
        self.before = {m.label: found for m in models if (found := self.nights.last_sealed(m.label))}
        self.results = [
            Results(entry.name, [point.name for point in job.points()], job.run.require_inputs)
            for entry, job in self.jobs
        ]
        self.deadline = _in(self.options.time_limit)

    @property
    def code(self) -> int:
        """Exit code of the night."""
        return next((code for code in WORST_FIRST if code in self.codes), 0)

    def do(self, entry: NightlyJob, job: Job) -> None:
        """Certify the models of a job, and its baselines, one after another, whatever becomes of the others."""
        (results,) = (results for results in self.results if results.job == entry.name)
        deadline = min(self.deadline, _in(entry.time_limit))
        beside = {baseline: self.stand_beside(results, baseline, deadline) for baseline in baselines_of(job)}
        for point in job.points():
            model = ModelNight(job=entry.name, model=point.name)
            results.begin(point.name)
            try:
                done = self.certify(model, job, point, deadline)
            except (DaskabError, OSError) as error:
                code, message = ending(error)
                results.fail(point.name, code, message)
                # A night that finds another process at a run can only leave it undone.
                self.codes.add(INCOMPLETE if isinstance(error, BusyError) else code)
                self.note(model.model_copy(update={"state": "failed", "error": message}))
                continue
            if done is None:
                self.codes.add(INCOMPLETE)
                continue
            outcome, item = done
            accuracy = item.model.accuracy
            seconds = read_provenance(outcome.folder).get("task_seconds")
            timed = isinstance(seconds, int | float) and math.isfinite(seconds)
            measured = Measured.of(outcome.certificate, accuracy, seconds if timed else None)
            model = self.judged(model, outcome.certificate, measured, sealed=outcome.sealed)
            model = model.model_copy(update={"warned": (*model.warned, *(f"fit: {note}" for note in item.notes))})
            baseline = None if item.baseline is None else beside[item.baseline]
            result = results.add(point.name, outcome, accuracy, baseline, worse="; ".join(model.worse) or None)
            if not model.worse and (wrong := what_is_wrong(results, result)):
                model = model.model_copy(update={"error": wrong[1]})
            self.note(model)
            self.codes.add(NOT_MET if model.worse else exit_code(outcome.certificate, job.run.require_inputs))
        results.close()

    def certify(self, model: ModelNight, job: Job, point: Point, deadline: float) -> tuple[Outcome, JobModel] | None:
        """Certify one model; None if there is no time left to fit it.

        Without time for a task a run is looked at all the same: it may be sealed.
        """
        item = job_model(point, self.runs, late=lambda: time.monotonic() > deadline)
        if item is None:
            return None
        question = make_question(item.model, item.bound, job.attack)
        self.note(model.model_copy(update={"state": "not sealed", "run": question.run_id}))
        left = max(deadline - time.monotonic(), 0.0)
        with watched(self.lines) as watch:
            progress = watch.parts(model.label)
            asked = ask(question, item.model, self.runs, batch=job.run.batch, progress=progress)
            outcome = asked.answer(self.workers(job), None if math.isinf(left) else left)
        return outcome, item

    def workers(self, job: Job) -> Executor:
        """Where the tasks of a job run: one cluster serves all jobs in a row that ask for the same."""
        where = self.cluster or job.cluster
        if self.in_use is None or self.in_use[0] != where:
            self.in_use = None
            self.clusters.close()
            self.in_use = where, self.clusters.enter_context(executor(where))
        return self.in_use[1]

    def stand_beside(self, results: Results, baseline: Baseline, deadline: float) -> CertifiedBaseline | None:
        """Certify a baseline of a job; None if that fails, or there is no time left to fit it."""
        model = ModelNight(job=results.job, model=baseline.name, baseline=True)
        results.begin(baseline.name)
        try:
            found = certified_baseline(baseline, self.runs, late=lambda: time.monotonic() > deadline)
        except (DaskabError, OSError) as error:
            code, message = ending(error)
            results.fail_baseline(baseline.name, code, message)
            self.codes.add(code)
            self.note(model.model_copy(update={"state": "failed", "error": message}))
            return None
        if found is None:
            self.codes.add(INCOMPLETE)
            return None
        measured = Measured.of(found.certificate, found.model.accuracy, seconds=0.0)  # there are no tasks
        model = self.judged(model, found.certificate, measured, sealed=True)
        results.add_baseline(found, worse="; ".join(model.worse) or None)
        self.note(model)
        self.codes.add(NOT_MET if model.worse else 0)
        return found

    def judged(self, model: ModelNight, certificate: Certificate, measured: Measured, *, sealed: bool) -> ModelNight:
        """A model with its result, beside the last one if it is sealed."""
        known = {"run": certificate.run_id, "digest": certificate.model_digest, "measured": measured}
        if not sealed:
            return model.model_copy(update={**known, "state": "not sealed"})
        model = model.model_copy(update={**known, "state": "sealed", "verdict": "first"})
        before = self.before.get(model.label)
        return model if before is None else compare(model, *before, self.options.tolerance)

    def note(self, model: ModelNight) -> None:
        """Keep what is known of a model now."""
        self.night = self.night.with_model(model)
        self.nights.note(self.night)

    def stop(self, code: int, error: str) -> None:
        """The night ended here, in the first job that is not done."""
        for results in self.results:
            if results.close():
                results.stop(code, error)
                return

    def end(self, state: Ending, code: int, junit: Path | None, prometheus: Path | None) -> str:
        """Write all reports, and last of all what is kept of the night; its summary."""
        self.night = self.night.ending(state, code)
        notes = self.prune() if state == "told" else []
        shown = [*self.nights.past[-(self.options.keep - 1) :], self.nights.kept(self.night)]
        before = {label: model for label, (_, model) in self.before.items()}
        report = Report(self.options, shown, before, notes)
        said, page = summary(report), history_page(report)
        folder = self.nights.folder
        whole = [
            write_reports(self.results, junit, prometheus, gauges(report)),
            written(folder / "summary.md", lambda path: write_atomically(path, said)),
            written(folder / "history.html", lambda path: write_atomically(path, page)),
        ]
        if not all(whole):
            self.night = self.night.ending(state, code or 2)
        self.nights.end(self.night)
        return said

    def prune(self) -> list[str]:
        """Remove what is older than the nights to keep; what is to be said of it."""
        try:
            pruned = prune(self.nights, self.night, self.options.keep)
        except OSError as error:
            return [f"Not everything old could be removed: {error.filename or ''} {error.strerror or error}"]
        if pruned.why_not is not None:
            return [f"Nothing old was removed, as it cannot be known what is still needed: {pruned.why_not}"]
        return [f"Removed: nights no longer kept, {pruned.nights}, and their runs, {len(pruned.runs)}."] * bool(
            pruned.nights
        )


def models_of(entry: NightlyJob, job: Job) -> list[ModelNight]:
    """The models of a job, and then its baselines, before any of them is certified."""
    models = [ModelNight(job=entry.name, model=point.name) for point in job.points()]
    return models + [ModelNight(job=entry.name, model=one.name, baseline=True) for one in baselines_of(job)]


def _in(seconds: float | None) -> float:
    """The time in so many seconds."""
    return math.inf if seconds is None else time.monotonic() + seconds
