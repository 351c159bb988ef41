"""The paper's grid: never below the mixture, each of its steps on its own, and the ways it is known to go wrong."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import weighted_nodes

from daskab.bound.grid import LOW, grid_bound, grid_lines, grid_maximum, grid_work
from daskab.bound.merging import merge_negatives, merged_exponent, shift
from daskab.bound.principal import principal_directions, project, shorten

ctx.prec = 150

Node = tuple[np.ndarray, np.ndarray, np.ndarray, int]


def bound(
    weights: np.ndarray,
    centres: np.ndarray,
    width: np.ndarray,
    spacing: float = 0.1,
    components: int = 2,
    most_points: int = 2500,
) -> float:
    work = grid_work(*centres.shape, components, most_points)
    return grid_bound(weights, centres, width, work, spacing, components, most_points)


def mixture(weights: np.ndarray, centres: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * np.sum((z[:, None] - centres[None]) ** 2, axis=2)) @ weights


def exact(weights: np.ndarray, centres: np.ndarray, z: list[arb]) -> arb:
    """The mixture at one point, in ball arithmetic."""
    total = arb(0)
    for weight, centre in zip(weights.tolist(), centres.tolist(), strict=True):
        t = sum(((zj - arb(cj)) ** 2 for zj, cj in zip(z, centre, strict=True)), start=arb(0))
        total += arb(weight) * (-t / 2).exp()
    return total


def best_point(weights: np.ndarray, centres: np.ndarray, width: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A good point of the box: many starts, each of which climbs by shrinking random steps."""
    d = width.size
    z = np.concatenate([rng.random((40, d)), rng.integers(0, 2, (40, d))]) * width
    z = np.concatenate([z, np.clip(centres, 0, width)])
    z = z[np.argsort(-mixture(weights, centres, z))[:8]]
    for step in 0.5 ** np.arange(1, 40):
        moved = np.clip(z + step * rng.normal(size=z.shape) * (rng.random(z.shape) < 0.7), 0, width)
        better = mixture(weights, centres, moved) > mixture(weights, centres, z)
        z[better] = moved[better]
    return z[np.argmax(mixture(weights, centres, z))]


def without(node: Node) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, centres and width of a node's other inputs."""
    centres, weights, width, changed = node
    return weights, np.ascontiguousarray(np.delete(centres, changed, axis=1)), np.delete(width, changed)


