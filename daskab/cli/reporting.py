"""``daskab report`` and ``daskab explain``: what a run came to, for people to look at."""

from __future__ import annotations

from pathlib import Path

import click

from daskab.cli.parameters import Folder
from daskab.cli.printing import show
from daskab.files import reaching
from daskab.report.explain import describe_explanation, explain, input_of
from daskab.run.plan import canonical_json
from daskab.run.reading import read_run


@click.command("explain")
@click.argument("folder", metavar="RUN", type=Folder(exists=True))
@click.argument("wanted", metavar="INPUT")
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
def explain_input(folder: Path, wanted: str, as_json: bool) -> int:
    """Say what gives the bound of one input, by its name or number: the path, the pair of points, the centres."""
    with reaching(folder):
        reading = read_run(folder)
        found = explain(reading, input_of(reading.space.model.input_names, wanted))
    if as_json:
        click.echo(canonical_json(found.to_dict()))
    else:
        show(describe_explanation(found))
    return 0
