"""The image's recipe and the compose file: parsed, linted, of exact versions, and of commands that there are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from recipes import CLUSTER, ROOT, check

from daskab._version import VERSION

FOLDER = CLUSTER / "container"
RECIPE = (FOLDER / "Containerfile").read_text()


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())


def test_the_recipe_names_exact_versions() -> None:
    assert re.findall(r"^FROM (.*)$", RECIPE, flags=re.M) == ["python:3.11.14-slim-bookworm"]
    assert "pip install --no-cache-dir -c constraints.txt " in RECIPE
    for line in (ROOT / "constraints.txt").read_text().split():
        assert re.fullmatch(r"[\w.-]+==[\w.]+", line), line
    for source in re.findall(r"^COPY (.*) \S+$", RECIPE, flags=re.M):
        assert all((ROOT / name).exists() for name in source.split())


def test_the_recipe_is_linted() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, FOLDER / "Containerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_compose_file_fits_its_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, FOLDER / "compose.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_the_compose_file_begins(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["image"] == f"daskab:{VERSION}"
        assert service["networks"] == ["dask"]
        if name != "certificates":
            check([str(word) for word in service["command"]])
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or (FOLDER / source).exists()
        assert set(service.get("depends_on", ())) <= set(compose["services"])
    assert compose["networks"]["dask"]["internal"] is True
    for page in (CLUSTER / "kubernetes", FOLDER):
        for path in page.iterdir():
            assert set(re.findall(r"daskab:([\d.]+)", path.read_text())) <= {VERSION}
