"""Looking at runs: sealed, stopped, running and damaged ones, without touching them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from examples import ADAPTIVE, Logged, ask, mixed_model, snapshot

from daskab.cli import main
from daskab.errors import IntegrityError
from daskab.run.lease import one_writer
from daskab.run.stages import Outcome
from daskab.run.status import look_at, runs_in

MODEL = mixed_model()


@pytest.fixture(scope="module")
def sealed_run(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return ask(MODEL, ADAPTIVE, tmp_path_factory.mktemp("sealed"))


@pytest.fixture(scope="module")
def stopped_run(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return ask(MODEL, ADAPTIVE, tmp_path_factory.mktemp("stopped"), Logged(6))


def command(*args: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*map(str, args)])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_sealed_run(sealed_run: Outcome) -> None:
    before = snapshot(sealed_run.folder)
    run = look_at(sealed_run.folder)
    assert run.state == "sealed"
    assert run.certificate == json.loads(sealed_run.certificate.to_json())
    assert run.tasks == len(list((sealed_run.folder / "records").glob("*.json")))
    assert {"contributions", "attack", "several", "round-0"} <= {stage.stage for stage in run.stages}
    assert len(run.hosts) == 1
    assert snapshot(sealed_run.folder) == before


def test_a_stopped_run(stopped_run: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    run = look_at(stopped_run.folder)
    assert (run.state, run.tasks) == ("stopped", 6)
    assert run.certificate is not None
    assert run.certificate["complete"] is False
    assert command("status", stopped_run.folder) == 3
    assert "goes on from here" in " ".join(capsys.readouterr().out.split())


def test_a_running_run_is_not_disturbed(stopped_run: Outcome) -> None:
    with one_writer(stopped_run.folder):
        assert look_at(stopped_run.folder).state == "running"
    assert look_at(stopped_run.folder).state == "stopped"


def test_damage_is_said(sealed_run: Outcome, tmp_path: Path) -> None:
    copy = shutil.copytree(sealed_run.folder, tmp_path / "run")
    (copy / "records" / "round-0-000000.json").write_text("{")
    assert look_at(copy).tasks == look_at(sealed_run.folder).tasks - 1
    (copy / "certificate.json").write_text("[]")
    assert look_at(copy).state == "stopped"
    (copy / "plan.json").write_text("{}")
    assert look_at(copy).state == "damaged"
    assert command("status", copy) == 4
    (copy / "plan.json").unlink()
    with pytest.raises(IntegrityError, match="not a run"):
        look_at(copy)


def test_files_that_are_no_records_are_passed_over(sealed_run: Outcome, tmp_path: Path) -> None:
    copy = shutil.copytree(sealed_run.folder, tmp_path / "run")
    for name in ("foo", "x-y", "foo-000000", "round-000000", "round-00-000000", "several-0", "round-0-1-2"):
        (copy / "records" / f"{name}.json").write_text("{}")
    assert look_at(copy).stages == look_at(sealed_run.folder).stages


def test_names_are_shown_whole_and_as_they_are(
    stopped_run: Outcome, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the narrowest terminal too, and whatever rich would make of them."""
    monkeypatch.setenv("COLUMNS", "20")
    name = "[red]" + stopped_run.folder.name + ":smile:"
    shutil.copytree(stopped_run.folder, tmp_path / "[runs]" / name)
    assert command("ls", tmp_path / "[runs]") == 0
    (line,) = capsys.readouterr().out.splitlines()[1:]
    assert line.split()[:2] == [name, "stopped"]
    assert command("status", tmp_path / "[runs]" / name) == 3
    said = capsys.readouterr().out
    assert said.startswith(f"{tmp_path / '[runs]' / name}: stopped, ")
    assert "contributions" in said


def test_a_directory_of_runs(
    sealed_run: Outcome, stopped_run: Outcome, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("ls", tmp_path / "none") == 2
    assert command("ls", tmp_path) == 0
    assert "no runs" in capsys.readouterr().out
    shutil.copytree(sealed_run.folder, tmp_path / "a")
    shutil.copytree(stopped_run.folder, tmp_path / "b")
    (tmp_path / "models").mkdir()
    assert [(run.folder.name, run.state) for run in runs_in(tmp_path)] == [("a", "sealed"), ("b", "stopped")]
    assert command("ls", tmp_path) == 0
    said = capsys.readouterr().out
    assert "sealed" in said
    assert "so far" in said
    assert command("ls", tmp_path, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [run["run"] for run in listed] == ["a", "b"]
    assert listed[0]["inputs_required"] == sealed_run.certificate.inputs_required
    assert command("status", tmp_path / "a", "--json") in (0, 3)
    assert json.loads(capsys.readouterr().out)["state"] == "sealed"
