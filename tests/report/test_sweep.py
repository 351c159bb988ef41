"""Sweeps: one dataset and one table of every combination, whatever became of each."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from examples import WINE, Call, snapshot, write_job

from daskab.cli.signals import signals
from daskab.report.sweep import pareto
from daskab.run.certificate import Certificate
from daskab.run.job import read_job
from daskab.run.records import Record


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Two models with files, two slices each."""
    path = write_job(tmp_path, "one", "two")
    path.write_text(path.read_text() + "[sweep]\nslices = [2, 5]\n")
    return path


@pytest.mark.filterwarnings("error")
def test_a_sweep_is_one_dataset(job: Path, call: Call, tmp_path: Path) -> None:
    said = call("sweep", job)
    assert said.code == 0, said.err
    swept = xr.open_zarr(tmp_path / "runs" / "sweeps" / "tiny.zarr").load()
    assert dict(swept.sizes) == {"model": 2, "slices": 2}
    assert swept.slices.values.tolist() == [2, 5]
    assert swept.model.values.tolist() == ["one", "two"]
    assert swept.complete.all()
    assert np.all(swept.accuracy.isnull())
    coarse, fine = (swept.upper_bound_sum.sel(slices=n) for n in (2, 5))
    assert np.all(fine < coarse)
    for point in read_job(job).points():
        run = tmp_path / "runs" / str(swept.run.sel(model=point.model.name, **point.values).item())
        bounds = xr.open_zarr(run / "evidence.zarr").upper_bound
        assert swept.upper_bound_sum.sel(model=point.model.name, **point.values) == pytest.approx(float(bounds.sum()))
        assert f"tiny/{point.name} (" in said.out
    assert list((tmp_path / "runs" / "sweeps").iterdir()) == [tmp_path / "runs" / "sweeps" / "tiny.zarr"]
    table = said.out.splitlines()[-7:]
    assert table[0].split() == ["model", "slices", "accuracy", "certified", "attack", "seconds"]
    assert [line.split()[:2] for line in table[1:5]] == [["one", "2"], ["one", "5"], ["two", "2"], ["two", "5"]]


def test_the_baseline_stands_beside_every_point_of_its_data(call: Call, tmp_path: Path) -> None:
    (tmp_path / "wine.toml").write_text(f"{WINE}[sweep]\nlengthscale = [4.0, 5.0]\nseed = [0, 1]\n")
    said = call("run", "wine.toml")
    assert said.code == 0, said.err
    swept = xr.open_zarr(tmp_path / "runs" / "sweeps" / "wine.zarr").load()
    for name in ("baseline_certified", "baseline_accuracy"):
        assert np.array_equal(swept[name].sel(lengthscale=4.0), swept[name].sel(lengthscale=5.0))
        assert swept[name].sel(seed=0, lengthscale=4.0) != swept[name].sel(seed=1, lengthscale=4.0)
    assert not swept.baseline_no_attack_exists.any()
    kept = sorted((tmp_path / "runs" / "baselines").iterdir())
    certificates = [Certificate.from_json(path.read_text(), str(path)) for path in kept]
    assert sorted(c.inputs_required for c in certificates) == sorted(swept.baseline_certified.values[0, 0])
    for seed in (0, 1):
        assert said.out.count(f"wine/logistic,seed={seed} (linear, 13 inputs, accuracy 0.9") == 1
    table = said.out.splitlines()[-7:-2]
    assert table[0].split()[-5:] == ["attack", "seconds", "logistic:", "accuracy", "certified"]
    assert all(f"{swept.baseline_accuracy.values[0, 0, i % 2]:.3f}" in line for i, line in enumerate(table[1:]))
    before = snapshot(tmp_path / "runs" / "baselines")
    assert call("run", "wine.toml").code == 0
    assert snapshot(tmp_path / "runs" / "baselines") == before


def test_what_is_stopped_is_kept_so_far_and_completed_by_the_same_command(
    job: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack of the third of four points is interrupted."""
    advance, attacks = type(signals).advance, 0

    def interrupt(self: object, record: Record) -> None:
        nonlocal attacks
        attacks += record.task == "several-000000"
        if attacks == 3:
            raise KeyboardInterrupt
        advance(signals, record)

    with monkeypatch.context() as patch:
        patch.setattr(type(signals), "advance", interrupt)
        assert call("run", job).code == 130
    where = tmp_path / "runs" / "sweeps" / "tiny.zarr"
    swept = xr.open_zarr(where).load()
    assert swept.certified.notnull().values.tolist() == [[True, True], [False, False]]
    assert swept.complete.values.tolist() == [[True, True], [False, False]]
    assert swept.run.values.tolist()[1] == ["", ""]
    assert call("run", job).code == 0
    assert xr.open_zarr(where).complete.all()


def test_a_job_without_a_sweep_keeps_none(call: Call, tmp_path: Path) -> None:
    plain = write_job(tmp_path, "one")
    refused = call("sweep", plain)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == f"daskab: {plain}: has no [sweep] with values to try; run it with: daskab run\n"
    assert not (tmp_path / "runs").exists()
    said = call("run", plain)
    assert said.code == 0
    assert "Sweep" not in said.out
    assert not (tmp_path / "runs" / "sweeps").exists()


def test_the_pareto_set() -> None:
    nan = math.nan
    points = [(0.9, 3.0), (0.8, 4.0), (0.8, 3.0), (0.9, 3.0), (0.95, nan), (nan, 9.0), (0.5, math.inf)]
    assert pareto(points) == [True, True, False, True, False, False, True]
    assert pareto([]) == []
