"""Transverse bounds against points of the box, against each other, and against exact special cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import weighted_nodes

from daskab.bound.transverse import FAR, NEAR, fill_reach, quadratic_bound, sign_bound


def bounds(weights: np.ndarray, centres: np.ndarray, width: np.ndarray, changed: int) -> dict[str, float]:
    m, d = centres.shape
    reach = np.empty((4, m))
    fill_reach(centres, width, changed, reach)
    work = np.empty((2, m)), np.empty((2, d))
    return {
        "sign": sign_bound(weights, reach),
        "quadratic": quadratic_bound(weights, centres, width, changed, reach, 3, *work),
    }


def mixture(weights: np.ndarray, centres: np.ndarray, changed: int, z: np.ndarray) -> np.ndarray:
    others = np.delete(np.arange(centres.shape[1]), changed)
    t = 0.5 * np.sum((z[:, None, others] - centres[None][:, :, others]) ** 2, axis=2)
    return np.exp(-t) @ weights


@given(node=weighted_nodes(), seed=st.integers(0, 2**32 - 1))
def test_no_point_of_the_box_exceeds_a_bound(node: tuple[np.ndarray, np.ndarray, np.ndarray, int], seed: int) -> None:
    centres, weights, width, changed = node
    rng = np.random.default_rng(seed)
    z = width * np.concatenate([rng.random((60, width.size)), rng.integers(0, 2, (60, width.size))])
    z = np.concatenate([z, np.clip(centres, 0, width)])
    highest = mixture(weights, centres, changed, z).max()
    for name, value in bounds(weights, centres, width, changed).items():
        assert np.isfinite(value), name
        assert value >= highest - 1e-13 * np.abs(weights).sum(), name


@given(node=weighted_nodes())
def test_reach_covers_every_distance(node: tuple[np.ndarray, np.ndarray, np.ndarray, int]) -> None:
    centres, _, width, changed = node
    reach = np.empty((4, centres.shape[0]))
    fill_reach(centres, width, changed, reach)
    rng = np.random.default_rng(0)
    others = np.delete(np.arange(width.size), changed)
    z = np.concatenate([np.clip(centres, 0, width), width * rng.integers(0, 2, (40, width.size))])
    t = 0.5 * np.sum((z[:, None, others] - centres[None][:, :, others]) ** 2, axis=2)
    assert np.all(t >= reach[NEAR] * (1 - 1e-13))
    assert np.all(t <= reach[FAR] * (1 + 1e-13) + 1e-300)


def test_one_positive_weight_is_exact() -> None:
    centres, width = np.array([[0.3, 2.0, -1.0]]), np.ones(3)
    exact = np.exp(-0.5 * (1.0 + 1.0))  # inputs 1 and 2 lie outside the box by one each
    for value in bounds(np.array([2.0]), centres, width, 0).values():
        assert value == pytest.approx(2.0 * exact, rel=1e-12)
        assert value >= 2.0 * exact


def test_one_input_leaves_no_others() -> None:
    centres, width = np.array([[0.3], [0.9]]), np.ones(1)
    for value in bounds(np.array([2.0, -0.5]), centres, width, 0).values():
        assert value == pytest.approx(1.5, rel=1e-12)
        assert value >= 1.5


def test_the_quadratic_keeps_cancellation() -> None:
    """Two nearly equal bumps of opposite sign: the sign bound sees the first alone, the quadratic both."""
    centres = np.array([[0.0, 0.5, 0.5], [0.0, 0.55, 0.5]]) * 0.1
    found = bounds(np.array([1.0, -1.0]), centres, np.full(3, 0.1), 0)
    assert found["quadratic"] < 0.1 * found["sign"]


def test_weights_of_zero_and_empty_sums() -> None:
    centres, width = np.array([[0.3, 0.4]]), np.ones(2)
    for value in bounds(np.array([0.0]), centres, width, 0).values():
        assert 0.0 <= value < 1e-12
