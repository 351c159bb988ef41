"""What goes on beside a command: progress, logs, reports, and how whatever ends it is told."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

import click

from daskab.cli.printing import show
from daskab.cli.signals import signals
from daskab.errors import DaskabError
from daskab.report.junit import write_junit
from daskab.report.log import Log
from daskab.report.progress import ProgressDisplay
from daskab.report.prometheus import Sample, check_textfile, write_textfile
from daskab.report.results import INCOMPLETE, Results
from daskab.report.sweep import describe_sweep, told_of, write_sweep
from daskab.run.job import Job
from daskab.run.progress import Progress, Watchers


class Watch:
    """Progress of runs, shown and logged; all of them stop between two tasks when a signal comes."""

    def __init__(self, log: Log, display: ProgressDisplay | None) -> None:
        self._log = log
        self._display = display

    def of(self, label: str) -> Progress:
        """Of the run that is called so."""
        shown = [] if self._display is None else [self._display.of(label)]
        return Watchers(*shown, self._log.of(label), signals)

    def parts(self, label: str) -> Callable[[str], Progress]:
        """Of the runs of the model that is called so, by what they are called beside that."""
        return lambda part: self.of(label + part)

    def paused(self) -> AbstractContextManager[object]:
        """Meanwhile nothing is shown, so that other things can be."""
        return nullcontext() if self._display is None else self._display.paused()


@contextmanager
def watched(log: Log) -> Iterator[Watch]:
    """Watch the runs of a command. A log on standard error is not mixed with what is for people."""
    with ExitStack() as stack:
        display = None if log.path == "-" else stack.enter_context(ProgressDisplay())
        stack.enter_context(signals)
        yield Watch(log, display)


@contextmanager
def logged(path: str | None) -> Iterator[Log]:
    """The log of a command, in which what ends it comes last."""
    with Log(path) as log:
        try:
            yield log
        except BaseException as error:
            log.error(*ending(error))
            raise


@contextmanager
def reported(results: Results, junit: Path | None, prometheus: Path | None) -> Iterator[None]:
    """Write the reports of a job, however it ends."""
    check_reports(junit, prometheus)
    try:
        yield
    except BaseException as error:
        results.stop(*ending(error))
        raise
    finally:
        if not write_reports([results], junit, prometheus):
            results.code = results.code or 2


def check_reports(junit: Path | None, prometheus: Path | None) -> None:
    """Say before any work which report could not be written."""
    for path in (junit, prometheus):
        if path is not None and not path.absolute().parent.is_dir():
            raise click.UsageError(f"{path}: there is no such directory to write it in")
    if prometheus is not None:
        check_textfile(prometheus)


def write_reports(
    jobs: Sequence[Results], junit: Path | None, prometheus: Path | None, more: Iterable[Sample] = ()
) -> bool:
    """Write the reports of jobs; whether all are written. Which is not is said."""
    return all(
        [
            written(junit, lambda path: write_junit(jobs, path)),
            written(prometheus, lambda path: write_textfile(jobs, path, more)),
        ]
    )


def written(path: Path | None, write: Callable[[Path], None]) -> bool:
    """Write one report, if it is asked for; False, and a line, if that fails."""
    try:
        if path is not None:
            write(path)
    except OSError as error:
        click.echo(f"daskab: {path}: {error.strerror or error}; this report is not written", err=True)
        return False
    return True


@contextmanager
def swept(job: Job, results: Results, runs: Path) -> Iterator[None]:
    """Keep the results of a sweep, however it ends; in the end show them."""
    if not job.sweep.axes:
        yield
        return
    try:
        yield
    finally:
        told = [told_of(result) for result in results]
        path = write_sweep(job, told, runs)
    show(describe_sweep(job, told))
    click.echo(
        f"  * no other is better in accuracy or certified inputs without being worse in the other\n  Sweep: {path}"
    )


def ending(error: BaseException) -> tuple[int, str]:
    """Exit code and message of what ends a command."""
    match error:
        case DaskabError():
            return error.exit_code, str(error)
        case click.ClickException():
            return error.exit_code, error.format_message()
        case click.Abort() | KeyboardInterrupt():
            terminated = signals.caught[-1:] == [signal.SIGTERM]
            how = "terminated" if terminated else "interrupted"
            code = 128 + (signal.SIGTERM if terminated else signal.SIGINT)
            return code, f"{how}; the same command goes on from here"
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return 2, f"{where}{error.strerror or error}"
        case _:  # a fault in daskab, whose traceback is printed; nobody knows what it left undone
            return INCOMPLETE, f"{type(error).__name__}: {error}; this is a fault in daskab, please report it"
