"""The paper's experiments in their small setting: what they came to when that was last looked at, in ``paper.toml``.

Where a change is meant to move a number, look at the page of `daskab study`, and renew them all, with the data at hand:

    PYTHONPATH=. python tests/paper.py > new.toml && mv new.toml tests/paper.toml
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import tomlkit

from daskab.datasets.local import find
from daskab.run.job import read_job
from daskab.run.study import Experiment, read_study

STUDY = Path(__file__).parent.parent / "workflows" / "paper" / "study.toml"
EXPECTED = Path(__file__).with_suffix(".toml")
EXPERIMENTS = {one.name: one for one in read_study(STUDY).experiments}

Numbers = dict[str, str | float]


def is_here(experiment: Experiment) -> bool:
    """Whether the data of an experiment is on this machine."""
    data = read_job(experiment.small).data
    assert data is not None
    return len(find(data.entry.files)) == len(data.entry.files)


def numbers_on(page: str) -> dict[str, Numbers]:
    """What the one table of a Markdown page of `daskab study` says of each model."""
    head, _, *rows = (
        [cell.strip().replace("\\", "") for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("|")
    )
    cells = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    return {
        model: {
            "certified": cell["certified"],
            "logistic regression": cell["logistic regression"],
            "sum of bounds": float(cell["sum of bounds"]),
        }
        for model, cell in cells.items()
    }


def expected() -> dict[str, dict[str, Numbers]]:
    """The numbers of each experiment, by model."""
    found: dict[str, dict[str, Numbers]] = tomllib.loads(EXPECTED.read_text())
    return found


def main() -> None:
    """Run all experiments and print their numbers."""
    document = tomlkit.document()
    document.add(tomlkit.comment("Made by paper.py: k of the model and of its baseline, and the sum of its bounds."))
    if missing := [name for name, one in EXPERIMENTS.items() if not is_here(one)]:
        raise SystemExit(f"the data of {', '.join(missing)} is not here; set DASKAB_DATA to a folder that has it")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "daskab.cli", "study", STUDY, "--runs", f"{folder}/runs", "-o", folder]
        if (code := subprocess.run(command, stdout=sys.stderr).returncode) not in (0, 3):
            raise SystemExit(f"daskab study: exit code {code}")
        _, *sections = Path(folder, "index.md").read_text().split("\n## ")
    for name, section in zip(EXPERIMENTS, sections, strict=True):
        document[name] = numbers_on(section)
    print(tomlkit.dumps(document), end="")


if __name__ == "__main__":
    main()
