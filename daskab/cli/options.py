"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from daskab.cli.parameters import FilePath, Finite, Folder

Command = TypeVar("Command", bound=Callable[..., Any])

cluster_option = click.option(
    "--cluster",
    type=FilePath(),
    metavar="WHERE",
    help="inline: one task after another; processes: a Dask cluster of local processes; or a TOML file with a "
    "[cluster]. Same answer to the bit. Default: the job's, or inline.",
)
time_option = click.option(
    "--time-limit",
    type=Finite(min=0, min_open=True),
    metavar="SECONDS",
    help="Start no new task or fit after this long; what is proved until then is reported as incomplete.",
)
log_option = click.option(
    "--log",
    type=FilePath(),
    metavar="FILE",
    help="Append what happens to this file, one JSON object a line; - is standard error, in place of progress.",
)
report_path = FilePath(dir_okay=False, writable=True, path_type=Path)
junit_option = click.option("--junit", type=report_path, metavar="FILE", help="Write the results as JUnit XML, for CI.")
prometheus_option = click.option(
    "--prometheus",
    type=report_path,
    metavar="FILE.prom",
    help="Write them for the textfile collector of Prometheus' node exporter.",
)
runs_path = Folder()


def runs_option(what: str) -> Callable[[Command], Command]:
    """``--runs`` of a command that keeps ``what`` there in any case."""
    return click.option(
        "--runs",
        type=runs_path,
        default=Path("runs"),
        show_default=True,
        help=f"Where {what} are kept; s3:// too.",
    )


def output_option(folder: str, what: str) -> Callable[[Command], Command]:
    """``--output`` of a command that writes ``what`` to a ``folder``."""
    return click.option(
        "-o",
        "--output",
        type=FilePath(file_okay=False, path_type=Path),
        metavar="FOLDER",
        default=Path(folder),
        show_default=True,
        help=f"Where to write {what}.",
    )
