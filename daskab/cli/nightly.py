"""``daskab nightly``: last night's models beside those of the nights before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import click

from daskab.cli.options import cluster_option, junit_option, log_option, prometheus_option, runs_option
from daskab.cli.parameters import FilePath
from daskab.cli.signals import signals
from daskab.cli.watching import Watch, check_reports, ending, logged, watched, write_reports, written
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
from daskab.run.deadline import deadline_in, has_passed
from daskab.run.executors import Executor, executor
from daskab.run.job import Baseline, Job, read_cluster, read_job
from daskab.run.lease import one_writer
from daskab.run.models import JobModel, job_model
from daskab.run.nightly import Nightly, NightlyJob, read_nightly
from daskab.run.nights import Ending, Measured, ModelNight, Nights
from daskab.run.provenance import read_provenance
from daskab.run.pruning import prune
from daskab.run.queue import Queue
from daskab.run.stages import Outcome, Run

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
            tonight.do()
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


@dataclass(frozen=True, eq=False)
class Turn:
    """A model of a job whose turn it is."""

    model: ModelNight
    job: Job
    results: Results
    item: JobModel | None = None  #: once it is there
    baseline: CertifiedBaseline | None = None


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

    def __post_init__(self) -> None:
        models = [model for entry, job in self.jobs for model in models_of(entry, job)]
        self.night = self.nights.begin(self.options, models)
        self.before = {m.label: found for m in models if (found := self.nights.last_sealed(m.label))}
        self.results = {
            entry.name: Results(entry.name, [point.name for point in job.points()], job.run.require_inputs)
            for entry, job in self.jobs
        }
        self.deadline = deadline_in(self.options.time_limit)

    @property
    def code(self) -> int:
        """Exit code of the night."""
        return next((code for code in WORST_FIRST if code in self.codes), 0)

    def do(self) -> None:
        """Certify all models, and the baselines; one cluster serves all jobs in a row that ask for the same."""
        for where, jobs in groupby(self.jobs, key=lambda one: self.cluster or one[1].cluster):
            with executor(where) as workers, watched(self.lines) as watch:
                self.certify(list(jobs), workers, watch)

    def certify(self, jobs: Sequence[tuple[NightlyJob, Job]], workers: Executor, watch: Watch) -> None:
        """Certify the models of jobs as one queue, whatever becomes of any of them."""
        turns: dict[Run, Turn] = {}
        runs = self.runs_of(jobs, watch, turns)
        going = True
        while going:
            try:
                for run, came in Queue(runs, workers).endings():
                    self.tell(turns.pop(run), came)
                going = False
            except (DaskabError, OSError) as error:  # of the cluster, which all that were in progress were lost with
                while turns:
                    self.tell(turns.popitem()[1], error)
        for entry, _ in jobs:
            if self.results[entry.name].close():
                self.codes.add(INCOMPLETE)

    def runs_of(self, jobs: Sequence[tuple[NightlyJob, Job]], watch: Watch, turns: dict[Run, Turn]) -> Iterator[Run]:
        """The runs of the models of jobs, added to ``turns`` as they are begun.

        Without time for a task a run is looked at all the same: it may be sealed.
        """
        for entry, job in jobs:
            results, deadline = self.results[entry.name], min(self.deadline, deadline_in(entry.time_limit))
            with signals.at_once():
                beside = {baseline: self.stand_beside(results, baseline, deadline) for baseline in baselines_of(job)}
            for point in job.points():
                results.begin(point.name)
                turn = Turn(ModelNight(job=entry.name, model=point.name), job, results)
                try:
                    with signals.at_once():
                        item = job_model(point, self.runs, partial(has_passed, deadline))
                    if item is None:  # no time is left to fit it
                        self.codes.add(INCOMPLETE)
                        continue
                    question = make_question(item.model, item.bound, job.attack)
                    progress = watch.parts(turn.model.label)
                    run = ask(
                        question, item.model, self.runs, batch=job.run.batch, deadline=deadline, progress=progress
                    )
                except (DaskabError, OSError) as error:
                    self.tell(turn, error)
                    continue
                model = turn.model.model_copy(update={"state": "not sealed", "run": question.run_id})
                baseline = None if item.baseline is None else beside[item.baseline]
                turns[run] = replace(turn, model=model, item=item, baseline=baseline)
                self.note(model)
                yield run

    def tell(self, turn: Turn, came: Outcome | DaskabError | OSError) -> None:
        """What became of a model: note it, and add it to the results."""
        model, results, item = turn.model, turn.results, turn.item
        if not isinstance(came, Outcome):
            code, message = ending(came)
            results.fail(model.model, code, message)
            # A night that finds another process at a run can only leave it undone.
            self.codes.add(INCOMPLETE if isinstance(came, BusyError) else code)
            self.note(model.model_copy(update={"state": "failed", "error": message}))
            return
        assert item is not None  # there is no outcome without a model
        certificate, accuracy = came.certificate, item.model.accuracy
        seconds = read_provenance(came.folder).get("task_seconds")
        timed = isinstance(seconds, int | float) and math.isfinite(seconds)
        measured = Measured.of(certificate, accuracy, seconds if timed else None)
        model = self.judged(model, certificate, measured, sealed=came.sealed)
        model = model.model_copy(update={"warned": (*model.warned, *(f"fit: {note}" for note in item.notes))})
        result = results.add(model.model, came, accuracy, turn.baseline, worse="; ".join(model.worse) or None)
        if not model.worse and (wrong := what_is_wrong(results, result)):
            model = model.model_copy(update={"error": wrong[1]})
        self.note(model)
        self.codes.add(NOT_MET if model.worse else exit_code(certificate, turn.job.run.require_inputs))

    def stand_beside(self, results: Results, baseline: Baseline, deadline: float) -> CertifiedBaseline | None:
        """Certify a baseline of a job; None if that fails, or there is no time left to fit it."""
        model = ModelNight(job=results.job, model=baseline.name, baseline=True)
        results.begin(baseline.name)
        try:
            found = certified_baseline(baseline, self.runs, partial(has_passed, deadline))
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
        for results in self.results.values():
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
            write_reports([*self.results.values()], junit, prometheus, gauges(report)),
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
