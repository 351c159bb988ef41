"""The units for systemd are such as systemd accepts, and the service does its work with no more than it is given."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from recipes import CLUSTER, Place, check, replaced

UNITS = CLUSTER / "systemd"


def service() -> configparser.SectionProxy:
    units = configparser.RawConfigParser()
    units.optionxform = str  # type: ignore[assignment, method-assign]
    units.read(UNITS / "daskab.service")
    return units["Service"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for unit in UNITS.glob("daskab.*"):
        text = unit.read_text().replace("/opt/daskab/.venv/bin/daskab", "/bin/true")  # it wants to find the program
        (tmp_path / unit.name).write_text(text)
    units = [tmp_path / "daskab.service", tmp_path / "daskab.timer"]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    # Exposure of 2.0 at most, out of 10: "OK".
    offline = ["security", "--offline=true", "--threshold=20", "--no-pager", tmp_path / "daskab.service"]
    done = subprocess.run(["systemd-analyze", *offline], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_a_failure() -> None:
    assert service()["SuccessExitStatus"].split() == ["75", "143"]  # busy, and stopped
    check(["daskab", *shlex.split(service()["ExecStart"])[1:]])


@pytest.mark.recipe
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root, and iproute2")
def test_the_service_needs_no_network(tmp_path: Path) -> None:
    place = Place(tmp_path)
    here = {
        "/opt/daskab/.venv/bin/daskab": "daskab",
        "/etc/daskab/nightly.toml": "nightly.toml",
        "${STATE_DIRECTORY}": str(tmp_path),
    }
    assert service()["PrivateNetwork"] == "yes"
    command = f"ip link set lo up && {replaced(service()['ExecStart'], **here)}"
    done = place.do(["unshare", "--net", "sh", "-c", command])
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert place.certificate()
    assert (tmp_path / "nightly.xml").exists()
    assert (tmp_path / "log.jsonl").exists()
    assert (tmp_path / "runs" / "nightly" / "tiny" / "summary.md").exists()
