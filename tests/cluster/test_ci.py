"""The workflow for CI fits its schema, and what it does is what daskab and the nightly file of the repository know."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import Any

import pytest
import yaml
from recipes import CLUSTER, ROOT, check

from daskab.run.job import read_job
from daskab.run.nightly import read_nightly

WORKFLOW = CLUSTER / "ci" / "nightly.yml"


@pytest.fixture(scope="module")
def job() -> Any:
    return yaml.safe_load(WORKFLOW.read_text())["jobs"]["nightly"]


def test_the_workflow_fits_its_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", WORKFLOW]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_the_workflow_does(job: Any) -> None:
    (command,) = [words for step in job["steps"] if (words := shlex.split(step.get("run", "")))[:1] == ["daskab"]]
    check(command)
    assert command[1] == "nightly"
    nightly = read_nightly(ROOT / command[2])
    assert nightly.time_limit is not None
    assert nightly.time_limit < 60 * job["timeout-minutes"]
    assert all(read_job(entry.file).points() for entry in nightly.jobs)
    # What is shown and kept is there, of a failed night too.
    folder = f"runs/nightly/{nightly.name}/"
    shown = [step for step in job["steps"] if folder in str(step)]
    assert [name for step in shown for name in ("summary.md", "history.html") if folder + name in str(step)] == [
        "summary.md",
        "history.html",
    ]
    restore, save = (step for step in job["steps"] if "cache/" in step.get("uses", ""))
    assert restore["with"]["path"] == save["with"]["path"] == "runs"
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"])
    assert all(step["if"] == "always()" for step in (*shown, save))
