"""The textfile says what the run came to, in what the collector reads, and remembers the last success."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from examples import Call, ask, mixed_model, run_folder, snapshot, write_job
from prometheus_client.parser import text_string_to_metric_families

from daskab.report.prometheus import write_textfile
from daskab.report.results import Results
from daskab.run.job import bound_options
from daskab.run.stages import Outcome

Samples = dict[tuple[str, ...], float]
SUCCESS = ("daskab_last_success_timestamp_seconds", "tiny")


def samples(path: Path) -> Samples:
    """Values by name, job and model; each a gauge that says what it is."""
    families = list(text_string_to_metric_families(path.read_text()))
    assert all(family.type == "gauge" and family.documentation for family in families)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_what_a_run_came_to(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m", require_inputs=2)
    began = time.time()
    assert call("run", "tiny.toml", "--prometheus", "tiny.prom").code == 0
    certificate = json.loads((run_folder(Path("runs")) / "certificate.json").read_text())
    found = samples(Path("tiny.prom"))
    assert began <= found["daskab_last_run_timestamp_seconds", "tiny"] == found[SUCCESS] <= time.time()
    assert found.pop(("daskab_run_seconds", "tiny", "m")) > 0
    assert {key: value for key, value in found.items() if "timestamp" not in key[0]} == {
        ("daskab_inputs_required", "tiny", "m"): certificate["inputs_required"],
        ("daskab_attack_inputs", "tiny", "m"): certificate["attack_inputs"],
        ("daskab_complete", "tiny", "m"): 1,
        ("daskab_exact", "tiny", "m"): 0,
        ("daskab_tasks_failed", "tiny", "m"): 0,
        ("daskab_required_inputs", "tiny"): 2,
        ("daskab_exit_code", "tiny"): 0,
    }


def test_the_last_success_is_kept_until_the_next(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m")
    late = ("run", "tiny.toml", "--runs", "late", "--prometheus", "tiny.prom", "--time-limit", "1e-9")
    assert call(*late).code == 3
    assert samples(Path("tiny.prom"))[SUCCESS] == 0
    assert call("run", "tiny.toml", "--prometheus", "tiny.prom").code == 0
    success = samples(Path("tiny.prom"))[SUCCESS]
    assert success > 0
    assert call(*late).code == 3
    found = samples(Path("tiny.prom"))
    assert found[SUCCESS] == success < found["daskab_last_run_timestamp_seconds", "tiny"]
    assert found["daskab_exit_code", "tiny"] == 3
    Path("m.npz").unlink()
    assert call("run", "tiny.toml", "--prometheus", "tiny.prom").code == 2
    found = samples(Path("tiny.prom"))
    assert found[SUCCESS] == success
    assert found["daskab_complete", "tiny", "m"] == 0
    assert ("daskab_inputs_required", "tiny", "m") not in found


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00",
        b"daskab_last_success_timestamp_seconds{job=",
        b'daskab_last_success_timestamp_seconds{job="tiny"} many\n',
        b'daskab_last_success_timestamp_seconds{job="tiny"} NaN\n',
        b'daskab_last_success_timestamp_seconds{job="other"} 5\n',
    ],
)
def test_a_file_that_does_not_say_is_no_success(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tiny.prom"
    path.write_bytes(content)
    results = Results("tiny", ["m", "n"], None)
    results.stop(130, "interrupted")
    write_textfile([results], path)
    found = samples(path)
    assert found[SUCCESS] == 0
    assert found["daskab_exit_code", "tiny"] == 130
    assert found["daskab_complete", "tiny", "n"] == 0


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return ask(mixed_model(), bound_options(method="fixed", slices=3), tmp_path_factory.mktemp("run"))


def test_what_is_not_a_number(outcome: Outcome, tmp_path: Path) -> None:
    certificate = replace(outcome.certificate, inputs_required=None, attack=None)
    results = Results("tiny", ["none exists", 'no "thresholds"\\\n'], None)
    results.add("none exists", replace(outcome, certificate=replace(certificate, no_attack_exists=True)))
    results.add('no "thresholds"\\\n', replace(outcome, certificate=replace(certificate, delta=None)))
    write_textfile([results], tmp_path / "tiny.prom")
    found = samples(tmp_path / "tiny.prom")
    assert found["daskab_inputs_required", "tiny", "none exists"] == math.inf
    assert found["daskab_complete", "tiny", 'no "thresholds"\\\n'] == 1
    assert [key for key in found if key[0] == "daskab_inputs_required"] == [
        ("daskab_inputs_required", "tiny", "none exists")
    ]
    assert not [key for key in found if key[0] == "daskab_attack_inputs"]


def test_a_textfile_that_nobody_would_read_is_refused(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_job(tmp_path, "m")
    before = snapshot(tmp_path)
    said = call("run", "tiny.toml", "--prometheus", "tiny.txt")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "daskab: --prometheus: tiny.txt does not end in .prom, so the textfile collector would not read it\n"
    )
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    said = call("run", "tiny.toml", "--prometheus", "tiny.prom")
    assert (said.code, said.out) == (2, "")
    assert said.err == "daskab: --prometheus: needs prometheus_client; pip install 'daskab[prometheus]'\n"
    assert snapshot(tmp_path) == before
