"""Sums of EQ kernels near another: how far apart they are is proved, and not far from what is true."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskab.errors import BoundError
from daskab.model.kernels import KernelName, profile
from daskab.sandwich.enclosure import distance
from daskab.sandwich.fit import MOST_TERMS, fitted_sum
from daskab.sandwich.sums import EQSum

flint = pytest.importorskip("flint")

OTHERS: list[KernelName] = ["exponential", "matern32", "matern52"]


def difference(kernel: KernelName, total: EQSum, r: np.ndarray) -> np.ndarray:
    return np.abs(profile(kernel, 0.5 * r * r) - np.exp(-0.5 * (r[:, None] / total.scales) ** 2) @ total.shares)


def sums() -> Any:
    term = st.tuples(st.floats(1e-3, 1e3), st.floats(1e-6, 2.0))
    terms = st.lists(term, min_size=1, max_size=6)
    return terms.map(lambda found: EQSum(*(np.array(column) for column in zip(*found, strict=True))))


@settings(max_examples=150)
@given(kernel=st.sampled_from(OTHERS), total=sums(), reach=st.floats(1e-3, 1e4), seed=st.integers(0, 2**32 - 1))
def test_no_distance_exceeds_what_is_proved(kernel: KernelName, total: EQSum, reach: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    r = np.concatenate([rng.random(4000), rng.random(4000) ** 4, 10.0 ** rng.uniform(-9, 0, 2000), [0.0, 1.0]]) * reach
    proved, seen = distance(kernel, total, reach), difference(kernel, total, r).max()
    assert proved >= seen
    if np.all(total.scales > 0.05):
        # No more than it is, but for where both only are known to fall.
        near = difference(kernel, total, np.linspace(0.0, min(reach, 40.0), 40_000)).max()
        beyond = np.sum(total.shares * np.exp(-0.5 * (40.0 / total.scales) ** 2)) if reach > 40.0 else 0.0
        assert proved <= 1.01 * max(seen, near, beyond)


@pytest.mark.parametrize("kernel", OTHERS)
@pytest.mark.parametrize("reach", [0.7, 3.0, 30.0, 1e6])
def test_the_sandwich_holds_in_ball_arithmetic(kernel: KernelName, reach: float) -> None:
    """Every r from 0 to the reach is in a ball that is shown to be inside; shrunk by a hundredth it does not hold."""
    total = fitted_sum(kernel, reach, 1e-3)
    proved = distance(kernel, total, reach)
    assert proved < 1.1e-3
    assert holds_in_balls(kernel, total, min(reach, 60.0), proved)
    assert not holds_in_balls(kernel, total, min(reach, 60.0), 0.99 * proved)


def holds_in_balls(kernel: KernelName, total: EQSum, far: float, claimed: float) -> bool:
    """By values at middles and slopes of whole pieces; False as soon as a middle is farther apart than claimed."""
    arb = flint.arb
    terms = [(arb(s), arb(b)) for s, b in zip(total.scales.tolist(), total.shares.tolist(), strict=True)]

    def off(r: Any) -> Any:
        root = {"exponential": arb(1), "matern32": arb(3).sqrt(), "matern52": arb(5).sqrt()}[kernel] * r
        poly = {"exponential": arb(1), "matern32": 1 + root, "matern52": 1 + root + root * root / 3}[kernel]
        return poly * (-root).exp() - sum((b * (-(r * r) / (2 * s * s)).exp() for s, b in terms), arb(0))

    def slope(r: Any) -> Any:
        root = {"exponential": arb(1), "matern32": arb(3).sqrt(), "matern52": arb(5).sqrt()}[kernel]
        inner = {"exponential": arb(1), "matern32": root * r, "matern52": root * r * (1 + root * r) / 3}[kernel]
        return -root * inner * (-root * r).exp() + sum(
            (b * r / (s * s) * (-(r * r) / (2 * s * s)).exp() for s, b in terms), arb(0)
        )

    pieces = [(0.0, far)]
    while pieces:
        low, high = pieces.pop()
        middle = 0.5 * (low + high)
        value = abs(off(arb(middle)))
        if value > claimed:
            return False
        if not value + 0.5 * (high - low) * abs(slope(arb(middle, 0.5 * (high - low) * 1.0000001))) <= claimed:
            pieces += [(low, middle), (middle, high)]
    return True


@pytest.mark.parametrize(("kernel", "most"), [("exponential", 9), ("matern32", 6), ("matern52", 5)])
def test_few_terms_are_near(kernel: KernelName, most: int) -> None:
    total = fitted_sum(kernel, 4.0, 1e-3)
    assert 2 <= total.scales.size <= most
    assert np.all(total.shares > 0.0)
    assert np.all(np.diff(total.scales) > 0.0)
    assert fitted_sum(kernel, 4.0, 1e-30).scales.size <= MOST_TERMS


def test_what_is_no_number_is_refused() -> None:
    for scales, shares in (([1.0], [math.nan]), ([math.nan], [1.0]), ([1.0], [math.inf])):
        with pytest.raises(BoundError, match="not a finite number"):
            distance("matern32", EQSum(np.array(scales), np.array(shares)), 3.0)
