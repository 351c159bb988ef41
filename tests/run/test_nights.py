"""What is kept of nights, what is compared, and what is removed; the nights themselves are in test_nightly.py."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from daskab.errors import IntegrityError, JobError
from daskab.run.comparison import compare
from daskab.run.lease import one_writer
from daskab.run.nightly import Nightly, NightlyJob, Tolerances, read_nightly
from daskab.run.nights import Measured, ModelNight, Night, Nights, missed
from daskab.run.pruning import Pruned, prune

FULL = """\
name = "tiny"
every = "12h"
slack = "30m"
keep = 5
time_limit = "3h"
[[job]]
name = "first"
file = "a.toml"
time_limit = "90s"
[tolerance]
inputs_required = 1
upper_bound = 0.05
thresholds = 0.1
accuracy = 0.01
time = 3
time_fails = true
"""
OPTIONS = Nightly(name="tiny", job=(NightlyJob(name="job", file="a.toml"),))


def test_every_value_of_a_full_file(tmp_path: Path) -> None:
    path = tmp_path / "n.toml"
    path.write_text(FULL)
    options = read_nightly(path)
    assert options.jobs == (NightlyJob.model_construct(name="first", file=tmp_path / "a.toml", time_limit=90.0),)
    assert (options.every, options.slack, options.keep, options.time_limit) == (43_200.0, 1800.0, 5, 10_800.0)
    assert options.tolerance == Tolerances(
        inputs_required=1, upper_bound=0.05, thresholds=0.1, accuracy=0.01, time=3.0, time_fails=True
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("12h", "12", "n.toml:2: every: '12' is not a time such as '24h', '90m' or '30s'"),
        ('"12h"', "12", "n.toml:2: every: 12 is not a time such as '24h', '90m' or '30s'"),
        ("30m", "-30m", "n.toml:3: slack: '-30m' is not a time such as '24h', '90m' or '30s'"),
        ("30m", "1e999h", "n.toml:3: slack: '1e999h' is not a time such as '24h', '90m' or '30s'"),
        ("keep = 5", "keep = 1", "n.toml:4: keep: 1 is not greater than or equal to 2"),
        ("keep", "keeep", "n.toml:4: keeep: unknown key; did you mean keep?"),
        ("[[job]]", "[job]", "n.toml:6: job: {'file': 'a.toml', 'name': 'first', 'time_limit': '90s'} is not an array; "
         "write [[job]]"),
        ("file =", "fil =", "n.toml:8: job[0].fil: unknown key; did you mean file?"),
        ("upper_bound = 0.05", "upper_bound = -1", "n.toml:12: tolerance.upper_bound: -1 is not greater than or equal"),
        ("accuracy", "acuracy", "n.toml:14: tolerance.acuracy: unknown key; did you mean accuracy?"),
        ("[tolerance]", '[[job]]\nname = "first"\nfile = "b"\n[tolerance]', "n.toml:11: job[1].name: 'first'"),
        (FULL, 'name = "a"\njob = []\n', "n.toml:2: job: empty"),
        (FULL, "", "n.toml: empty; a nightly file has at least a name and a [[job]]"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_line(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("n.toml").write_text(FULL.replace(old, new, 1))
    with pytest.raises(JobError) as caught:
        read_nightly(Path("n.toml"))
    assert str(caught.value).startswith(message)


# What is compared.

BEFORE: dict[str, Any] = {
    "inputs_required": 7,
    "attack_inputs": 8,
    "no_attack_exists": False,
    "complete": True,
    "upper_bound": {"a": 1.0, "b": 0.5, "c": 0.0},
    "latent_low": -1.0,
    "latent_high": 1.0,
    "accuracy": 0.95,
    "seconds": 100.0,
}


def model(run: int, **measured: Any) -> ModelNight:
    return ModelNight(
        job="job",
        model="m",
        state="sealed",
        run=f"{run:016x}",
        measured=Measured(**{**BEFORE, **measured}),
        verdict="first",
    )


def compared(was: dict[str, Any], now: dict[str, Any], **tolerance: Any) -> tuple[Any, list[str], list[str]]:
    found = compare(model(2, **now), 4, model(1, **was), Tolerances(**tolerance))
    assert found.compared_with == 4
    return found.verdict, list(found.worse), list(found.warned)


@pytest.mark.parametrize(
    ("was", "now", "tolerance", "verdict"),
    [
        ({}, {}, {}, "held"),
        ({}, {"inputs_required": 8}, {}, "improved"),
        ({}, {"no_attack_exists": True, "inputs_required": None}, {}, "improved"),
        ({}, {"inputs_required": 6}, {}, "certified inputs fell from 7 to 6"),
        ({}, {"inputs_required": 6}, {"inputs_required": 1}, "held"),
        (
            {},
            {"inputs_required": 5},
            {"inputs_required": 1},
            "certified inputs fell from 7 to 5; a fall of at most 1 is tolerated",
        ),
        (
            {"no_attack_exists": True, "inputs_required": None},
            {"inputs_required": 99},
            {},
            "certified inputs fell from no attack exists to 99",
        ),
        (
            {},
            {"inputs_required": None, "latent_low": None, "latent_high": None},
            {},
            "certified inputs: 7 before, and now the model has no thresholds",
        ),
        ({"inputs_required": None}, {}, {}, "improved"),
        ({}, {"upper_bound": {"a": 9.0, "b": 9.0, "c": 9.0}}, {}, "held"),
        ({}, {"upper_bound": {"a": 1.05, "b": 0.5, "c": 0.0}}, {"upper_bound": 0.05}, "held"),
        (
            {},
            {"upper_bound": {"a": 1.1, "b": 0.6, "c": 0.0}},
            {"upper_bound": 0.05},
            "bounds of 2 of 3 inputs rose by more than 5 %: b 0.5 to 0.6, a 1 to 1.1",
        ),
        (
            {},
            {"upper_bound": {"a": 1.0, "b": 0.5, "c": 0.1}},
            {"upper_bound": 0.0},
            "bounds of 1 of 3 inputs rose: c 0 to 0.1",
        ),
        ({}, {"latent_high": 1.2}, {"thresholds": 0.1}, "held"),
        (
            {},
            {"latent_high": 1.3},
            {"thresholds": 0.1},
            "the high threshold moved from 1 to 1.3, by more than 10 % of their distance",
        ),
        ({}, {"accuracy": 0.94}, {"accuracy": 0.01}, "held"),
        (
            {},
            {"accuracy": 0.92},
            {"accuracy": 0.01},
            "accuracy fell from 0.95 to 0.92; a fall of at most 0.01 is tolerated",
        ),
        ({}, {"accuracy": None}, {"accuracy": 0.01}, "the accuracy is not known any more; it was 0.95"),
        ({}, {"accuracy": 0.2}, {}, "held"),
        (
            {},
            {"seconds": 210.0},
            {"time_fails": True},
            "time grew from 100 to 210 s, by more than a factor of 2",
        ),
    ],
)
def test_what_is_worse(was: Any, now: Any, tolerance: Any, verdict: str) -> None:
    found, worse, _ = compared(was, now, **tolerance)
    assert (worse or [found]) == [verdict]
    assert (found == "regressed") == bool(worse)


def test_what_is_warned_of() -> None:
    assert compared({}, {"seconds": 210.0}) == (
        "held",
        [],
        ["time grew from 100 to 210 s, by more than a factor of 2"],
    )
    assert compared({"seconds": 0.1}, {"seconds": 1.0})[2] == []
    other = {"upper_bound": {"a": 1.0, "d": 5.0}}
    assert compared({}, other, upper_bound=0.0) == ("held", [], ["new inputs: d", "inputs gone: b, c"])


def test_the_same_run_is_unchanged() -> None:
    assert compare(model(1), 1, model(1), Tolerances()).verdict == "unchanged"
    # Its accuracy is no part of the run.
    assert compare(model(1, accuracy=0.5), 1, model(1), Tolerances(accuracy=0.1)).verdict == "regressed"


# What is kept.


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def keep(runs: Path, number: int, *of: ModelNight, state: str = "told", name: str = "tiny") -> Path:
    """Keep a night; its runs are there."""
    folder = runs / "nightly" / name
    nights = Nights(folder)
    folder.mkdir(parents=True, exist_ok=True)
    begun = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    night = Night(nightly=name, number=number, begun=begun, models=of, state=state)
    for run in night.runs:
        (runs / run).mkdir(parents=True, exist_ok=True)
        (runs / run / "plan.json").write_text("{}")
    kept = nights.kept(night)
    kept.path.write_text(night.to_json())
    return kept.path


def test_a_night_is_read_back(runs: Path) -> None:
    path = keep(runs, 3, model(1))
    assert Night.read(path).models == (model(1),)
    text = path.read_text()
    for damaged in (
        "",
        "[]",
        "null",
        "[" * 100_000,
        text[:-9],
        text.replace("0.95", "0.96"),
        text.replace('"job"', '"jib"'),
    ):
        path.write_text(damaged)
        with pytest.raises(IntegrityError, match=path.name) as caught:
            Night.read(path)
        assert str(caught.value).isprintable()
    path.write_text(text)
    (kept,) = Nights(path.rename(path.with_name("000004-20260104T000000Z.json")).parent).past
    assert kept.damage.endswith(": is of night 3")
    kept.path.rename(path)
    (path.parent / "000009-20269999T000000Z.json").write_text(text)  # none of ours
    path.write_bytes(b"\xff\x00")
    (kept,) = Nights(path.parent).past
    assert (kept.number, kept.night) == (3, None)


def test_a_night_of_another_schema_is_refused(runs: Path) -> None:
    path = keep(runs, 1)
    path.write_text(Night.read(path).model_copy(update={"schema_": "daskab night 9"}).to_json())
    with pytest.raises(IntegrityError, match=r"is no record of a night \(schema: "):
        Night.read(path)


def test_what_a_model_is_compared_with(runs: Path) -> None:
    keep(runs, 1, model(1))
    keep(runs, 2, model(2))
    keep(runs, 3, model(3).model_copy(update={"state": "not sealed"}))
    keep(runs, 4, model(4), state="killed")
    keep(runs, 5, model(5), state="interrupted")
    nights = Nights(runs / "nightly" / "tiny")
    assert nights.last_sealed("job/m") == (2, model(2))
    assert nights.last_sealed("job/n") is None


def test_what_a_killed_night_left(runs: Path) -> None:
    folder = runs / "nightly" / "tiny"
    killed = Nights(folder).begin(OPTIONS, [model(1)])
    after = Nights(folder)
    night = after.begin(OPTIONS, [])
    assert (killed.number, night.number) == (1, 2)
    assert [(kept.number, kept.night and kept.night.state) for kept in after.past] == [(1, "killed")]
    # Killed after it was kept, but for that nothing is left to do.
    keep(runs, 2, model(2))
    last = Nights(folder)
    assert last.begin(OPTIONS, []).number == 3
    assert [kept.night and kept.night.state for kept in last.past] == ["killed", "told"]
    (folder / "current.json").write_text("{")
    last = Nights(folder)
    assert last.begin(OPTIONS, []).number == 4
    assert [kept.night is None for kept in last.past] == [False, False, True]
    last.end(last.begin(OPTIONS, []).ending("told", 0))
    assert not (folder / "current.json").exists()


def test_how_many_nights_were_missed() -> None:
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    hours = {23: 0, 24: 0, 26: 0, 26.1: 1, 48: 1, 59: 1, 72: 2, 24 * 30: 29, -5: 0}
    assert {h: missed(begun, begun + timedelta(hours=h), OPTIONS) for h in hours} == hours


# What is removed.


def pruned(runs: Path, tonight: ModelNight) -> dict[str, Any]:
    nights = Nights(runs / "nightly" / "tiny")
    night = Night(nightly="tiny", number=99, begun=datetime.now(UTC), models=(tonight,))
    found = asdict(prune(nights, night, 2))
    return {name: value for name, value in found.items() if value != getattr(Pruned, name)}


def left(runs: Path) -> set[int]:
    return {int(path.parent.name, 16) for path in runs.glob("*/plan.json")}


def test_a_run_goes_once_nothing_refers_to_it(runs: Path) -> None:
    for number, run in enumerate((1, 2, 1, 3), start=1):
        keep(runs, number, model(run))
    (runs / "nightly/tiny/removed/x").mkdir(parents=True)
    assert pruned(runs, model(2)) == {"runs": (f"{1:016x}",), "nights": 3}
    assert left(runs) == {2, 3}
    assert sorted(path.name[:6] for path in (runs / "nightly/tiny").glob("0*.json")) == ["000004"]
    assert not list((runs / "nightly/tiny/removed").glob("*"))
    assert pruned(runs, model(2)) == {}


def test_the_last_sealed_result_is_kept(runs: Path) -> None:
    keep(runs, 1, model(1))
    for number in (2, 3, 4):
        keep(runs, number, model(number).model_copy(update={"state": "not sealed"}))
    assert pruned(runs, model(5).model_copy(update={"state": "not sealed"}))["nights"] == 2
    assert left(runs) == {1, 4}


def test_a_run_that_a_process_is_at_stays(runs: Path) -> None:
    for number in (1, 2, 3):
        keep(runs, number, model(number))
    with one_writer(runs / f"{1:016x}"):
        assert pruned(runs, model(4)) == {"runs": (f"{2:016x}",), "nights": 1}
    assert left(runs) == {1, 3}
    assert pruned(runs, model(4)) == {"runs": (f"{1:016x}",), "nights": 1}


@pytest.mark.parametrize("state", ["told", "running"])
def test_what_others_refer_to_stays(runs: Path, state: str) -> None:
    for number in (1, 2, 3):
        keep(runs, number, model(number))
    other = keep(runs, 1, model(1), name="other", state=state)
    if state == "running":
        other = other.rename(other.with_name("current.json"))
    (runs / "sweeps").mkdir()
    names = np.array([f"{2:016x}"], dtype=object)
    xr.Dataset({"run": ("point", names)}).to_zarr(runs / "sweeps" / "s.zarr", consolidated=False)
    pruned(runs, model(4))
    assert left(runs) == {1, 2, 3}


@pytest.mark.parametrize("what", ["ours", "another's", "another's in progress", "sweep"])
def test_nothing_is_removed_while_a_referrer_cannot_be_read(runs: Path, what: str) -> None:
    for number in (1, 2, 3):
        keep(runs, number, model(number))
    keep(runs, 1, name="other")
    path = {
        "ours": runs / "nightly/tiny/000003-20260104T000000Z.json",
        "another's": runs / "nightly/other/000001-20260102T000000Z.json",
        "another's in progress": runs / "nightly/other/current.json",
        "sweep": runs / "sweeps/s.zarr/zarr.json",
    }[what]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    assert set(pruned(runs, model(4))) == {"why_not"}
    assert left(runs) == {1, 2, 3}
    path.unlink()
    if what != "sweep":
        assert pruned(runs, model(4))["runs"][:1] == (f"{1:016x}",)
