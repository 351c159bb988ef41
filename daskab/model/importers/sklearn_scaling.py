"""The steps of a scikit-learn pipeline that move each column by itself, folded into a model of the raw columns.

A scaler takes column j to z = p x + q with p > 0. The kernel sees z only through (z - c) / l, which is
(x - (c - q) / p) / (l / p): centres and box go back through the scalers, lengthscales are divided by their slopes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from daskab.errors import ModelError
from daskab.model.checked import Array, numbers, positive

# Of the range a MinMaxScaler clips to: by so much its own rounding may lead out of it.
CLIP_SLACK = 1e-12


@dataclass(frozen=True)
class Scaling:
    """A fitted scaler, computed as scikit-learn computes it."""

    name: str
    slope: Array
    forward: Callable[[Array], Array]
    backward: Callable[[Array], Array]
    range: tuple[float, float] | None = None
    """Outside which it clips."""


def check_step(name: str, step: Any) -> None:
    """ModelError if a step of a pipeline is none that can be folded, which is named."""
    # A subclass may transform in another way.
    if does_nothing(step) or type(step) in (StandardScaler, MinMaxScaler):
        return
    where = f"{type(step).__name__} (step {name!r})"
    if hasattr(step, "components_"):
        raise ModelError(
            f"pipeline: {where} mixes columns: one raw column moves several inputs of the classifier, so the number of "
            "inputs changed says nothing about columns. Import the classifier alone, and the certificate is about its "
            "own inputs"
        )
    raise ModelError(
        f"pipeline: {where} is not supported; only StandardScaler and MinMaxScaler, which move each column by itself, "
        "can be folded into the model"
    )


def does_nothing(step: Any) -> bool:
    """Is this step there in name only?"""
    return step is None or (isinstance(step, str) and step == "passthrough")


def read_scaler(name: str, step: Any, d: int) -> Scaling | None:
    """A step that `check_step` let pass as a scaling of D columns; None where it does nothing.

    Raises
    ------
    ModelError
        If its numbers are no scaling.
    """
    where = f"{type(step).__name__} (step {name!r})"
    if does_nothing(step):
        return None
    if type(step) is StandardScaler:
        mean = numbers(f"{where}: mean_", step.mean_, shape=(d,)) if step.with_mean else np.zeros(d)
        scale = numbers(f"{where}: scale_", step.scale_, shape=(d,)) if step.with_std else np.ones(d)
        positive(f"{where}: scale_", scale)
        return Scaling(where, 1.0 / scale, lambda x: (x - mean) / scale, lambda z: z * scale + mean)
    slope = positive(f"{where}: scale_", numbers(f"{where}: scale_", step.scale_, shape=(d,)))
    shift = numbers(f"{where}: min_", step.min_, shape=(d,))
    low, high = (float(end) for end in step.feature_range)
    clip = (low, high) if step.clip else None
    return Scaling(where, slope, lambda x: x * slope + shift, lambda z: (z - shift) / slope, clip)


def to_raw(scalings: Sequence[Scaling], points: Array) -> Array:
    """Points (N, D) of the classifier's inputs, in raw columns."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite then is refused as a centre
        for scaling in reversed(scalings):
            raw = scaling.backward(points)
            # Where a column lies far from zero for its range, rounding would lose digits that one correction restores.
            points = raw + (points - scaling.forward(raw)) / scaling.slope
    return points


def check_clips(scalings: Sequence[Scaling], names: Sequence[str], lower: Array, upper: Array) -> None:
    """ModelError if a scaler clips somewhere in the box of raw columns, edges (D,): there it is no scaling."""
    for scaling, low, high in _through(scalings, lower, upper):
        if scaling.range is None:
            continue
        slack = CLIP_SLACK * (scaling.range[1] - scaling.range[0])
        wrong = np.flatnonzero((low < scaling.range[0] - slack) | (high > scaling.range[1] + slack))
        if wrong.size:
            j = int(wrong[0])
            raise ModelError(
                f"pipeline: {scaling.name} clips (clip=True), and the box of input {names[j]} (index {j}), "
                f"{lower[j]:g} to {upper[j]:g}, leaves its range, where the latent is no kernel expansion; "
                "give a box within the range it was fitted on"
            )


def _through(scalings: Sequence[Scaling], lower: Array, upper: Array) -> Iterator[tuple[Scaling, Array, Array]]:
    for scaling in scalings:
        lower, upper = scaling.forward(lower), scaling.forward(upper)
        yield scaling, lower, upper
