"""Nights of real runs: improved, regressed, killed, overlapping, missed, damaged, and those no longer kept."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from examples import PATIENCE, WINE, Call, mixed_model, snapshot, start, wait_for, write_job
from junitparser import Error, Failure
from junitparser.xunit2 import JUnitXml
from prometheus_client.parser import text_string_to_metric_families

from daskab import save_model
from daskab.run.cluster import ClusterOptions
from daskab.run.executors import Executor, executor
from daskab.run.nights import Night

FOLDER = Path("runs/nightly/tiny")
NIGHTLY = """\
name = "tiny"
keep = 2
[[job]]
name = "job"
file = "tiny.toml"
[tolerance]
upper_bound = 0.05
"""
REPORTS = ("--junit", "j.xml", "--prometheus", "n.prom")


@pytest.fixture
def nightly(call: Call, tmp_path: Path) -> Path:
    """A nightly file of one job of one model, of which 2 inputs are certified."""
    write_job(tmp_path, "m")
    (tmp_path / "nightly.toml").write_text(NIGHTLY)
    return tmp_path / "nightly.toml"


def scaled(by: float, name: str = "m") -> None:
    """Make another model of the first one: its bounds and attained values are so many times as high."""
    save_model(mixed_model().replace(weights=by * mixed_model().weights), f"{name}.npz")


def kept() -> list[Path]:
    return sorted(FOLDER.glob("0*.json"))


def nights() -> list[Night]:
    return [Night.read(path) for path in kept()]


def runs() -> set[str]:
    return {path.parent.name for path in Path("runs").glob("*/plan.json")}


def gauges() -> dict[str, float]:
    families = text_string_to_metric_families(Path("n.prom").read_text())
    return {s.name.removeprefix("daskab_nightly_"): s.value for family in families for s in family.samples}


def backdated(hours: float) -> None:
    """Let the last night have begun so much earlier."""
    path = kept()[-1]
    night = Night.read(path)
    begun = night.begun - timedelta(hours=hours)
    path.unlink()
    name = f"{night.number:06d}-{begun:%Y%m%dT%H%M%SZ}.json"
    (FOLDER / name).write_text(night.model_copy(update={"begun": begun}).to_json())


class Page(HTMLParser):
    """A page, as far as those who cannot see it go by it."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.labelled: list[str] = []
        self.tags: list[str] = []
        self.feed((FOLDER / "history.html").read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.ids.add(given.get("id") or "")
        self.labelled += (given.get("aria-labelledby") or "").split()
        assert not {"src", "href", "onload"} & set(given), "the page needs another file"
        if tag == "svg":
            assert given["role"] == "img"
            assert given["aria-labelledby"]


def test_three_nights(call: Call, nightly: Path) -> None:
    said = call("nightly", nightly, *REPORTS)
    assert said.code == 0
    assert "This is the first night: there is nothing to compare with." in said.out
    assert nights()[0].models[0].verdict == "first"

    scaled(0.5)
    said = call("nightly", nightly, *REPORTS)
    assert said.code == 0
    assert "| job/m | improved | 2 to 3 |" in said.out
    assert gauges()["regressed"] == 0

    scaled(1.5)
    said = call("nightly", nightly, *REPORTS)
    assert said.code == 1
    assert said.out == (FOLDER / "summary.md").read_text()
    assert "| job/m | **regressed** | 3 to 1 |" in said.out
    assert "## job/m, compared with night 2\n" in said.out
    assert "- certified inputs fell from 3 to 1\n" in said.out
    rose = re.search(r"- bounds of 3 of 3 inputs rose by more than 5 %: (.*)\n", said.out)
    assert rose is not None
    assert sorted(re.findall(r"in\d", rose[1])) == ["in0", "in1", "in2"]
    (suite,) = JUnitXml.fromfile("j.xml")
    (case,) = suite
    assert (case.classname, case.name, type(case.result[0])) == ("job", "m", Failure)
    assert case.result[0].message.startswith("certified inputs fell from 3 to 1; bounds of 3 of 3 inputs rose")
    assert (gauges()["regressed"], gauges()["models_regressed"], gauges()["exit_code"]) == (1, 1, 1)
    text = (FOLDER / "history.html").read_text()
    assert text.count("<rect") == 1
    assert text.count("<tr>") == 1 + 2  # of the head, and the two nights that are kept
    page = Page()
    assert page.labelled
    assert set(page.labelled) <= page.ids
    assert {"svg", "title", "desc", "table", "th"} <= set(page.tags)

    # The same model again: its sealed run is found.
    before = snapshot(Path("runs") / str(nights()[-1].models[0].run))
    said = call("nightly", nightly)
    assert said.code == 0
    assert nights()[-1].models[0].verdict == "unchanged"
    assert snapshot(Path("runs") / str(nights()[-1].models[0].run)) == before


SLOW = """\
name = "slow"
[[model]]
name = "m"
file = "slow.npz"
[bound]
method = "fixed"
slices = 12
[run]
batch = 36
"""


@pytest.fixture
def with_slow(nightly: Path) -> Path:
    """Another job after the first; its model is small in the first night, and then takes seconds."""
    Path("slow.toml").write_text(SLOW)
    save_model(mixed_model(4, 2), "slow.npz")
    nightly.write_text(NIGHTLY + '[[job]]\nname = "slow"\nfile = "slow.toml"\n')
    return nightly


def in_progress() -> str | None:
    """The run of the second model, once the night is at it."""
    current = FOLDER / "current.json"
    return Night.read(current).models[1].run if current.exists() else None


def test_a_killed_night(call: Call, with_slow: Path) -> None:
    assert call("nightly", with_slow).code == 0
    first = nights()[0]
    scaled(1.5)
    save_model(mixed_model(12, 8), "slow.npz")
    running = start("nightly", with_slow, cwd=Path.cwd(), group=True)
    try:
        wait_for(lambda: in_progress() is not None, running)
        slow = in_progress()
        wait_for(lambda: len(list(Path(f"runs/{slow}/records").glob("round*.json"))) > 2, running)
        os.kill(running.pid, signal.SIGSTOP)  # so that there is time for the other one
        before = snapshot(FOLDER)
        said = call("nightly", with_slow, *REPORTS)
        assert said.code == 75
        assert (
            said.err == "daskab: runs/nightly/tiny: another process is working on this night; wait for it or stop it\n"
        )
        assert not Path("j.xml").exists()
        assert snapshot(FOLDER) == before
        os.kill(running.pid, signal.SIGKILL)
        running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert nights() == [first]
    assert not Path(f"runs/{slow}/certificate.json").exists()
    done = {path: path.read_bytes() for path in Path(f"runs/{slow}/records").iterdir()}

    # What the killed night sealed, it told nobody of.
    said = call("nightly", with_slow)
    assert said.code == 1
    assert [night.state for night in nights()] == ["told", "killed", "told"]
    assert "was killed; nothing is compared with it" in said.out
    assert "## job/m, compared with night 1\n\n- certified inputs fell from 2 to 1\n" in said.out
    assert nights()[1].models[0].state == "sealed"
    assert nights()[2].models[1].state == "sealed"
    assert all(path.read_bytes() == content for path, content in done.items())
    assert not (FOLDER / "current.json").exists()
    # What was told is what the next night is compared with.
    assert call("nightly", with_slow).code == 0


def test_an_interrupted_night(call: Call, with_slow: Path) -> None:
    assert call("nightly", with_slow).code == 0
    save_model(mixed_model(12, 8), "slow.npz")
    before = len(list(Path("runs").glob("*/records/round*.json")))

    def interrupt() -> None:
        wait_for(lambda: len(list(Path("runs").glob("*/records/round*.json"))) > before + 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    said = call("nightly", with_slow, *REPORTS)
    thread.join()
    assert said.code == 130
    assert said.err.endswith("daskab: interrupted; the same command goes on from here\n")
    assert (nights()[-1].state, nights()[-1].exit_code) == ("interrupted", 130)
    assert gauges()["exit_code"] == 130
    assert [case.result[:1] and type(case.result[0]) for suite in JUnitXml.fromfile("j.xml") for case in suite] == [
        [],
        Error,
    ]
    assert "# tiny: interrupted" in (FOLDER / "summary.md").read_text()


def test_missed_nights(call: Call, nightly: Path) -> None:
    call("nightly", nightly)
    backdated(25)
    call("nightly", nightly, *REPORTS)
    assert gauges()["missed"] == 0
    backdated(76)
    said = call("nightly", nightly, *REPORTS)
    assert said.code == 0
    assert "Missed: 2 nights were expected between" in said.out
    assert gauges()["missed"] == 2
    page = (FOLDER / "history.html").read_text()
    assert "Missed: 2 nights were expected between" in page
    assert "after 2 missed" in page
    assert "stroke-dasharray" in page


def test_a_damaged_record_is_named(call: Call, nightly: Path) -> None:
    call("nightly", nightly)
    scaled(1.5)
    assert call("nightly", nightly).code == 1
    damaged = kept()[-1]
    damaged.write_text(damaged.read_text().replace('"inputs_required":1', '"inputs_required":9'))
    said = call("nightly", nightly, *REPORTS)
    assert said.code == 1
    assert f"Damaged: {damaged}: is not as it was written; nothing is compared with it." in said.out.replace("\\", "")
    assert "compared with night 1" in said.out
    assert gauges()["damaged"] == 1
    assert "damaged" in (FOLDER / "history.html").read_text()


def test_the_last_nights_are_kept(call: Call, nightly: Path) -> None:
    call("nightly", nightly)
    first = nights()[0].models[0].run
    for by in (0.9, 0.8):
        scaled(by)
        assert call("nightly", nightly).code == 0
    assert [night.number for night in nights()] == [2, 3]
    assert runs() == {str(night.models[0].run) for night in nights()}
    assert first not in runs()
    assert not list(FOLDER.glob("removed/*"))


def test_an_incomplete_night(call: Call, nightly: Path) -> None:
    call("nightly", nightly)
    nightly.write_text(NIGHTLY.replace("keep = 2", 'keep = 2\ntime_limit = "1ms"'))
    assert call("nightly", nightly).code == 0  # what is sealed is found in no time
    scaled(1.5)
    for line in ("keep = 2", "[[job]]"):  # of the night, and of a job
        nightly.write_text(NIGHTLY.replace(line, f'{line}\ntime_limit = "1ms"'))
        said = call("nightly", nightly, *REPORTS)
        assert said.code == 3
        assert "| job/m | not " in said.out
    # It is no baseline: the night after is compared with the one before.
    nightly.write_text(NIGHTLY)
    said = call("nightly", nightly)
    assert said.code == 1
    assert "compared with night 2" in said.out


def test_baselines_are_compared_too(call: Call, tmp_path: Path) -> None:
    Path("tiny.toml").write_text(WINE.replace('"logistic"', '"logistic"\nC = 1e-4'))
    Path("nightly.toml").write_text(NIGHTLY)
    said = call("nightly", "nightly.toml", *REPORTS)
    assert said.code == 0, said.err
    assert said.out.count("first result") == 2
    suite, *_ = JUnitXml.fromfile("j.xml")
    model, baseline = suite
    assert (baseline.classname, baseline.name, baseline.is_passed) == ("job", "logistic", True)
    assert {p.value for p in model.properties() if p.name == "baseline"} == {"logistic"}
    measured = nights()[0].models[1].measured
    assert measured is not None
    labels = '{baseline="logistic",job="job"}'
    assert f"daskab_baseline_inputs_required{labels} {measured.inputs_required:.1f}\n" in Path("n.prom").read_text()
    assert f"daskab_baseline_accuracy{labels} {measured.accuracy}\n" in Path("n.prom").read_text()

    Path("tiny.toml").write_text(WINE)
    said = call("nightly", "nightly.toml", *REPORTS)
    assert said.code == 1, said.out
    assert [one.verdict for one in nights()[-1].models] == ["unchanged", "regressed"]
    assert [one.baseline for one in nights()[-1].models] == [False, True]
    assert "| job/m | unchanged |" in said.out
    assert "| job/logistic | **regressed** |" in said.out
    assert "- warning: it is another baseline than before" in said.out
    (suite,) = JUnitXml.fromfile("j.xml")
    assert [type(result) for case in suite for result in case.result] == [Failure]
    assert gauges()["models_regressed"] == 1
    # The third of two nights that are kept; certificates of baselines are no runs that could go.
    assert call("nightly", "nightly.toml").code == 0
    assert runs() == {str(nights()[-1].models[0].run)}


def test_one_cluster_serves_jobs_that_ask_for_the_same(
    call: Call, nightly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[str] = []

    def noted(options: ClusterOptions) -> Executor:
        asked_for.append(options.kind)
        return executor(options)

    monkeypatch.setattr("daskab.cli.nightly.executor", noted)
    Path("other.toml").write_text(f'{Path("tiny.toml").read_text()}[cluster]\nkind = "processes"\n')
    jobs = [f'[[job]]\nname = "{name}"\nfile = "{file}.toml"\n' for name, file in (("two", "tiny"), ("three", "other"))]
    nightly.write_text(NIGHTLY + "".join(jobs))
    said = call("nightly", nightly)
    assert said.code == 0, said.err
    assert [model.state for model in nights()[0].models] == ["sealed"] * 3
    assert asked_for == ["inline", "processes"]


def test_a_run_that_cannot_go_on_keeps_no_other_from_its_turn(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m", "n")
    save_model(mixed_model(seed=5), "n.npz")
    Path("nightly.toml").write_text(NIGHTLY)
    assert call("nightly", "nightly.toml").code == 0
    damaged, _ = nights()[0].models
    Path(f"runs/{damaged.run}/certificate.json").write_text("{}")
    said = call("nightly", "nightly.toml", *REPORTS)
    assert said.code == 4
    assert [model.state for model in nights()[-1].models] == ["failed", "sealed"]
    assert "is not as it was sealed" in said.out
    assert nights()[-1].models[0].run == damaged.run


def test_the_runs_of_a_night_are_one_queue(call: Call, tmp_path: Path) -> None:
    """Two jobs, and a model of another kernel: where a stage of one ends, tasks of the next are given."""
    write_job(tmp_path, "m")
    (tmp_path / "other.toml").write_text(Path("tiny.toml").read_text().replace("m.npz", "other.npz"))
    save_model(mixed_model(seed=5).replace(kernel="matern52"), "other.npz")
    Path("nightly.toml").write_text(NIGHTLY + '[[job]]\nname = "other"\nfile = "other.toml"\n')
    assert call("nightly", "nightly.toml", "--cluster", "processes", "--log", "log").code == 0
    lines = [json.loads(line) for line in Path("log").read_text().splitlines()]
    events = [(line["model"], line["event"]) for line in lines if line["event"] in {"begun", "sealed"}]
    assert events.index(("other/m", "begun")) < events.index(("job/m", "sealed"))
    assert events[-1] == ("other/m", "sealed")
    times = [model.measured.seconds for model in nights()[0].models if model.measured is not None]
    assert len(times) == 2
    assert all(seconds is not None and seconds > 0 for seconds in times)


def test_one_model_that_fails_keeps_no_other_from_its_turn(call: Call, tmp_path: Path) -> None:
    write_job(tmp_path, "m", "n")
    Path("nightly.toml").write_text(NIGHTLY)
    Path("m.npz").unlink()
    said = call("nightly", "nightly.toml", *REPORTS)
    assert said.code == 2
    assert [model.state for model in nights()[0].models] == ["failed", "sealed"]
    assert f"## job/m\n\n- {nights()[0].models[0].error}\n" in said.out
    (suite,) = JUnitXml.fromfile("j.xml")
    assert (suite.errors, suite.failures, suite.skipped) == (1, 0, 0)
    assert type(next(iter(suite)).result[0]) is Error
    write_job(tmp_path, "m", "n", require_inputs=2)
    assert call("nightly", "nightly.toml").code == 1
    assert [model.error for model in nights()[-1].models] == [None, "certified 1 input, required 2"]
    before = snapshot(tmp_path)
    Path("tiny.toml").write_text("nam = 1\n")
    said = call("nightly", "nightly.toml")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert {name for name, what in snapshot(tmp_path).items() if what != before.get(name)} == {"tiny.toml"}
