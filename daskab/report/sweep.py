"""A sweep as one xarray dataset, kept beside the runs, and as a table with its Pareto set."""

from __future__ import annotations

import math
import os
import shutil
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from daskab._version import VERSION
from daskab.files import on_s3, reaching, storage_options
from daskab.report.results import Result
from daskab.run.job import Job
from daskab.run.provenance import read_provenance
from daskab.run.sweep import Value, said

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[Any]
Told = dict[str, Any]
"""What is known of one point, by the names in `SAID`."""

SAID: dict[str, tuple[Any, str]] = {
    "certified": (np.nan, "inputs an attacker must change at least"),
    "attack": (np.nan, "inputs the best attack found changes"),
    "no_attack_exists": (False, "proved that no attack exists at all"),
    "complete": (False, "whether nothing was left undone"),
    "accuracy": (np.nan, "share of the test points classified correctly"),
    "upper_bound_sum": (np.nan, "sum of the one-input bounds, of the latent mean"),
    "delta": (np.nan, "distance of the thresholds, of the latent mean"),
    "task_seconds": (np.nan, "seconds of all tasks together"),
    "nodes": (np.nan, "nodes bounded"),
    "run": ("", "name of the run directory"),
}
OF_BASELINE: dict[str, tuple[Any, str]] = {
    "baseline_certified": (np.nan, "inputs an attacker of the baseline must change, exactly"),
    "baseline_no_attack_exists": (False, "whether no attack on the baseline exists at all"),
    "baseline_accuracy": (np.nan, "share of the test points the baseline classifies correctly"),
}
"""What is told of each point, and of the baseline beside it if there is one: what stands where it is not known, and
what it means."""


def sweep_dataset(job: Job, told: Sequence[Told]) -> xr.Dataset:
    """What is `told_of` each point of a sweep, one dimension a key that is swept over, after the models.

    Points that were not reached are NaN, False or empty.
    """
    import xarray as xr  # here, for it takes half a second that only sweeps need

    axes = job.sweep.axes
    shape = (len(job.models), *map(len, axes.values()))
    assert len(told) == math.prod(shape)  # the order of `Job.points`
    dims = ("model", *axes)
    variables = {}
    for name, (missing, meaning) in (SAID | (OF_BASELINE if job.baseline else {})).items():
        values = np.array([one.get(name, missing) for one in told], dtype=object if missing == "" else type(missing))
        variables[name] = (dims, values.reshape(shape), {"long_name": meaning})
    coordinates = {"model": _coordinate([model.name for model in job.models])}
    coordinates |= {key: _coordinate(values) for key, values in axes.items()}
    return xr.Dataset(variables, coordinates, {"job": job.name, "daskab": VERSION})


def told_of(result: Result) -> Told:
    """What is known of one point; nothing before it has a certificate."""
    if result.outcome is None:
        return {}
    certificate, folder = result.outcome.certificate, result.outcome.folder
    spent = read_provenance(folder)
    known = {
        "certified": certificate.inputs_required,
        "attack": certificate.attack_inputs,
        "no_attack_exists": certificate.no_attack_exists,
        "complete": certificate.complete,
        "accuracy": result.accuracy,
        "upper_bound_sum": float(np.sum(certificate.upper_bound)),
        "delta": certificate.delta,
        "task_seconds": spent.get("task_seconds"),
        "nodes": spent.get("nodes"),
        "run": folder.name,
    }
    if result.baseline is not None:
        beside = result.baseline
        known |= {
            "baseline_certified": beside.certificate.inputs_required,
            "baseline_no_attack_exists": beside.certificate.no_attack_exists,
            "baseline_accuracy": beside.model.accuracy,
        }
    return {name: value for name, value in known.items() if value is not None}


def _coordinate(values: Sequence[Value]) -> Array:
    """Numbers as they are; where one is a word or a pair of classes, all as words."""
    if all(isinstance(value, int | float) for value in values):
        return np.array(values)
    return np.array([said(value) for value in values], dtype=object)


def write_sweep(job: Job, told: Sequence[Told], runs: Path) -> Path:
    """Write the dataset to ``sweeps/<job>.zarr`` among the runs, in the place of what was there."""
    path = runs / "sweeps" / f"{job.name}.zarr"
    if on_s3(path):  # where nothing can be moved: it is written in place
        with reaching(path):
            _write(sweep_dataset(job, told), path)
        return path
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        _write(sweep_dataset(job, told), partial)
        shutil.rmtree(path, ignore_errors=True)
        os.replace(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return path


def _write(dataset: xr.Dataset, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata")  # as in `Evidence.seal`
        dataset.to_zarr(str(path), mode="w", consolidated=True, storage_options=storage_options(path))


def describe_sweep(job: Job, told: Sequence[Told]) -> Table:
    """One line a point; those that no other beats in accuracy and certified inputs at once are marked."""
    table = Table(box=None)
    several = len(job.models) > 1
    beside = [] if job.baseline is None else [f"{job.baseline.kind}: accuracy", "certified"]
    for column in (
        *(["model"] if several else []),
        *job.sweep.axes,
        "accuracy",
        "certified",
        "attack",
        "seconds",
        *beside,
        "",
    ):
        table.add_column(column, justify="right")
    best = pareto((one.get("accuracy", math.nan), _robustness(one)) for one in told)
    for point, one, is_best in zip(job.points(), told, best, strict=True):
        words = [
            *([point.model.name] if several else []),
            *map(said, point.values.values()),
            accuracy_said(one),
            certified_said(one),
            str(one.get("attack", "")),
            f"{one['task_seconds']:.1f}" if "task_seconds" in one else "",
            *([accuracy_said(one, "baseline_"), certified_said(one, "baseline_")] if beside else []),
            "*" if is_best else "",
        ]
        table.add_row(*map(Text, words))
    return table


def accuracy_said(one: Told, of: str = "") -> str:
    """The accuracy of a point, or ``of`` its baseline: empty where it is not known."""
    return f"{one[f'{of}accuracy']:.3f}" if f"{of}accuracy" in one else ""


def certified_said(one: Told, of: str = "") -> str:
    """What is certified of a point, or ``of`` its baseline, in a word or two."""
    number = "no attack" if one.get(f"{of}no_attack_exists") else str(one.get(f"{of}certified", ""))
    return number if of or one.get("complete", True) else f"{number} so far"


def _robustness(one: Told) -> float:
    return math.inf if one.get("no_attack_exists") else float(one.get("certified", math.nan))


def pareto(points: Iterable[tuple[float, float]]) -> list[bool]:
    """Whether no other point is at least as large in both and larger in one; false of what is not known."""
    known = np.array(list(points), dtype=float).reshape(-1, 2)
    return [
        not np.isnan(one).any() and not bool(np.any(np.all(known >= one, axis=1) & np.any(known > one, axis=1)))
        for one in known
    ]
