"""The report for CI says what the exit code says, and can be read whatever it holds."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from examples import Call, ask, mixed_model, run_folder, snapshot, write_job
from junitparser import Error, Failure, Skipped
from junitparser.xunit2 import JUnitXml, TestCase, TestSuite

from daskab.files import write_atomically
from daskab.report.junit import write_junit
from daskab.report.results import Results
from daskab.run import records
from daskab.run.job import bound_options
from daskab.run.stages import Outcome


def read(path: Path) -> tuple[TestSuite, list[TestCase]]:
    (suite,) = JUnitXml.fromfile(str(path))
    return suite, list(suite)


def kinds(cases: list[TestCase]) -> list[list[type]]:
    return [[type(result) for result in case.result] for case in cases]


def test_every_model_is_a_test_case(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m")
    assert call("run", "tiny.toml", "--junit", "j.xml").code == 0
    suite, (case,) = read(Path("j.xml"))
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == ("tiny", 1, 0, 0, 0)
    assert datetime.fromisoformat(suite.timestamp).tzinfo is not None
    assert (case.classname, case.name, case.is_passed) == ("tiny", "m", True)
    assert case.time == suite.time > 0
    properties = {p.name: p.value for p in case.properties()}
    certificate = json.loads((run_folder(Path("runs")) / "certificate.json").read_text())
    for name in ("run_id", "inputs_required", "attack_inputs", "complete", "no_attack_exists"):
        assert properties[name] == str(certificate[name]).lower()
    assert properties["exact"] == "false"
    assert float(properties["R"]) >= 1.0
    assert "Proved: no point can be moved" in case.system_out


def test_a_requirement_that_is_not_met_is_a_failure(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m", "n", require_inputs=2)
    assert call("run", "tiny.toml", "--junit", "j.xml").code == 1
    suite, cases = read(Path("j.xml"))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (2, 1, 0, 0)
    assert kinds(cases) == [[], [Failure]]
    assert cases[1].result[0].message == "certified 1 input, required 2"
    assert call("run", "tiny.toml", "--junit", "j.xml", "--runs", "late", "--time-limit", "1e-9").code == 3
    _, cases = read(Path("j.xml"))
    assert cases[0].result[0].message == "certified 1 input, required 2; incomplete"


def test_without_a_requirement_incomplete_is_an_error(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m")
    assert call("run", "tiny.toml", "--junit", "j.xml", "--time-limit", "1e-9").code == 3
    suite, cases = read(Path("j.xml"))
    assert (suite.failures, suite.errors) == (0, 1)
    assert kinds(cases) == [[Error]]
    assert cases[0].result[0].message == "incomplete; certified 1 input so far"


def test_a_job_that_ends_early_says_what_was_done(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m", "gone", "never")
    Path("gone.npz").unlink()
    said = call("run", "tiny.toml", "--junit", "j.xml")
    assert said.code == 2
    suite, cases = read(Path("j.xml"))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (3, 0, 1, 1)
    assert kinds(cases) == [[], [Error], [Skipped]]
    assert said.err == f"daskab: {cases[1].result[0].message}\n"
    assert [case.name for case in cases] == ["m", "gone", "never"]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return ask(mixed_model(), bound_options(method="fixed", slices=3), tmp_path_factory.mktemp("run"))


def test_tasks_that_failed_are_an_error_where_they_matter(outcome: Outcome, tmp_path: Path) -> None:
    lost = records.Failure("round-0-000001", "killed every worker it was given to")
    unsealed = replace(
        outcome, certificate=replace(outcome.certificate, complete=False), sealed=False, failures=(lost, lost)
    )
    for required, code, expected in ((None, 3, [Error]), (3, 3, [Error]), (2, 0, [])):
        results = Results("job", ["m"], required)
        results.add("m", unsealed)
        assert results.code == code
        write_junit([results], tmp_path / "j.xml")
        _, (case,) = read(tmp_path / "j.xml")
        assert kinds([case]) == [expected]
        for error in case.result:
            assert error.message == (
                "2 tasks could not be done, the first: round-0-000001 killed every worker it was given to"
            )


def test_what_xml_cannot_carry_is_replaced(tmp_path: Path) -> None:
    results = Results("job", ["m"], None)
    results.stop(2, '\x00\x1b[1m\ud800\ufffe & <"ü\U0001f600">')
    write_junit([results], tmp_path / "j.xml")
    (error,) = ET.parse(tmp_path / "j.xml").iterfind(".//error")
    assert error.get("message") == '\ufffd\ufffd[1m\ufffd\ufffd & <"ü\U0001f600">'


def test_a_report_without_a_place_is_refused(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m")
    before = snapshot(tmp_path)
    for path, said in (("absent/j.xml", "there is no such directory"), (".", "is a directory")):
        refused = call("run", "tiny.toml", "--junit", path)
        assert (refused.code, refused.out) == (2, "")
        assert said in refused.err
        assert refused.err.count("\n") == 1
    assert snapshot(tmp_path) == before


def test_a_report_that_cannot_be_written_in_the_end_is_said(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m")
    long = f"{'j' * 250}.xml"  # a name that its temporary one is too long for
    said = call("run", "tiny.toml", "--junit", long)
    assert said.code == 2
    assert said.err == f"daskab: {long}: File name too long; this report is not written\n"
    assert "(sealed)" in said.out


def test_a_link_stays_one_and_what_it_points_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")  # which is not there the first time
    for text in ("one", "another"):
        write_atomically(tmp_path / "link", text)
        assert (tmp_path / "link").readlink() == Path("there/file")
        assert (tmp_path / "there" / "file").read_text() == text
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["file"]


def test_a_device_is_written_to_and_stays_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(tmp_path / "pipe", "text")
    assert os.read(end, 100) == b"text"
    os.close(end)
    assert (tmp_path / "pipe").is_fifo()
