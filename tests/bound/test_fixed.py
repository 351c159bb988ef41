"""Fixed slices: every path lies below the bound of its sequence, and the bound is what an input attains, nearly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import models

from daskab import KernelExpansion
from daskab.bound.contributions import input_table
from daskab.bound.fixed import fixed_units
from daskab.bound.grid import grid_units
from daskab.bound.scaled import Scaled
from daskab.bound.sequences import count, ends

Bound = Callable[[KernelExpansion, int, int, float], np.ndarray]


def tables_of(s: Scaled, d: int, slices: int) -> np.ndarray:
    return input_table(s.centres[:, d], s.amplitudes, s.width[d], slices)[:, None]


def by_fixed(model: KernelExpansion, d: int, slices: int, attained: float) -> np.ndarray:
    """Bound (direction, sequence) of one input."""
    s, n = Scaled.of(model), count(slices)
    points, level = np.zeros((1, model.n_inputs)), np.full(model.n_inputs, attained)
    return fixed_units(
        2 * d * n,
        2 * (d + 1) * n,
        ends(slices),
        tables_of(s, d, slices),
        points,
        d,
        s.centres,
        s.amplitudes,
        s.width,
        level,
    ).reshape(2, n)


def by_grid(model: KernelExpansion, d: int, slices: int, attained: float) -> np.ndarray:
    """The same by the paper's grid."""
    s, n = Scaled.of(model), count(slices)
    tables = tables_of(s, d, slices)
    return grid_units(
        2 * d * n, 2 * (d + 1) * n, ends(slices), tables, d, s.centres, s.amplitudes, s.width, 2, 20
    ).reshape(2, n)


@pytest.mark.parametrize("bound", [by_fixed, by_grid])
@given(model=models(max_centres=10, max_inputs=6), slices=st.integers(1, 6), data=st.data())
def test_no_path_exceeds_its_sequence(bound: Bound, model: KernelExpansion, slices: int, data: st.DataObject) -> None:
    d = data.draw(st.integers(0, model.n_inputs - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n = 300
    x = model.lower + (model.upper - model.lower) * rng.random((n, model.n_inputs))
    x[: n // 2] = np.clip(model.centres[rng.integers(model.n_centres, size=n // 2)], model.lower, model.upper)
    cells = np.sort(rng.integers(0, slices, (n, 2)), axis=1)
    width = (model.upper - model.lower)[d]
    x[:, d] = model.lower[d] + width * (cells[:, 0] + rng.random(n)) / slices
    x_prime = x.copy()
    x_prime[:, d] = model.lower[d] + width * (cells[:, 1] + rng.random(n)) / slices
    gain = model.latent(x_prime) - model.latent(x)
    upper = bound(model, d, slices, -1.0)
    place = {tuple(pair): k for k, pair in enumerate(ends(slices).tolist())}
    slack = 1e-12 * np.abs(model.weights).sum() * (1 + np.abs(model.lower).max() / model.lengthscale.min())
    for k in range(n):
        # Moving back the same way is a path of the other direction.
        step = x_prime[k, d] - x[k, d]
        rise = gain[k] if step >= 0 else -gain[k]
        sequence = place[tuple(cells[k].tolist())]
        assert upper[0, sequence] >= rise - slack
        assert upper[1, sequence] >= -rise - slack


@given(model=models(max_centres=8, max_inputs=4, lengthscales=(0.5, 10)))
def test_what_need_not_be_improved_is_never_below_its_level(model: KernelExpansion) -> None:
    tight = by_fixed(model, 0, 4, -1.0)
    level = 0.5 * tight.max()
    lazy = by_fixed(model, 0, 4, level)
    slack = 1e-9 * np.abs(model.weights).sum()
    assert np.all(np.maximum(lazy, level) >= np.minimum(tight, lazy) - slack)
    assert lazy.max() >= level - slack
    assert lazy.max() <= tight.max() * 1.01 + slack or not np.isclose(lazy.max(), level)


def test_many_slices_come_near_what_is_attained() -> None:
    rng = np.random.default_rng(5)
    model = KernelExpansion(rng.random((6, 5)), rng.normal(size=6), 1.0, np.zeros(5), np.ones(5))
    x = rng.random((200_000, 5))
    x[: len(x) // 2] = np.round(x[: len(x) // 2])
    x_prime = x.copy()
    x_prime[:, 0] = rng.random(len(x))
    x_prime[: len(x) // 2, 0] = 1 - x[: len(x) // 2, 0]
    attained = np.abs(model.latent(x_prime) - model.latent(x)).max()
    bounds = [by_fixed(model, 0, slices, attained).max() for slices in (2, 10, 60)]
    assert bounds[0] > bounds[1] > bounds[2] >= attained
    assert bounds[2] <= 1.02 * attained
