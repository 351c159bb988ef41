"""The points of a sweep, read from its dataset."""

from __future__ import annotations

import math
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskab.errors import IntegrityError, one_line
from daskab.files import storage_options
from daskab.report.sweep import OF_BASELINE, SAID, pareto

Array = NDArray[Any]


def read_sweep(path: Path) -> xr.Dataset:
    """Read the dataset of a sweep.

    Raises
    ------
    IntegrityError
        If it is none, or damaged.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dataset: xr.Dataset = xr.open_zarr(str(path), storage_options=storage_options(path)).load()
    except (LookupError, ValueError, TypeError, AttributeError, RuntimeError, OSError) as error:
        raise IntegrityError(f"{path}: not a readable sweep ({one_line(error)}); run its job again") from None
    there = set(dataset.variables)
    lacks = sorted({*SAID, *(OF_BASELINE if there & set(OF_BASELINE) else ()), "model"} - there)
    if lacks:
        raise IntegrityError(f"{path}: is not a sweep, it lacks {lacks[0]}")
    return dataset


class Points:
    """The points of a sweep one after another, as arrays (n,) each.

    Attributes
    ----------
    dims : what was swept over, the models first where there are several
    labels : (n,) of dicts, what was swept over and its value
    robust : certified inputs, infinite where no attack exists
    seconds : of all tasks together
    bounds : sums of the one-input bounds
    best : whether no other beats it in accuracy and certified inputs at once
    baseline_accuracy, baseline_robust : of the baseline on the data of each, NaN where there is none
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        def values(name: str) -> Array:
            return np.asarray(dataset[name].transpose(*dims).values).reshape(-1)

        def numbers(name: str) -> Array:
            return values(name).astype(float)

        dims = [str(name) for name in dataset.certified.dims]
        self.dims = [name for name in dims if name != "model" or dataset.sizes["model"] > 1]
        each = [[{name: one} for one in dataset[name].values.tolist()] for name in dims]
        self.labels: list[dict[str, Any]] = [
            {key: value for part in parts for key, value in part.items() if key in self.dims}
            for parts in product(*each)
        ]
        self.accuracy, self.attack = numbers("accuracy"), numbers("attack")
        self.none, self.complete = values("no_attack_exists").astype(bool), values("complete").astype(bool)
        self.robust = np.where(self.none, math.inf, numbers("certified"))
        self.seconds, self.bounds = numbers("task_seconds"), numbers("upper_bound_sum")
        self.run = values("run")
        self.best = np.array(pareto(zip(self.accuracy.tolist(), self.robust.tolist(), strict=True)))
        self.baseline_accuracy = self.baseline_robust = np.full(self.robust.shape, math.nan)
        if "baseline_certified" in dataset:
            self.baseline_accuracy = numbers("baseline_accuracy")
            none = values("baseline_no_attack_exists").astype(bool)
            self.baseline_robust = np.where(none, math.inf, numbers("baseline_certified"))

    @property
    def has_baseline(self) -> bool:
        """Whether a baseline is known to stand beside any of them."""
        return not bool(np.all(np.isnan(self.baseline_robust)))

    def long(self) -> list[str]:
        """What more than one value was tried of."""
        return [name for name in self.dims if len({label[name] for label in self.labels}) > 1]

    def name(self, i: int) -> str:
        """A point in words."""
        return named(self.labels[i])


def named(label: dict[str, Any]) -> str:
    """What was swept over and its value, in words."""
    return ", ".join(f"{spaced(key)} {in_words(value)}" for key, value in label.items())


def spaced(name: str) -> str:
    """A key of a sweep, in words."""
    return name.replace("_", " ")


def in_words(value: Any) -> str:
    """A value that was tried."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def robustness(value: float) -> str:
    """Certified inputs in words."""
    return "no attack exists" if value == math.inf else "" if math.isnan(value) else f"{value:.0f}"
