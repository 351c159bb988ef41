"""Transverse bounds and the shell test against points of the box, each other, and exact special cases."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from strategies import weighted_nodes

from daskab.bound.climb import climb, mixture
from daskab.bound.eigen import cholesky, curvature_bound, factor_gram, largest_eigenvalue
from daskab.bound.item import (
    FAR,
    HIGH,
    LOW,
    NEAR,
    POINT,
    SLAB_HIGH,
    SLAB_LOW,
    VALUE,
    WEIGHT,
    Item,
    item_of,
)
from daskab.bound.majorants import by_curvature, by_lines, by_taylor, second_order, taylor_rest
from daskab.bound.projection import projected_bound
from daskab.bound.reach import free_reach
from daskab.bound.shells import below_level, settle
from daskab.bound.transverse import cheap_bound, fill_reach, quadratic_bound, sign_bound

ctx.prec = 150
Node = tuple[np.ndarray, np.ndarray, np.ndarray, int]


def item(centres: np.ndarray, weights: np.ndarray, width: np.ndarray, changed: int) -> Item:
    made = item_of(np.ascontiguousarray(centres), np.ones(len(weights)), width, free_reach(width.size), changed, 1)
    made.term[WEIGHT] = weights
    fill_reach(made)
    return made


def bounds(made: Item) -> dict[str, float]:
    return {"sign": sign_bound(made), "quadratic": quadratic_bound(made, 0.0)}


def values(made: Item, z: np.ndarray) -> np.ndarray:
    t = 0.5 * np.sum((z[:, None] - made.centres) ** 2, axis=2)
    return np.exp(-t) @ made.term[WEIGHT]


def sample(made: Item, rng: np.random.Generator, n: int = 60) -> np.ndarray:
    low, high = made.axis[LOW], made.axis[HIGH]
    share = np.concatenate([rng.random((n, low.size)), rng.integers(0, 2, (n, low.size))])
    return np.concatenate([low + (high - low) * share, np.clip(made.centres, low, high)])


@given(node=weighted_nodes(), seed=st.integers(0, 2**32 - 1))
def test_no_point_of_the_box_exceeds_a_bound(node: Node, seed: int) -> None:
    made = item(*node)
    rng = np.random.default_rng(seed)
    # A part of the box, as a node of the search has it.
    share = np.sort(rng.random((2, made.centres.shape[1])), axis=0)
    made.axis[LOW], made.axis[HIGH] = share * made.axis[HIGH]
    fill_reach(made)
    highest = values(made, sample(made, rng)).max()
    for name, value in bounds(made).items():
        assert np.isfinite(value), name
        assert value >= highest - 1e-13 * np.abs(node[1]).sum(), name


@given(node=weighted_nodes(), seed=st.integers(0, 2**32 - 1), share=st.floats(0.5, 1.5))
def test_a_level_that_passes_is_exceeded_nowhere(node: Node, seed: int, share: float) -> None:
    made = item(*node)
    rng = np.random.default_rng(seed)
    points = sample(made, rng)
    found = values(made, points)
    best = found.max()
    for start in (points[found.argmax()], points[rng.integers(len(points))]):
        made.axis[POINT] = start
        # A level above and one below what is attained: the second must never pass.
        for level in (best * share, best * (1.0 - 1e-9)):
            if level > 0.0 and below_level(made, level):
                assert best <= level


@given(node=weighted_nodes(), seed=st.integers(0, 2**32 - 1))
def test_slabs_hold_what_they_should(node: Node, seed: int) -> None:
    """A level that passes within a slab is exceeded at no point of the box that lies in the slab."""
    made = item(*node)
    rng = np.random.default_rng(seed)
    points = sample(made, rng, 300)
    found = values(made, points)
    inside = np.ones(len(points), dtype=bool)
    for k in range(made.cuts.shape[0]):
        along = points @ made.cuts[k]
        low, high = np.sort(rng.choice(along, 2))
        if low == high:
            continue
        made.slab[SLAB_LOW, k], made.slab[SLAB_HIGH, k] = low, high
        inside &= (along >= low) & (along <= high)
    if not inside.any():
        return
    fill_reach(made)
    best = found[inside].max()
    slack = 1e-13 * np.abs(node[1]).sum()
    assert sign_bound(made) >= best - slack
    assert quadratic_bound(made, 0.0) >= best - slack
    assert projected_bound(made, 0.0) >= best - slack
    made.axis[POINT] = points[rng.integers(len(points))]
    for level in (0.7 * best, 0.999 * best, best * (1.0 - 1e-9)):
        assert not (level > 0.0 and below_level(made, level) and best > level)


@given(node=weighted_nodes())
def test_reach_covers_every_distance(node: Node) -> None:
    made = item(*node)
    z = sample(made, np.random.default_rng(0))
    t = 0.5 * np.sum((z[:, None] - made.centres) ** 2, axis=2)
    assert np.all(t >= made.term[NEAR] * (1 - 1e-13))
    assert np.all(t <= made.term[FAR] * (1 + 1e-13) + 1e-300)


@given(node=weighted_nodes())
def test_the_climb_never_falls(node: Node) -> None:
    made = item(*node)
    made.axis[POINT] = 0.3 * made.axis[HIGH]
    before = mixture(made, WEIGHT, POINT)
    after = climb(made, 30)
    assert after >= before
    assert after == pytest.approx(mixture(made, WEIGHT, POINT), rel=1e-9, abs=1e-12)
    assert np.all((made.axis[POINT] >= 0.0) & (made.axis[POINT] <= made.axis[HIGH]))


@given(node=weighted_nodes())
def test_curvature_is_not_below_the_largest_eigenvalue(node: Node) -> None:
    made = item(*node)
    made.axis[POINT] = 0.4 * made.axis[HIGH]
    settle(made)
    exact = (made.offset.T * made.term[VALUE]) @ made.offset
    largest = max(float(np.linalg.eigvalsh(exact)[-1]), 0.0) if exact.size else 0.0
    proved = curvature_bound(made, VALUE, factor_gram(made))
    scale = float(np.sum(np.abs(made.term[VALUE]) * np.sum(made.offset**2, axis=1)))
    assert proved >= largest - 1e-13 * scale
    assert proved <= max(1.2 * largest, 0.02 * scale) + 1e-12 * scale or min(exact.shape[0], len(node[1])) > 1


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12))
def test_largest_eigenvalue_in_ball_arithmetic(seed: int, n: int) -> None:
    """guess * I - matrix has only positive pivots in exact arithmetic."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(n, n)) * 10 ** rng.uniform(-3, 3)
    matrix = half + half.T
    proved = largest_eigenvalue(matrix, np.empty((n, n)), np.empty((2, n)))
    assert proved >= np.linalg.eigvalsh(matrix)[-1]
    rows = [[arb(float(proved if i == j else 0.0)) - arb(float(matrix[i, j])) for j in range(n)] for i in range(n)]
    for k in range(n):
        assert rows[k][k] > 0
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]