def random_node(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Small nodes of every kind the bound treats apart."""
    m, d = int(rng.integers(1, 9)), int(rng.integers(1, 7))
    width = np.full(d, 10 ** rng.uniform(-1, 0.8))
    centres = width * rng.random((m, d))
    kind = rng.integers(6)
    if kind == 1:
        centres += width * rng.normal(size=(m, d))
    elif kind == 2:
        centres = width * rng.integers(0, 2, (m, 1)) * np.ones((m, d))
    elif kind == 3:
        centres[:] = centres[rng.integers(m, size=m)]
    weights = rng.normal(size=m) * 10 ** rng.uniform(-2, 2, m)
    if kind == 4 and m > 1:
        weights[1] = -weights[0] * (1 + rng.choice([0.0, 1e-9, -1e-3]))
        centres[1] = centres[0] + 10 ** rng.uniform(-6, 0) * rng.normal(size=d)
    elif kind == 5:
        weights = -np.abs(weights)
    return weights, centres, width


@settings(max_examples=20)
@given(node=weighted_nodes(), seed=st.integers(0, 2**32 - 1), spacing=st.sampled_from([0.03, 0.1, 0.7, 5.0]))
def test_no_point_of_the_box_exceeds_the_bound(node: Node, seed: int, spacing: float) -> None:
    weights, centres, width = without(node)
    rng = np.random.default_rng(seed)
    z = width * np.concatenate([rng.random((60, width.size)), rng.integers(0, 2, (60, width.size))])
    z = np.concatenate([z, np.clip(centres, 0, width)])
    highest = max(float(mixture(weights, centres, z).max()), 0.0)
    for components in (1, 2, 3):
        value = bound(weights, centres, width, spacing, components, 900)
        assert np.isfinite(value)
        assert value >= highest - 1e-13 * np.abs(weights).sum()
        assert value <= weights[weights > 0].sum() * (1 + 1e-9) + 1e-290  # merging and projecting beat doing nothing


@given(node=weighted_nodes(), cancelling=st.floats(0.999, 1.001), apart=st.sampled_from([0.0, 1e-9, 1e-4, 0.1]))
def test_near_cancelling_pairs(node: Node, cancelling: float, apart: float) -> None:
    weights, centres, width = without(node)
    weights = np.concatenate([weights, -cancelling * weights])
    centres = np.concatenate([centres, centres + apart])
    z = np.concatenate([np.clip(centres, 0, width), np.clip(centres - 1, 0, width), np.clip(centres + 1, 0, width)])
    assert bound(weights, centres, width) >= mixture(weights, centres, z).max() - 1e-13 * np.abs(weights).sum()


@pytest.mark.parametrize("seed", range(300))
def test_ball_arithmetic_finds_no_point_above(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, centres, width = random_node(rng)
    value = bound(weights, centres, width, 10 ** rng.uniform(-2, 0.5), int(rng.integers(1, 4)), 400)
    z = best_point(weights, centres, width, rng)
    assert arb(value) >= exact(weights, centres, [arb(x) for x in z.tolist()])


# Exact special cases.


def test_one_positive_weight_is_exact() -> None:
    centres, width = np.array([[2.0, -1.0, 0.5]]), np.ones(3)
    value = bound(np.array([2.0]), centres, width)
    assert value == pytest.approx(2.0 * np.exp(-1.0), rel=1e-12)  # outside the box by one in two inputs
    assert arb(value) >= exact(np.array([2.0]), centres, [arb(1), arb(0), arb(0.5)])


@pytest.mark.parametrize("weights", [[2.0, -0.5], [0.1] * 10, [-1.0, 1.0 + 2**-52], [1e16, 1.0, -1e16]])
def test_no_other_inputs_leave_the_sum(weights: list[float]) -> None:
    w = np.array(weights)
    value = bound(w, np.empty((w.size, 0)), np.empty(0))
    assert value == pytest.approx(float(sum(map(Fraction, weights))), abs=1e-14 * np.abs(w).sum())
    assert Fraction(value) >= sum(map(Fraction, weights))


@pytest.mark.parametrize("d", [0, 1, 5])
def test_only_negative_weights_or_none_give_zero(d: int) -> None:
    rng = np.random.default_rng(d)
    assert bound(-rng.random(4), rng.random((4, d)), np.ones(d)) == 0.0
    assert bound(np.zeros(2), rng.random((2, d)), np.ones(d)) == 0.0


def test_duplicates_are_one_centre() -> None:
    centres = np.full((4, 3), 0.25)
    value = bound(np.array([1.0, -0.75, 0.5, -0.25]), centres, np.ones(3))
    assert value == pytest.approx(0.5, rel=1e-12)
    assert value >= 0.5
    # What a larger negative weight leaves over is merged into the next positive one.
    centres[3] = 0.5
    left = bound(np.array([1.0, -3.0, 0.5, 1.0]), centres, np.ones(3))
    assert left < 1.0


def test_inputs_that_cannot_change() -> None:
    value = bound(np.array([1.0, 1.0]), np.array([[0.0, 0.3], [0.0, 0.3]]), np.zeros(2))
    assert value == pytest.approx(2.0 * np.exp(-0.045), rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_a_number_is_no_bound(bad: float) -> None:
    for d in (0, 2):
        assert not np.isfinite(bound(np.array([1.0, bad]), np.full((2, d), 0.5), np.ones(d)))
    assert not np.isfinite(bound(np.array([1.0, 1.0]), np.array([[0.5], [bad]]), np.ones(1)))


# The steps one by one.


@pytest.mark.parametrize("seed", range(40))
def test_a_merged_pair_lies_above_the_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    width = np.full(d, 3.0)
    pair = width * rng.random((2, d))
    pair[1] = pair[0] + 10 ** rng.uniform(-9, 0.5) * rng.normal(size=d)
    a, b = 1.0, -(10 ** rng.choice([0.0, 1e-10, rng.uniform(-3, 3)]))
    weights, centres = np.array([a, b]), pair.copy()
    merge_negatives(weights, centres, width)
    assert weights[1] == 0.0
    assert 0.0 < weights[0] <= a
    for z in [*(width * rng.random((10, d))), np.clip(centres[0], 0, width)]:
        at = [arb(x) for x in z.tolist()]
        assert exact(np.array([a, b]), pair, at) <= exact(weights[:1], centres[:1], at)
    # At the merged centre, box or no box, the pair reaches the merged weight: nothing smaller would do.
    reached = exact(np.array([a, b]), pair, [arb(x) for x in centres[0].tolist()])
    if np.linalg.norm(centres[0] - pair[0]) < 20:
        assert float(reached) == pytest.approx(weights[0], rel=2e-3 if np.ptp(pair, axis=0).max() < 1e-6 else 1e-7)


def test_the_merged_weight_is_rounded_up_wherever_the_peak_is_put() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        ratio, tau = 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-14, 1.5)
        rho = shift(ratio, tau) * 10 ** rng.choice([0.0, rng.normal()])
        r, q, t = arb(rho), arb(ratio), arb(tau)
        true = r * (q * r / (1 + r)).log() - (1 + r).log() + t * r * (1 + r)
        assert arb(merged_exponent(ratio, tau, rho)) >= true


@pytest.mark.parametrize("seed", range(30))
def test_directions_lengthen_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    rows = rng.normal(size=(k, d)) * 10 ** rng.uniform(-3, 3)
    if seed % 3 == 0:  # nearly orthonormal, as they come
        rows = np.linalg.qr(rng.normal(size=(max(d, k), k)))[0].T[:, :d].copy()
    shorten(rows)
    x = np.linalg.svd(rows)[2][0]
    image = sum(sum(Fraction(r) * Fraction(v) for r, v in zip(row, x, strict=True)) ** 2 for row in rows.tolist())
    assert image <= sum(Fraction(v) ** 2 for v in x)
    if seed % 3 == 0 and d >= k:
        assert image >= 1 - Fraction(1, 10**12)


@pytest.mark.parametrize("seed", range(40))
def test_the_projected_mixture_lies_above(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, d, k = int(rng.integers(2, 7)), int(rng.integers(1, 9)), int(rng.integers(1, 4))
    width = rng.random(d) * 3
    centres, weights = width * rng.normal(0.5, 1.0, (m, d)), rng.random(m)
    work = grid_work(m, d, k, 400)
    work.centres[:], work.weights[:] = centres, weights
    rank = principal_directions(work.centres, m, k, work.mean, work.directions)
    shorten(work.directions[0, :rank])
    rows = work.directions[0, :rank]
    project(rows, work.weights[:m], work.centres[:m], work.mean, width, work.along[:rank, :m], work.heights[:m])
    rows, along = work.directions[0, :rank].tolist(), work.along[:rank].T.copy()
    for z in width * rng.random((8, d)):
        from_mean = [arb(a) - arb(b) for a, b in zip(z.tolist(), work.mean.tolist(), strict=True)]
        p = [sum((arb(r) * v for r, v in zip(row, from_mean, strict=True)), start=arb(0)) for row in rows]
        there = exact(work.heights, along, p)
        assert exact(weights, centres, [arb(x) for x in z.tolist()]) <= there
        if rank == d or rank == m - 1:  # every direction is kept: distances are as they were, or shorter by |r|
            assert np.all(np.isclose(work.heights, weights, rtol=1e-11))
    # The maximum over all of R^k is at a convex combination of the centres, and the grid finds it.
    assert grid_lines(work, m, rank, 0.3, 400)
    highest = grid_maximum(work, m, rank)
    for share in rng.dirichlet(np.full(m, 0.3), 20):
        assert arb(highest) >= exact(work.heights, along, [arb(x) for x in (share @ along).tolist()])


def test_directions_are_the_principal_ones() -> None:
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(60, 10)) * np.array([5.0, 3.0, *[0.3] * 8])
    directions, mean = np.empty((2, 2, 10)), np.empty(10)
    assert principal_directions(centres, 60, 2, mean, directions) == 2
    assert mean == pytest.approx(centres.mean(axis=0))
    assert np.abs(directions[0, :, :2]) == pytest.approx(np.eye(2), abs=0.15)
    leading = np.linalg.svd(centres - mean)[2][:2]
    assert np.linalg.svd(leading @ directions[0].T)[1] == pytest.approx(np.ones(2), abs=1e-6)


# The grid: all of the hull, whatever the spacing.


@pytest.mark.parametrize("spacing", [0.3, 0.37, 0.7, 0.999, 1.1])
def test_the_last_line_is_on_the_grid(spacing: float) -> None:
    """The maximum stands on the far edge, which no multiple of the spacing reaches."""
    centres = np.array([[0.0], [1.0], [1.0]])
    weights = np.array([1e-3, 1.0, 1.0])
    value = bound(weights, centres, np.ones(1), spacing)
    reached = float(mixture(weights, centres, np.ones((1, 1)))[0])
    assert reached <= value <= 1.001 * reached * np.exp(spacing**2 / 8)
    work = grid_work(3, 1, 1, 100)
    work.along[0] = centres[:, 0]
    assert grid_lines(work, 3, 1, spacing, 100)
    assert work.axis[:, 0].tolist() == [0.0, 1.0, np.ceil(1.0 / spacing) + 1.0]
    assert work.axis[LOW, 0] == 0.0


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("spacing", [1.0, 0.5 / 1.5, 0.2])
def test_a_maximum_midway_between_lines_is_reached(k: int, spacing: float) -> None:
    """As far from every line as a point can be: the division gives back exactly what the grid missed."""
    centres = np.concatenate([np.zeros((1, k)), np.ones((1, k)), np.full((1, k), 0.5)])
    weights = np.array([1e-13, 1e-13, 1.0])
    value = bound(weights, centres, np.ones(k), spacing, k)
    assert arb(value) >= exact(weights, centres, [arb(0.5)] * k)
    assert value <= 1.0 + 1e-11


@pytest.mark.parametrize("corner", [1.0, 3.0, 5.0])
def test_two_clusters_at_opposite_corners(corner: float) -> None:
    """A region placed about anything but the centres' own mean misses one of them."""
    d = 10
    low, high = np.full((3, d), 0.02), np.full((3, d), corner - 0.01)
    high[:, 0] -= [0.0, 0.01, 0.02]
    centres, width = np.concatenate([low, high]), np.full(d, corner)
    for light, heavy in ((0.1, 1.0), (1.0, 0.1)):
        weights = np.array([light] * 3 + [heavy] * 3)
        reached = mixture(weights, centres, centres).max()
        assert reached <= bound(weights, centres, width, 0.05) <= 1.002 * reached


@pytest.mark.parametrize("gap", [1e-7, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("ratio", [1.0, 1 + 1e-8, 1 - 1e-8, 1.02, 0.98])
def test_nearly_cancelling_weights_keep_their_peak(gap: float, ratio: float) -> None:
    """Weights that cancel almost wholly: the small peak that is left is neither lost nor rounded down."""
    centres, width = np.array([[2.0, 1.0], [2.0 + gap, 1.0]]), np.array([4.0, 2.0])
    weights = np.array([1.0, -ratio])
    line = np.stack([np.linspace(0.0, 2.0 + gap, 4001), np.ones(4001)], axis=1)
    best = line[np.argmax(mixture(weights, centres, line))]
    value = bound(weights, centres, width)
    assert arb(value) >= exact(weights, centres, [arb(x) for x in best.tolist()])
    if gap >= 1e-4 and ratio == 1.0:  # and it is hardly above, as the peak is in the box
        assert value <= 1.001 * float(mixture(weights, centres, line).max())


def test_the_spacing_between_lines_counts() -> None:
    """No spacing can be better than the mixture's own bound by more than it owes for the gaps between lines."""
    rng = np.random.default_rng(3)
    for k in (1, 2, 3):
        centres, weights = 2.0 * rng.random((12, 5)), rng.normal(size=12)
        spacings = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
        found = np.array([bound(weights, centres, np.full(5, 2.0), h, k, 10**6) for h in spacings])
        # A coarse grid may be lucky with where its lines fall, but never by more than the finer one's own factor.
        for fine in range(spacings.size):
            assert np.all(found[fine] <= found[fine:] * np.exp(k * spacings[fine] ** 2 / 8) * (1 + 1e-12))
        assert found[0] <= found[-1] * (1 + 1e-3)


def test_too_many_points_make_the_grid_coarser_not_wrong() -> None:
    rng = np.random.default_rng(4)
    centres, weights, width = 30.0 * rng.random((20, 4)), rng.random(20), np.full(4, 30.0)
    reached = mixture(weights, centres, centres).max()
    found = [bound(weights, centres, width, 0.01, 3, most) for most in (1, 7, 8, 100, 1000, 20000)]
    assert min(found) >= reached
    assert found[0] == pytest.approx(weights.sum(), rel=1e-9)  # no grid has one point: the merged weights' sum
    assert found[-1] < 0.6 * found[0]
    assert bound(weights, centres, width, 0.0, 3, 1000) == pytest.approx(found[4], rel=1e-9)  # no spacing: the finest


def test_work_arrays_may_be_larger_than_needed() -> None:
    rng = np.random.default_rng(5)
    centres, weights, width = rng.random((6, 4)), rng.normal(size=6), np.ones(4)
    work = grid_work(9, 4, 3, 4000)
    small = grid_bound(weights, centres, width, grid_work(6, 4, 2, 900), 0.1, 2, 900)
    assert grid_bound(weights, centres, width, work, 0.1, 2, 900) == small
    assert grid_bound(weights, centres, width, work, 0.1, 2, 900) == small  # and leave nothing behind


def test_a_negligible_weight_does_not_stretch_the_grid() -> None:
    centres = np.array([[0.2, 0.2], [0.4, 0.3], [900.0, 0.5]])
    weights = np.array([1.0, 1.0, 1e-16])
    value = bound(weights, centres, np.array([1000.0, 1.0]), 0.05)
    assert value == pytest.approx(mixture(weights, centres, np.array([[0.3, 0.25]]))[0], rel=1e-3)


def test_negligible_weights_are_counted() -> None:
    rng = np.random.default_rng(6)
    centres = np.concatenate([np.full((1, 3), 0.5), 0.5 + 1e-9 * rng.normal(size=(400, 3))])
    weights = np.array([1.0] + [9e-15] * 400)
    value = bound(weights, centres, np.ones(3))
    assert arb(value) >= exact(weights, centres, [arb(0.5)] * 3)
    assert value <= 1.0 + 4e-12


def test_trap_cases(problems: Path) -> None:
    """Cases on which a published implementation returned less than the function attains."""
    cases = sorted((problems / "traps").glob("*.npz"))
    assert cases
    for path in cases:
        case = np.load(path)
        d = int(case["input"])
        scale = case["lengthscale"] * np.ones(case["lower"].size)
        centres, width = (case["centres"] - case["lower"]) / scale, (case["upper"] - case["lower"]) / scale
        x, x_prime = (case["x"] - case["lower"]) / scale, (case["x_prime"] - case["lower"]) / scale
        after, before = (np.exp(-0.5 * (t[d] - centres[:, d]) ** 2) for t in (x_prime, x))
        weights = case["weights"] * case["variance"] * (after - before)
        others = np.ascontiguousarray(np.delete(centres, d, axis=1))
        for components in (1, 2, 3):
            for spacing in (0.05, 0.33):
                value = bound(weights, others, np.delete(width, d), spacing, components, 4000)
                assert value >= float(case["attained"]) - 1e-12 * np.abs(weights).sum(), path.name
