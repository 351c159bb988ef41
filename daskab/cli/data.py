"""``daskab data``: which data sets there are, and how they come to this machine."""

from __future__ import annotations

import click

from daskab.cli.printing import show
from daskab.datasets.fetching import fetch
from daskab.datasets.local import find
from daskab.datasets.registry import entry, known
from daskab.report.data import describe_data, describe_entry
from daskab.run.plan import canonical_json


@click.group()
def data() -> None:
    """Data sets to fit models to. DASKAB_DATA names a folder with copies of their files."""


@data.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else: all that is known of them.")
def list_data(as_json: bool) -> int:
    """List the data sets, and which of them are on this machine."""
    found = find(file for item in known().values() for file in item.files)
    here = {name: all(file in found for file in item.files) for name, item in known().items()}
    if as_json:
        click.echo(
            canonical_json([{**item.model_dump(mode="json"), "here": here[item.name]} for item in known().values()])
        )
    else:
        show(describe_data(known(), here))
    return 0


@data.command("fetch")
@click.argument("name", metavar="NAME")
def fetch_data(name: str) -> int:
    """Download a data set unless it is here, check it, and say what to know of it."""
    item = entry(name)
    for file, path in fetch(item).items():
        click.echo(f"{path} (sha256 {file.sha256[:16]}...)")
    click.echo(describe_entry(item))
    return 0