def test_cholesky_refuses_what_is_not_positive() -> None:
    factor = np.empty((2, 2))
    assert cholesky(np.array([[2.0, 1.0], [1.0, 2.0]]), 0.0, 1.0, factor)
    assert not cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.0, 1.0, factor)
    assert not cholesky(np.array([[np.nan, 0.0], [0.0, 1.0]]), 0.0, 1.0, factor)


def test_taylor_rest_in_ball_arithmetic() -> None:
    for s in [*np.linspace(-3, 3, 601).tolist(), 1e-9, -1e-9, 0.5, -0.5, 0.0]:
        with ctx.workprec(200):
            x = arb(s)
            exact = x.exp() - 1 - x - x * x / 2
            error = float(abs(arb(float(taylor_rest(s))) - exact).upper())
        assert error <= 2.0**-52 * 4.0 * (abs(s) ** 3 + np.exp(s) * (abs(s) >= 0.5))


def test_second_order_in_ball_arithmetic() -> None:
    before = 0.0
    for s in [*np.linspace(-40, 40, 801).tolist(), 1e-9, -1e-9, 0.5, -0.5, np.nextafter(0.5, 0.0)]:
        if s == 0.0:
            assert second_order(s) == 0.5
            continue
        with ctx.workprec(400):
            x = arb(float(s))
            exact = (x.exp() - 1 - x) / (x * x)
            assert abs(arb(float(second_order(s))) - exact) <= exact * 2.0**-52 * 8.0
    for s in np.linspace(-5, 5, 2001):  # increasing, which is what makes it a majorant
        assert second_order(s) >= before * (1 - 1e-14)
        before = second_order(s)


@pytest.mark.parametrize("seed", range(40))
def test_many_centres_in_many_directions(seed: int) -> None:
    """What passes is exceeded nowhere, wherever the shells are laid about."""
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(20, 70)), int(rng.integers(10, 50))
    made = item(4.0 * rng.random((m, d)), rng.normal(size=m), np.full(d, 4.0), 0)
    attained = 0.0
    for i in np.argsort(-made.term[WEIGHT])[:10]:
        made.axis[POINT] = np.clip(made.centres[i], made.axis[LOW], made.axis[HIGH])
        attained = max(attained, climb(made, 200))
    for start in (made.centres[int(np.argmax(made.term[WEIGHT]))], 0.5 * made.axis[HIGH]):
        made.axis[POINT] = start
        climb(made, 200)
        assert not below_level(made, attained * (1 - 1e-9))


