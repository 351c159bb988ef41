"""The commands: each parses, calls, prints."""

from __future__ import annotations

import platform
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from daskab._version import VERSION
from daskab.cli.data import data
from daskab.cli.importing import import_model
from daskab.cli.jobs import attacker, certify_job
from daskab.cli.nightly import nightly
from daskab.cli.options import (
    Command,
    cluster_option,
    junit_option,
    log_option,
    prometheus_option,
    runs_option,
    runs_path,
    time_option,
)
from daskab.cli.parameters import FilePath, Finite, Folder
from daskab.cli.printing import indent, show
from daskab.cli.reporting import explain_input, write_report
from daskab.cli.study import study
from daskab.cli.watching import logged, reported, swept, watched
from daskab.errors import DaskabError, JobError
from daskab.files import reaching
from daskab.model.kernels import EQ
from daskab.model.npz import load_model
from daskab.report.plan import describe_plan
from daskab.report.results import INCOMPLETE, Results, exit_code
from daskab.report.runs import describe_run, describe_runs
from daskab.report.tls import describe_tls
from daskab.report.verdict import bound_ratio, verdict
from daskab.run.certify import certify_model, make_question
from daskab.run.deadline import deadline_in
from daskab.run.executors import executor
from daskab.run.job import AttackOptions, Job, bound_options, read_cluster, read_job
from daskab.run.models import job_models, noun_of
from daskab.run.plan import canonical_json
from daskab.run.sandwich.layout import bare_questions, is_sandwich
from daskab.run.status import look_at, runs_in
from daskab.sandwich.parts import parts_of

INTEGRITY = 4


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="daskab")
def daskab() -> None:
    """Prove how many inputs an attacker must change to fool a Gaussian-process classifier."""


daskab.add_command(import_model)
daskab.add_command(data)
daskab.add_command(explain_input)
daskab.add_command(write_report)
daskab.add_command(nightly)
daskab.add_command(study)


def of_job(command: Command) -> Command:
    """Give a command a job file, and options for running it."""
    for option in (prometheus_option, junit_option, log_option, time_option, runs_option("runs"), cluster_option):
        command = option(command)
    return click.argument("job_file", metavar="JOB.toml", type=FilePath(path_type=Path))(command)


@daskab.command()
@of_job
def run(job_file: Path, **how: Any) -> int:
    """Run a job file: certify each of its models, going on where an earlier try stopped."""
    return run_job(read_job(job_file), **how)


@daskab.command()
@of_job
def sweep(job_file: Path, **how: Any) -> int:
    """Run a job file that must have a [sweep], as run does: every combination of its values, to choose a model by.

    It ends with a table that marks those which no other beats in accuracy and certified inputs at once.
    """
    job = read_job(job_file)
    if not job.sweep.axes:
        raise JobError(f"{job_file}: has no [sweep] with values to try; run it with: daskab run")
    return run_job(job, **how)


def run_job(
    job: Job,
    cluster: str | None,
    runs: Path,
    time_limit: float | None,
    log: str | None,
    junit: Path | None,
    prometheus: Path | None,
) -> int:
    """Certify the models of a job, tell what they come to, and report it as asked."""
    where = job.cluster if cluster is None else read_cluster(cluster)
    results = Results(job.name, [point.name for point in job.points()], job.run.require_inputs)
    with logged(log) as lines, reported(results, junit, prometheus), swept(job, results, runs):
        with watched(lines) as watch, executor(where) as workers:
            certify_job(job, results, runs, workers, watch, deadline_in(time_limit))
        for name in results.close():
            click.echo(f"{job.name}/{name}: not reached in time\n")
    return results.code


