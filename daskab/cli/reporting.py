"""``daskab report`` and ``daskab explain``: what a run came to, for people to look at."""

from __future__ import annotations

from pathlib import Path

import click

from daskab.cli.options import output_option
from daskab.cli.parameters import Folder
from daskab.cli.printing import indent, show
from daskab.errors import DaskabError
from daskab.files import reaching
from daskab.report.explain import change_of, explain
from daskab.report.explain_words import describe_explanation
from daskab.report.results import INCOMPLETE
from daskab.run.plan import canonical_json
from daskab.run.reading import read_run


@click.command("report")
@click.argument("folders", metavar="RUN...", nargs=-1, required=True, type=Folder(exists=True))
@output_option("report", "index.html and its figures")
def write_report(folders: tuple[Path, ...], output: Path) -> int:
    """Write runs, or sweeps (runs/sweeps/JOB.zarr), as one HTML page: 0 if all are sealed and complete, else 3.

    The page needs nothing but itself. Its figures are also beside it, as SVG and PNG.
    """
    try:
        from daskab.report.page.parts import Section
        from daskab.report.page.points import read_sweep
        from daskab.report.page.run import run_section
        from daskab.report.page.sweep import sweep_section
        from daskab.report.page.write import write_page
    except ImportError:
        raise DaskabError("a report needs the package matplotlib: pip install 'daskab[report]'") from None
    sections: list[Section] = []
    for folder in dict.fromkeys(folders):
        with reaching(folder):
            if folder.suffix == ".zarr":
                sections.append(sweep_section(read_sweep(folder), f"sweep-{len(sections)}"))
            else:
                sections.append(run_section(read_run(folder)))
    page = write_page(sections, output)
    for section in sections:
        click.echo(f"{section.title}\n{indent(section.warning or section.verdict[0])}")
    click.echo(f"{page}")
    return 0 if all(section.complete for section in sections) else INCOMPLETE


@click.command("explain")
@click.argument("folder", metavar="RUN", type=Folder(exists=True))
@click.argument("wanted", metavar="INPUT")
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
def explain_input(folder: Path, wanted: str, as_json: bool) -> int:
    """Say what gives the bound of one input, or group, by its name or number: the path, the pair, the centres."""
    with reaching(folder):
        reading = read_run(folder)
        found = explain(reading, change_of(reading.model, wanted))
    if as_json:
        click.echo(canonical_json(found.to_dict()))
    else:
        show(describe_explanation(found))
    return 0
