"""The four contributions and the sequences made of them, against brute force over the slice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskab.bound import sequences
from daskab.bound.contributions import (
    ACROSS,
    CONSTRAINTS,
    FROM_LOWER,
    INSIDE,
    TO_UPPER,
    contributions,
    slice_edges,
)


def increases(amplitude: float, centre: float, lower: float, upper: float) -> dict[int, float]:
    """Largest increase under each constraint, over a fine grid with the peak in it."""
    t = np.sort(np.append(np.linspace(lower, upper, 400), np.clip(centre, lower, upper)))
    g = amplitude * np.exp(-0.5 * (t - centre) ** 2)
    return {
        INSIDE: float(np.max(g - np.minimum.accumulate(g))),
        TO_UPPER: float(g[-1] - g.min()),
        FROM_LOWER: float(g.max() - g[0]),
        ACROSS: float(g[-1] - g[0]),
    }


@given(
    amplitude=st.floats(-5, 5),
    centre=st.floats(-3, 5),
    width=st.floats(0.01, 20),
    slices=st.integers(1, 6),
    direction=st.sampled_from([1, -1]),
)
def test_each_contribution_is_the_largest_increase(
    amplitude: float, centre: float, width: float, slices: int, direction: int
) -> None:
    edges = slice_edges(width, slices)
    table = contributions(np.array([centre]), np.array([amplitude]), direction, edges)
    assert table.shape == (slices, len(CONSTRAINTS), 1)
    for k in range(slices):
        for constraint, value in increases(direction * amplitude, centre, edges[k], edges[k + 1]).items():
            assert table[k, constraint, 0] >= value
            # The grid misses the true extremum by less than its spacing times the steepest slope.
            assert table[k, constraint, 0] <= value + 1e-12 * (1 + abs(amplitude))


@given(data=st.data(), slices=st.integers(1, 12), width=st.floats(0.01, 20))
def test_a_sequence_telescopes(data: st.DataObject, slices: int, width: float) -> None:
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    centre, amplitudes = rng.uniform(-3, 5, 7), rng.normal(size=7)
    edges = slice_edges(width, slices)
    table = contributions(centre, amplitudes, 1, edges)
    prefix = np.empty((slices + 1, 7))
    sequences.fill_prefix(table, prefix)
    weights = np.empty(7)
    ends = sequences.ends(slices)
    assert ends.shape == (sequences.count(slices), 2)
    assert len({tuple(e) for e in ends.tolist()}) == sequences.count(slices)
    for first, last in ends.tolist():
        sequences.sequence_weights(table, prefix, amplitudes, first, last, weights)
        if first == last:
            expected = table[first, INSIDE]
        else:
            low = np.linspace(edges[first], edges[first + 1], 200)[:, None]
            high = np.linspace(edges[last], edges[last + 1], 200)[:, None]
            least = np.min(amplitudes * np.exp(-0.5 * (low - centre) ** 2), axis=0)
            most = np.max(amplitudes * np.exp(-0.5 * (high - centre) ** 2), axis=0)
            assert np.all(weights >= most - least)
            expected = table[first, TO_UPPER] + table[first + 1 : last, ACROSS].sum(axis=0) + table[last, FROM_LOWER]
        assert weights == pytest.approx(expected, abs=1e-11)
        assert np.all(weights >= expected - 1e-15)


def test_slices_end_exactly_at_the_box_edge() -> None:
    for width in np.random.default_rng(0).uniform(1e-3, 1e3, 200):
        for slices in (1, 3, 7, 49, 100):
            edges = slice_edges(width, slices)
            assert edges[0] == 0.0
            assert edges[-1] == width
            assert np.all(np.diff(edges) > 0)