@daskab.command()
@click.argument("model_file", metavar="MODEL.npz", type=FilePath(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the certificate as one JSON object and nothing else.")
@cluster_option
@click.option("--runs", type=runs_path, help="Keep the run here, or under s3://bucket/prefix; default: not kept.")
@time_option
@log_option
@click.option("--rtol", type=float, help="Close every input that matters to this far above what it attains.")
@click.option(
    "--method", help="adaptive (default); fixed: equal slices, every sequence; grid: so, by the paper's grid."
)
@click.option("--slices", type=int, help="Slices an input; default 4 to start from if adaptive, else 100.")
@click.option("--node-budget", type=int, help="Most sequences bounded an input, if adaptive; default 20000.")
@click.option("--pair-nodes", type=int, help="Most nodes of the search over pairs, if adaptive; default 20000.")
@click.option("--set-nodes", type=int, help="Most nodes of the search over sets of inputs, if adaptive.")
@click.option("--components", type=int, help="Principal directions the grid spans; default 2.")
@click.option("--resolution", type=int, help="Lines of the grid along the box's diagonal; default 50.")
@click.option("--enhance", type=int, help="Times the input with the highest bound is cut finer, if not adaptive.")
@click.option("--enhance-slices", type=int, help="Slices it is cut into; default twice as many.")
@click.option("--require-inputs", type=click.IntRange(min=1), help="Exit with 1 if fewer are certified.")
def certify(
    model_file: Path,
    as_json: bool,
    cluster: str | None,
    runs: Path | None,
    time_limit: float | None,
    log: str | None,
    require_inputs: int | None,
    **given: object,
) -> int:
    """Certify a trained model given as an .npz file."""
    options, where = bound_options(**given), read_cluster(cluster or "inline")
    model = load_model(model_file)
    with logged(log) as lines, watched(lines) as watch:
        outcome = certify_model(
            model,
            options,
            AttackOptions(),
            runs=runs,
            cluster=where,
            time_limit=time_limit,
            progress=watch.parts(model_file.stem),
        )
    certificate = outcome.certificate
    if as_json:
        click.echo(certificate.to_json())
    else:
        click.echo(f"{model_file.name} ({model.n_centres} centres, {model.n_inputs} inputs)")
        attacker(model)
        click.echo(indent(verdict(certificate, noun=noun_of(model))))
        ratio = bound_ratio(certificate)
        if ratio is not None:
            click.echo(f"  R = {ratio:.6f} (sum of bounds / sum attained)")
    return exit_code(certificate, require_inputs)


@daskab.command()
@click.argument("job_file", metavar="JOB.toml", type=FilePath(path_type=Path))
@runs_option("fits")
def plan(job_file: Path, runs: Path) -> int:
    """Say what a job would do: units, tasks, memory, time. Models are fitted, nothing is bounded."""
    job = read_job(job_file)
    console = Console()
    for item in job_models(job, runs):
        name, question = f"{job.name}/{item.name}", make_question(item.model, item.bound, job.attack)
        if item.model.kernel == EQ:
            console.print(describe_plan(name, question, item.model, job.run.batch))
            continue
        parts = parts_of(item.model)
        questions = bare_questions(question, parts)
        for k, (asked, part) in enumerate(zip(questions, parts.models, strict=True), start=1):
            console.print(describe_plan(f"{name} part {k} of {len(questions)}", asked, part, job.run.batch))
    return 0


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")


@daskab.command("ls")
@click.argument("runs", metavar="[RUNS]", type=runs_path, default=Path("runs"))
@json_option
def list_runs(runs: Path, as_json: bool) -> int:
    """List the runs in a directory: their state, and what each certifies so far."""
    with reaching(runs):
        if not runs.is_dir():
            raise click.UsageError(f"{runs}: there is no such directory of runs")
        found = list(runs_in(runs))
    if as_json:
        click.echo(canonical_json([run.to_dict() for run in found]))
    elif found:
        show(describe_runs(found))
    else:
        click.echo(f"{runs}: no runs")
    return 0


@daskab.command()
@click.argument("folder", metavar="RUN", type=Folder(exists=True))
@json_option
def status(folder: Path, as_json: bool) -> int:
    """Show how far a run is, without disturbing it: 0 if it is sealed and complete, else 3."""
    with reaching(folder):
        run = look_at(folder)
    if as_json:
        click.echo(canonical_json(run.to_dict()))
    else:
        show(describe_run(run))
    if run.state == "damaged":
        return INTEGRITY
    return 0 if run.state == "sealed" and (run.certificate or {}).get("complete") else INCOMPLETE


@daskab.command()
@click.argument("folder", metavar="RUN", type=Folder(exists=True))
@click.option(
    "--share",
    type=Finite(0.0, 1.0),
    default=0.05,
    show_default=True,
    help="Share of the bounds proved again by a second path and of the tasks done anew, chosen at random.",
)
@click.option("--all", "everything", is_flag=True, help="Do all of them anew.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of that choice.")
@cluster_option
def verify(folder: Path, share: float, everything: bool, seed: int, cluster: str | None) -> int:
    """Check a sealed run: digests, witnesses, other attacks, a share of it proved by a second path and done anew."""
    # Here, for the second path needs libraries that nothing else does.
    from daskab.verify.run import verify_run
    from daskab.verify.sandwich import verify_sandwich

    code = 0
    with reaching(folder), executor(read_cluster(cluster or "inline")) as workers:
        verified = verify_sandwich if is_sandwich(folder) else verify_run
        for check in verified(folder, workers, share=1.0 if everything else share, seed=seed):
            click.echo(f"{'ok    ' if check.held else 'FAILED'}  {check.name}: {check.said}")
            code = code if check.held else INTEGRITY
    click.echo(f"{folder}: {'verified' if code == 0 else 'not verified: do not rely on its certificate'}")
    return code


@daskab.command()
def schema() -> int:
    """Print the JSON Schema of certificates."""
    click.echo(files("daskab.report").joinpath("certificate.schema.json").read_text(encoding="utf-8"), nl=False)
    return 0


@daskab.command()
@click.argument("folder", metavar="FOLDER", type=FilePath(file_okay=False, path_type=Path))
@click.option("--host", "hosts", multiple=True, help="Name or address of a scheduler or worker; default: this machine.")
@click.option("--days", type=click.IntRange(min=1), default=365, show_default=True, help="Until they run out.")
def certificates(folder: Path, hosts: tuple[str, ...], days: int) -> int:
    """Make certificates for a Dask cluster over TLS, and say how to begin one with them."""
    try:
        from daskab.run.executors.certificates import make_certificates
    except ImportError:
        raise DaskabError("certificates need the package cryptography: pip install 'daskab[tls]'") from None
    hosts = hosts or ("localhost", "127.0.0.1", platform.node())
    make_certificates(folder, hosts, days)
    click.echo(describe_tls(folder.absolute(), hosts[0]), nl=False)
    return 0
