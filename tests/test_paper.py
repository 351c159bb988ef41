"""The paper's experiments: the files of both settings, and the small one's numbers as they were (see `paper`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import Call
from paper import EXPERIMENTS, STUDY, expected, is_here, numbers_on

from daskab.run.job import read_job

FOLDER = STUDY.parent
DIGITS = 5e-3
"""Of a sum of bounds: a fit's last bits are the machine's, and where refining stops may depend on them."""


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_both_settings_of_an_experiment_are_jobs_on_the_same_data(name: str) -> None:
    small, full = (read_job(EXPERIMENTS[name].job(full=full)) for full in (False, True))
    assert (small.name, full.name) == (f"{name}-small", name)
    assert small.data is not None
    assert full.data is not None
    apart = {"train_size"}
    assert small.data.model_dump(exclude=apart) == full.data.model_dump(exclude=apart)
    assert small.data.train_size <= full.data.train_size
    assert set(small.sweep.axes) <= set(full.sweep.axes)
    assert len(small.points()) <= len(full.points())
    assert {point.baseline is not None for point in (*small.points(), *full.points())} == {True}


def test_every_job_file_is_an_experiment() -> None:
    jobs = {path for one in EXPERIMENTS.values() for path in (one.small, one.full)}
    assert jobs == set(FOLDER.rglob("*.toml")) - {STUDY}


def test_every_experiment_has_its_numbers() -> None:
    points = {name: [point.name for point in read_job(one.small).points()] for name, one in EXPERIMENTS.items()}
    assert {name: list(models) for name, models in expected().items()} == points


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_comes_to_what_it_came_to(name: str, call: Call, tmp_path: Path) -> None:
    if not is_here(EXPERIMENTS[name]):
        pytest.skip(f"the data of {name} is not here; set DASKAB_DATA to a folder that has it")
    said = call("study", STUDY, name)
    assert said.code in (0, 3), said.err  # 3 where a budget ends first
    found, wanted = numbers_on((tmp_path / "study" / "index.md").read_text()), expected()[name]
    assert list(found) == list(wanted)
    for model, numbers in wanted.items():
        assert found[model] == {**numbers, "sum of bounds": pytest.approx(numbers["sum of bounds"], rel=DIGITS)}
