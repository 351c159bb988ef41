"""Hypothesis strategies every property test draws from: models as adversarial as the issue list knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from daskab import KernelExpansion


@st.composite
def models(
    draw: st.DrawFn,
    max_centres: int = 20,
    max_inputs: int = 12,
    lengthscales: tuple[float, float] = (0.05, 10.0),
    largest_weight: float = 10.0,
    thresholds: bool = False,
) -> KernelExpansion:
    """Random models: mixed signs, duplicate and outside centres, degenerate boxes, one or many lengthscales."""
    m = draw(st.integers(1, max_centres))
    d = draw(st.integers(1, max_inputs))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shift = draw(st.sampled_from([0.0, -3.0, 1e3]))
    width = draw(st.sampled_from([1.0, 0.1, 20.0]))
    lower = np.full(d, shift)
    upper = lower + width
    if draw(st.booleans()):
        upper[rng.integers(d)] = shift  # an input that cannot change
    centres = lower + width * rng.random((m, d))
    kind = draw(st.sampled_from(["inside", "outside", "duplicate", "corners", "shared"]))
    if kind == "outside":
        centres += width * rng.normal(0.0, 1.0, (m, d))
    elif kind == "duplicate":
        centres[:] = centres[rng.integers(m, size=m)]
    elif kind == "corners":
        centres = lower + width * rng.integers(0, 2, (m, 1)) * np.ones((m, d))
    elif kind == "shared":
        centres[:, rng.integers(d)] = shift + 0.3 * width
    signs = draw(st.sampled_from(["mixed", "negative", "positive", "cancelling"]))
    weights = rng.normal(0.0, 1.0, m) * largest_weight ** rng.random(m)
    if signs == "negative":
        weights = -np.abs(weights)
    elif signs == "positive":
        weights = np.abs(weights)
    elif signs == "cancelling" and m > 1:
        weights[1] = -weights[0] * (1.0 + 1e-6)
        centres[1] = centres[0] + 1e-4 * width * rng.normal(size=d)
    log_low, log_high = np.log10(lengthscales)
    scale = 10.0 ** rng.uniform(log_low, log_high, d if draw(st.booleans()) else 1)
    lengthscale = width * (scale if scale.size > 1 else scale[0])
    options = {}
    if thresholds:
        reach = float(np.abs(weights).sum())
        options = {"latent_low": -0.2 * reach, "latent_high": 0.2 * reach}
    return KernelExpansion(centres, weights, lengthscale, lower, upper, **options)


@st.composite
def restricted_models(draw: st.DrawFn, **options: Any) -> KernelExpansion:
    """The same in a domain that is less than the box: any of what `restrict` can say, of some of the inputs."""
    model = draw(models(**options))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, width = model.n_inputs, model.upper - model.lower
    order = rng.permutation(d).tolist()
    told: dict[str, Any] = {}
    if draw(st.booleans()):
        told["frozen"] = order[: d // 4]
    if draw(st.booleans()):
        told["max_change"] = {int(j): float(width[j] * rng.choice([0.05, 0.3, 0.9])) for j in order[: (d + 1) // 2]}
    if draw(st.booleans()):
        chosen = rng.permutation(d)[: (d + 1) // 2]
        told["values"] = {int(j): model.lower[j] + width[j] * rng.random(rng.integers(1, 6)) for j in chosen}
    if d > 1 and draw(st.booleans()):
        inputs = rng.permutation(d)[: rng.integers(2, min(d, 8) + 1)].tolist()
        held = {*told.get("values", {}), *told.get("max_change", {}), *told.get("frozen", [])}
        kind = "groups" if held & set(inputs) or draw(st.booleans()) else "categories"
        told[kind] = {"together": inputs}
        told["at_most_one"] = draw(st.booleans())
    return model.restrict(**told)


def pairs_of(model: KernelExpansion, inputs: Sequence[int], rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """Pairs (2, D) of points of a domain that differ in these inputs alone and may be changed into each other."""
    x = model.domain.nearest(points_of(model, rng, n))
    other = model.domain.nearest(points_of(model, rng, n))
    x_prime = x.copy()
    cols = list(inputs)
    # As far as an input may move, wherever the other point lies beyond that.
    most = model.domain.max_change[cols]
    x_prime[:, cols] = np.clip(other[:, cols], x[:, cols] - most, x[:, cols] + most)
    return [np.stack(pair) for pair in zip(x, x_prime, strict=True) if model.domain.allows(*pair)]


@st.composite
def weighted_nodes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Centres (M, D), weights (M,), width (D,) and the changed input, in scaled coordinates."""
    model = draw(models())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    centres = (model.centres - model.lower) / model.lengthscale
    width = (model.upper - model.lower) / model.lengthscale
    return centres, rng.normal(size=model.n_centres), width, int(rng.integers(model.n_inputs))


def points_of(model: KernelExpansion, rng: np.random.Generator, n: int) -> np.ndarray:
    """Points (n, D) of the box: uniform ones, corners, and centres moved into it."""
    d = model.n_inputs
    uniform = rng.random((n, d))
    uniform[: n // 3] = np.round(uniform[: n // 3])
    points = model.lower + (model.upper - model.lower) * uniform
    picked = model.centres[rng.integers(model.n_centres, size=n // 3)]
    points[-(n // 3) :] = picked
    return np.clip(points, model.lower, model.upper)