def test_centres_in_many_directions_are_not_added_up() -> None:
    """Thirty bumps around a higher one: nearly orthogonal, so no point is near two of them."""
    d = 30
    centres = np.vstack([np.full(d + 1, 3.0), 3.0 + 3.0 * np.eye(d, d + 1, 1)])
    made = item(centres, np.array([3.0] + [1.0] * d), np.full(d + 1, 6.0), 0)
    made.axis[POINT] = 3.0
    attained = climb(made, 200)
    level = 1.3 * attained
    assert quadratic_bound(made, level) > 2.0 * level
    assert below_level(made, level)
    # Without the curvature form the shells between the bumps stay open.
    value, _, _ = settle(made)
    lift = factor_gram(made)
    curvature = curvature_bound(made, VALUE, lift)
    shell = (7.0, 8.0)
    assert by_taylor(made, value, curvature, level, *shell) > 0.0
    assert by_lines(made, level, *shell) > 0.0
    assert by_curvature(made, value, lift, level, *shell) <= 0.0


def test_the_projection_sees_how_far_the_box_lies_off_the_plane() -> None:
    """Two centres far outside the box along an input on which they agree: only the distance makes them small."""
    centres = np.array([[0.0, 3.0, 0.2, 0.1], [0.0, 3.0, 0.8, 0.3]])
    made = item(centres, np.array([1.0, 0.5]), np.ones(4), 0)
    best = values(made, sample(made, np.random.default_rng(0), 4000)).max()
    assert best <= projected_bound(made, 0.0) <= 1.3 * best  # in the plane alone it would be about 1.4


def test_one_positive_weight_is_exact() -> None:
    made = item(np.array([[0.3, 2.0, -1.0]]), np.array([2.0]), np.ones(3), 0)
    exact = 2.0 * np.exp(-0.5 * (1.0 + 1.0))  # inputs 1 and 2 lie outside the box by one each
    for value in bounds(made).values():
        assert value == pytest.approx(exact, rel=1e-12)
        assert value >= exact
    made.axis[POINT] = [1.0, 0.0]
    assert below_level(made, exact * (1.0 + 1e-9))
    assert not below_level(made, exact * (1.0 - 1e-12))


def test_one_input_leaves_no_others() -> None:
    made = item(np.array([[0.3], [0.9]]), np.array([2.0, -0.5]), np.ones(1), 0)
    for value in bounds(made).values():
        assert value == pytest.approx(1.5, rel=1e-12)
        assert value >= 1.5
    assert below_level(made, 1.5 + 1e-9)
    assert not below_level(made, 1.5 - 1e-9)


def test_the_quadratic_keeps_cancellation() -> None:
    """Two nearly equal bumps of opposite sign: the sign bound sees the first alone, the quadratic both."""
    centres = np.array([[0.0, 0.5, 0.5], [0.0, 0.55, 0.5]]) * 0.1
    found = bounds(item(centres, np.array([1.0, -1.0]), np.full(3, 0.1), 0))
    assert found["quadratic"] < 0.1 * found["sign"]


def test_the_shell_test_closes_what_the_quadratic_cannot() -> None:
    rng = np.random.default_rng(3)
    made = item(rng.random((20, 6)), rng.normal(size=20), np.ones(6), 0)
    made.axis[POINT] = 0.5
    attained = climb(made, 500)
    assert quadratic_bound(made, 0.0) > 1.05 * attained
    assert below_level(made, 1.001 * attained)


def test_weights_of_zero() -> None:
    made = item(np.array([[0.3, 0.4]]), np.array([0.0]), np.ones(2), 0)
    for value in bounds(made).values():
        assert 0.0 <= value < 1e-12


@pytest.mark.parametrize("level", [0.0, -1.0, np.nan])
def test_a_level_that_is_not_positive_never_passes(level: float) -> None:
    made = item(np.array([[0.3, 0.4]]), np.array([-1.0]), np.ones(2), 0)
    assert not below_level(made, level)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_weight_that_is_no_number_never_passes(bad: float) -> None:
    made = item(np.array([[0.3, 0.4], [0.1, 0.2]]), np.array([1.0, bad]), np.ones(2), 0)
    made.axis[POINT] = 0.4
    assert not below_level(made, 5.0)
    assert not cheap_bound(made, 0.0) <= 5.0
