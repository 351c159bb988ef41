"""The log of a run: one JSON object a line, and a run that does not depend on it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from examples import Call, run_folder, snapshot, write_job

from daskab.report.log import Log
from daskab.run.records import Failure


def entries(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def events(found: list[dict[str, Any]]) -> list[str]:
    return [entry["event"] for entry in found]


def test_a_run_as_it_is_logged(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m")
    began = datetime.now(UTC).replace(microsecond=0)
    assert call("run", "tiny.toml", "--log", "log.jsonl").code == 0
    found = entries(Path("log.jsonl").read_text())
    folder = run_folder(Path("runs"))
    certificate = json.loads((folder / "certificate.json").read_text())
    times = [datetime.fromisoformat(entry["time"]) for entry in found]
    assert all(began <= time <= datetime.now(UTC) for time in times)
    assert times == sorted(times)
    assert {(entry["model"], entry["run"]) for entry in found} == {("tiny/m", certificate["run_id"])}
    assert events(found)[:3] == ["begun", "stage", "task"]
    assert set(events(found)) == {"begun", "stage", "task", "known", "sealed"}
    tasks = [entry for entry in found if entry["event"] == "task"]
    for task in tasks:
        record = json.loads((folder / "records" / f"{task['task']}.json").read_text())
        assert {name: task[name] for name in ("seconds", "host", "opened", "left_open")}.items() <= record.items()
    stages = [entry for entry in found if entry["event"] == "stage"]
    assert sum(stage["total"] - stage["done"] for stage in stages) == len(tasks)
    assert [stage["stage"] for stage in stages] == ["contributions", "attack", "joint attack", "round 1"]
    sealed = found[-1]
    assert (sealed["folder"], sealed["failures"]) == (str(folder), 0)
    for name in ("inputs_required", "attack_inputs", "no_attack_exists", "complete"):
        assert sealed[name] == certificate[name]


def test_it_is_appended_to(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m", "n")
    assert call("run", "tiny.toml", "--log", "log.jsonl", "--time-limit", "1e-9").code == 3
    assert call("run", "tiny.toml", "--log", "log.jsonl").code == 0
    assert call("run", "tiny.toml", "--log", "log.jsonl").code == 0
    found = [entry for entry in entries(Path("log.jsonl").read_text()) if entry["event"] not in ("stage", "task")]
    for model in ("tiny/m", "tiny/n"):
        said = events([entry for entry in found if entry["model"] == model])
        assert said[:1] == ["begun"]
        assert said[-2:] == ["found", "sealed"]
        assert said.index("not sealed") + 1 == said.index("resumed")
        assert said.count("sealed") == 2


def test_on_standard_error_it_stands_alone(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m")
    said = call("certify", "m.npz", "--json", "--method", "fixed", "--slices", 2, "--log", "-")
    found = entries(said.err)
    assert events(found)[-1] == "sealed"
    assert found[-1]["inputs_required"] == json.loads(said.out)["inputs_required"]
    assert {entry["model"] for entry in found} == {"m"}


def test_an_error_comes_last(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m", "gone")
    Path("gone.npz").unlink()
    said = call("run", "tiny.toml", "--log", "log.jsonl")
    assert said.code == 2
    last = entries(Path("log.jsonl").read_text())[-1]
    assert (last["event"], last["exit_code"]) == ("error", 2)
    assert said.err == f"daskab: {last['message']}\n"
    assert "model" not in last


@pytest.mark.parametrize("path", ["absent/log", "."])
def test_a_log_that_cannot_be_written_to_is_refused(path: str, call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m")
    before = snapshot(tmp_path)
    said = call("run", "tiny.toml", "--log", path, "--junit", "j.xml")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"daskab: {path}: ")
    assert said.err.count("\n") == 1
    assert snapshot(tmp_path) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_ends_the_log_and_not_the_run(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m")
    said = call("run", "tiny.toml", "--log", "/dev/full")
    assert said.code == 0
    assert said.err == "daskab: /dev/full: No space left on device; the log ends here, the run goes on\n"


def test_whatever_is_said_is_one_line(tmp_path: Path) -> None:
    why = "two\nlines, \ud800 and \x00"
    with Log(str(tmp_path / "log")) as log:
        log.of("m").fail(Failure("round-0-000001", why))
    (line,) = (tmp_path / "log").read_bytes().splitlines()
    assert json.loads(line)["why"] == why
    with Log(None) as log:
        log.of("m").fail(Failure("round-0-000001", why))
