"""``daskab study``: experiments that were published, run again, beside what was published of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from daskab.cli.jobs import certify_job
from daskab.cli.options import cluster_option, log_option, output_option, runs_option, time_option
from daskab.cli.parameters import FilePath
from daskab.cli.watching import ending, logged, swept, watched
from daskab.errors import DaskabError
from daskab.files import make_folder, write_atomically
from daskab.report.results import Results
from daskab.report.study import Told, study_markdown, study_page, told_experiment
from daskab.run.deadline import deadline_in
from daskab.run.executors import executor
from daskab.run.job import read_cluster, read_job
from daskab.run.study import Experiment, Study, read_study


@click.command()
@click.argument("study_file", metavar="STUDY.toml", type=FilePath(path_type=Path))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--full", is_flag=True, help="The setting as published, in place of the small one: it may take hours.")
@output_option("study", "index.html and index.md")
@cluster_option
@runs_option("runs")
@time_option
@log_option
def study(
    study_file: Path,
    names: tuple[str, ...],
    full: bool,
    output: Path,
    cluster: str | None,
    runs: Path,
    time_limit: float | None,
    log: str | None,
) -> int:
    """Run the experiments of a study, all or those named, and write one page of what they come to.

    An experiment whose data is not here is said to be so, and the others are run. The page is written anew after each;
    the same command goes on from where it was stopped, or time ended: 3 if it did.
    """
    asked = read_study(study_file)
    chosen = _chosen(asked, names)
    jobs = [read_job(one.job(full)) for one in chosen]
    setting = "full" if full else "small"
    told: list[Told] = []
    code = 0
    deadline = deadline_in(time_limit)
    make_folder(output)
    with logged(log) as lines, executor(read_cluster(cluster or "inline")) as workers:
        for experiment, job in zip(chosen, jobs, strict=True):
            click.echo(f"{experiment.title}\n")
            results = Results(job.name, [point.name for point in job.points()], job.run.require_inputs)
            try:
                with swept(job, results, runs), watched(lines) as watch:
                    certify_job(job, results, runs, workers, watch, deadline)
            except (DaskabError, OSError) as error:
                exit_code, message = ending(error)
                results.stop(exit_code, message)
                click.echo(f"daskab: {experiment.name}: {message}", err=True)
            results.close()
            code = max(code, results.code)
            told.append(told_experiment(experiment, job, list(results)))
            write_atomically(output / "index.md", study_markdown(asked, setting, told))
            write_atomically(output / "index.html", study_page(asked, setting, told))
    click.echo(f"{output / 'index.html'}")
    return code


def _chosen(study: Study, names: Sequence[str]) -> list[Experiment]:
    """The experiments of some names, in the study's order; all of them if none is given."""
    known = {one.name: one for one in study.experiments}
    for name in names:
        if name not in known:
            raise click.UsageError(f"{name} is not an experiment of {study.name}; known: {', '.join(known)}")
    return [one for one in study.experiments if not names or one.name in names]
