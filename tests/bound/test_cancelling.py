"""Centres whose weights cancel: what is proved of them together holds at every point, and is far below what they are
worth alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from daskab import KernelExpansion, certify
from daskab.attack.attained import attained_change
from daskab.bound.cancelling import FOURTH, SECOND, THIRD, THIRD_MIXED, bend, cancels, taylor_bound, together
from daskab.bound.item import ALONG, AMPLITUDE, PLANE_HIGH, PLANE_LOW, SLAB_HIGH, SLAB_LOW, WEIGHT, Item, item_of
from daskab.bound.projection import place_slabs_in_plane, projected_bound
from daskab.bound.reach import free_reach

ctx.prec = 100


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Item, np.random.Generator]:
    """Some centres next to others, or on them, with weights of up to thousands that cancel; slabs set somewhere."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, m = draw(st.integers(2, 7)), draw(st.integers(2, 7))
    close = 10.0 ** draw(st.floats(-6.0, 0.0))
    centres = rng.random((m, d)) * draw(st.sampled_from((0.3, 1.0, 4.0)))
    weights = rng.normal(size=m)
    for i in range(1, m):
        if rng.random() < 0.6:
            j = int(rng.integers(i))
            centres[i] = centres[j] + close * rng.normal(size=d) * (rng.random() > 0.1)
            pulled = rng.normal() / max(close, 1e-4)
            weights[i] -= pulled
            weights[j] += pulled
    width = rng.random(d) * 2.0
    item = item_of(centres, weights, width, free_reach(d), int(rng.integers(d)), 1)
    item.term[WEIGHT] = weights * rng.normal(size=m)
    if rng.random() < 0.5:
        item.term[WEIGHT] = weights
    for k in range(item.cuts.shape[0]):
        ends = np.sort(rng.uniform(item.slab[SLAB_LOW, k], item.slab[SLAB_HIGH, k], 2))
        item.slab[SLAB_LOW, k], item.slab[SLAB_HIGH, k] = ends[0], ends[0] + (ends[1] - ends[0]) * rng.random() ** 2
    place_slabs_in_plane(item)
    return item, rng


@given(made=clusters())
def test_the_expansion_is_exceeded_nowhere_in_the_slabs(made: tuple[Item, np.random.Generator]) -> None:
    item, rng = made
    if item.cuts.shape[0] == 0:
        return
    low, high = item.slab[PLANE_LOW], item.slab[PLANE_HIGH]
    share = np.concatenate([rng.random((200, low.size)), rng.integers(0, 2, (60, low.size))])
    bound = taylor_bound(item)
    weights = [arb(float(w)) for w in item.term[WEIGHT]]
    for p in low + (high - low) * share:
        value = sum(
            (w * (-sum((arb(float(a)) - arb(float(b))) ** 2 for a, b in zip(p, c, strict=True)) / 2).exp())
            for w, c in zip(weights, item.plane.T, strict=True)
        )
        assert value <= arb(bound), (value, bound)


@given(made=clusters())
def test_derivatives_come_to_no_more_than_is_said(made: tuple[Item, np.random.Generator]) -> None:
    item, rng = made
    if item.cuts.shape[0] == 0:
        return
    third, second = together(item, WEIGHT, THIRD, FOURTH), bend(item)
    rounding = 1e-12 * np.abs(item.term[WEIGHT]).sum() + 1e-12 * np.abs(item.term[AMPLITUDE]).sum()
    centres = np.column_stack([item.term[ALONG], item.centres])
    for _ in range(60):
        at = centres[rng.integers(len(centres))] + rng.normal(size=centres.shape[1]) * 10.0 ** rng.uniform(-3.0, 0.5)
        bumps = np.exp(-0.5 * np.sum((at[1:] - item.centres) ** 2, axis=1))
        u = rng.normal(size=item.centres.shape[1])
        s = (at[1:] - item.centres) @ (u / np.linalg.norm(u))
        assert abs(item.term[WEIGHT] @ (bumps * (3.0 * s - s**3))) <= third + rounding
        own = at[0] - item.term[ALONG]
        along = item.term[AMPLITUDE] @ (bumps * np.exp(-0.5 * own**2) * (own**2 - 1.0))
        assert abs(along) <= second + rounding


def hermite(n: int, x: arb) -> arb:
    """Squares of the probabilists' Hermite polynomials, of x = s^2."""
    return {1: x, 2: (x - 1) ** 2, 3: x * (x - 3) ** 2, 4: (x**2 - 6 * x + 3) ** 2}[n]


@pytest.mark.parametrize(("claimed", "n", "mixed"), [(THIRD, 3, False), (FOURTH, 4, True), (THIRD_MIXED, 3, True)])
def test_the_constants_are_proved(claimed: float, n: int, mixed: bool) -> None:
    """METHOD, Lemma 11, by halving; from 60 on, x^4 exp(-x) is below 1e-18 and falls."""
    pieces = [(0.0, 60.0)]
    while pieces:
        low, high = pieces.pop()
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        x = arb(middle, half)
        square = (-x).exp() * (hermite(n, x) + (hermite(n - 1, x) / arb(1).exp() if mixed else 0))
        if square <= arb(claimed) ** 2:
            continue
        assert half > 1e-9, f"not below {claimed} at {middle}"
        pieces += [(low, middle), (middle, high)]
    assert SECOND == 1.0


def test_a_claim_that_is_too_low_is_not_proved() -> None:
    with pytest.raises(AssertionError):
        test_the_constants_are_proved(THIRD * 0.999, 3, False)


def dipoles(d: int, seed: int, close: float = 0.01) -> KernelExpansion:
    """Two pairs of centres next to each other, and one alone: as fits of few inducing points come to be."""
    rng = np.random.default_rng(seed)
    centres = rng.random((5, d))
    weights = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    for k in (0, 2):
        step = rng.normal(size=d)
        centres[k + 1] = centres[k] + close * step / np.linalg.norm(step)
        weights[k : k + 2] = 2.0 / close, -2.0 / close
    model = KernelExpansion(centres, weights, 2.0, np.zeros(d), np.ones(d))
    low, high = np.percentile(model.latent(rng.random((400, d))), [5, 95])
    return model.replace(latent_low=float(low), latent_high=float(high))


@pytest.mark.parametrize(("d", "seed"), [(8, 0), (30, 1)])
def test_bounds_of_pairs_are_near_what_is_attained(d: int, seed: int) -> None:
    model = dipoles(d, seed)
    certificate = certify(model, node_budget=4000, pair_nodes=0, set_nodes=0)
    assert np.all(certificate.upper_bound >= certificate.attained)
    assert certificate.inputs_required_at_best is not None
    matters = np.sort(certificate.attained)[-certificate.inputs_required_at_best]
    # Alone each of the four is worth 200, a thousand times what is attained.
    assert np.all(certificate.upper_bound <= 4.0 * matters)
    assert np.sum(certificate.upper_bound > 1.02 * np.maximum(certificate.attained, matters)) <= 2
    rng = np.random.default_rng(seed)
    for j in range(d):
        for _ in range(40):
            x = rng.random(d)
            moved = x.copy()
            moved[j] = rng.integers(2)
            assert abs(attained_change(model, x, moved)) <= certificate.upper_bound[j]


def test_whether_they_cancel() -> None:
    width = np.ones(8)
    for model, expected in ((dipoles(8, 0), True), (dipoles(8, 0).replace(weights=np.ones(5)), False)):
        item = item_of(model.centres / 2.0, model.weights, width / 2.0, free_reach(8), 0, 1)
        assert cancels(item) == expected
    assert math.isfinite(projected_bound(item, 0.0))
