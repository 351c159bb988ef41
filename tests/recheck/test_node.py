"""What a node's test is made of: each part lies above what it stands for, at points and in ball arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models

from daskab import KernelExpansion
from daskab.recheck import quadratic
from daskab.recheck.mixture import Coordinates, Directions, Inputs, coordinates
from daskab.recheck.node import LARGEST_THIRD, Bump, curvature, examine, expanded, quadratic_above
from daskab.recheck.problem import Problem

ctx.prec = 150
seeds = st.integers(0, 2**32 - 1)


def directions(problem: Problem, off: float = 0.0) -> Coordinates:
    """The directions between centres, however many; not quite orthonormal, and not quite in their span."""
    mean = problem.others.mean(axis=0)
    sizes, basis = np.linalg.svd(problem.others - mean, full_matrices=False)[1:]
    basis = basis[sizes > 1e-12 * sizes[0]]
    return Directions(problem, basis + off * np.cos(np.arange(basis.size)).reshape(basis.shape), mean)


def few(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(2, 5)), int(rng.integers(6, 30))
    scale = 10.0 ** rng.uniform(-0.5, 1.0)
    centres = rng.random((m, d)) * rng.choice([1.0, 2.0])
    return Problem.of(KernelExpansion(centres, rng.normal(size=m), scale, np.zeros(d), np.ones(d)), 0)


def test_few_directions_are_searched_only_where_there_are_many_inputs() -> None:
    rng = np.random.default_rng(0)

    def of(m: int, d: int) -> Coordinates:
        model = KernelExpansion(rng.random((m, d)), np.ones(m), 1.0, np.zeros(d), np.ones(d))
        return coordinates(Problem.of(model, 0))

    assert isinstance(of(4, 30), Directions)
    assert isinstance(of(4, 15), Inputs)
    assert isinstance(of(40, 30), Inputs)
    assert isinstance(of(1, 30), Inputs)
    assert of(3, 1).low.size == 0


@given(seed=seeds, off=st.sampled_from([0.0, 1e-6, 1e-3]))
def test_a_mixture_is_never_below_one_common_share_of_the_kernels(seed: int, off: float) -> None:
    rng = np.random.default_rng(seed)
    problem = few(seed)
    where = directions(problem, off)
    assert isinstance(where, Directions)
    z = problem.width * np.where(
        rng.random((40, 1)) < 0.5, rng.random((40, problem.width.size)), rng.random((40, 1)) < 0.5
    )
    p = (z - where.mean) @ where.basis.T
    assert np.all((p >= where.low) & (p <= where.high))
    radius = rng.choice([1e-3, 0.1, 1.0]) * (where.high - where.low) * rng.random(p.shape)
    middle = p + radius * rng.uniform(-1.0, 1.0, p.shape)
    mixture, _ = where.mixture(middle, radius, rng.normal(size=p.shape), rng.normal(size=(40, problem.own.size)))
    h = p - middle
    stands = mixture.at + np.einsum("nij,nj->ni", mixture.toward, h) - 0.5 * np.sum(h**2, axis=1)[:, None]
    kernels = -0.5 * np.sum((z[:, None] - problem.others) ** 2, axis=2)
    above = stands - kernels
    slack = 1e-9 * (1.0 + mixture.size) + mixture.slack
    assert np.all(above > -slack)
    assert np.all(np.ptp(above, axis=1) < 2.0 * slack.max(axis=1))


def node_of(problem: Problem, where: Coordinates, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Middle and radius of a node, of any size."""
    low = np.concatenate([[0.0, 0.0], where.low])
    high = np.concatenate([[problem.reach] * 2, where.high])
    ends = np.sort(rng.random((2, low.size)), axis=0)
    size = 10.0 ** rng.uniform(-4.0, 0.0)
    ends = ends[0] + size * (ends[1] - ends[0]) * np.array([[0.0], [1.0]])
    lo, hi = low + (high - low) * ends
    return 0.5 * (lo + hi)[None], 0.5 * (hi - lo)[None] * (1.0 + 1e-12)


@settings(max_examples=150)
@given(model=models(max_centres=8, max_inputs=6), seed=seeds)
def test_the_quadratic_lies_above_the_change_and_a_node_passes_only_at_a_level_above_it(
    model: KernelExpansion, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    problem = Problem.of(model, int(rng.integers(model.n_inputs)))
    where = Inputs(problem)
    middle, radius = node_of(problem, where, rng)
    with np.errstate(all="ignore"):
        s, e = (Bump.of(problem.own, middle[:, i], radius[:, i]) for i in (0, 1))
        mixture, _ = where.mixture(middle[:, 2:], radius[:, 2:], middle[:, 2:], middle)
        share = np.concatenate([rng.uniform(-1.0, 1.0, (60, radius.size)), rng.choice([-1.0, 1.0], (60, radius.size))])
        sides = rng.uniform(-1.0, 1.0, radius.size)
        shift = radius[0] * [np.zeros(radius.size), sides, np.sign(sides)][rng.integers(3)]
        shift[:2] = 0.0
        h = share * radius - shift
        at = mixture.at + mixture.toward @ shift[2:] - 0.5 * np.sum(shift**2)
        q = mixture.toward - shift[2:]
        y = h[:, 2:] @ q[0].T
        low, high = y.min(axis=0)[None], y.max(axis=0)[None]
        value, gradient, hessian = quadratic_above(problem.amplitude, s, e, at, q, low, high, radius)
        points = middle + share * radius
        change = problem.change(points[:, 0], points[:, 1], points[:, 2:])
        above = value + h @ gradient[0] + 0.5 * np.einsum("nj,jk,nk->n", h, hessian[0], h)
        size = np.abs(problem.amplitude).sum() * (1.0 + problem.size.max())
        grown = np.exp(0.5 * np.sum(h[:, 2:] ** 2, axis=1))
        fine = np.isfinite(above) & np.all(at > -600.0)
        assert np.all((above - grown * change)[fine] >= -1e-11 * size * (grown + np.exp(high.max()))[fine])
        level = float(rng.uniform(0.0, 1.5)) * max(change.max(), 0.0)
        excess = expanded(problem.amplitude, level, s, e, mixture, radius, shift[None, 2:])[0][0]
        assert not excess < np.max(grown * (change - level) - 1e-12 * size * grown)
        for level in (0.0, 0.999 * change.max(), change.max() * (1.0 - 1e-9)):
            if 0.0 <= level < change.max() - 1e-12 * size:
                assert examine(problem.amplitude, level, s, e, mixture, radius).excess[0] > 0.0


@settings(max_examples=40)
@given(model=models(max_centres=6, max_inputs=6), seed=seeds, few_directions=st.booleans())
def test_rounding_is_covered(model: KernelExpansion, seed: int, few_directions: bool) -> None:
    """On a node without width the level just below the true value, in ball arithmetic, must not pass."""
    rng = np.random.default_rng(seed)
    problem = Problem.of(model, int(rng.integers(model.n_inputs)))
    where = directions(problem) if few_directions and np.ptp(problem.others, axis=0).any() else Inputs(problem)
    z = problem.width * rng.random(problem.width.size)
    s, e = problem.reach * rng.random(2)
    total = arb(0)
    for i in range(problem.own.size):
        t = sum(((arb(v) - arb(c)) ** 2 for v, c in zip(z.tolist(), problem.others[i].tolist(), strict=True)), arb(0))
        own = arb(float(problem.own[i]))
        move = (-((arb(e) - own) ** 2) / 2).exp() - (-((arb(s) - own) ** 2) / 2).exp()
        total += arb(float(problem.amplitude[i])) * move * (-t / 2).exp()
    if not total > 0:
        return
    level = math.nextafter(float(total.lower()), 0.0)
    p = z if isinstance(where, Inputs) else (z - where.mean) @ where.basis.T  # type: ignore[attr-defined]
    middle, radius = np.concatenate([[s, e], p])[None], np.zeros((1, p.size + 2))
    with np.errstate(all="ignore"):
        bumps = [Bump.of(problem.own, middle[:, i], radius[:, i]) for i in (0, 1)]
        mixture, _ = where.mixture(p[None], radius[:, 2:], np.zeros((1, p.size)), problem.amplitude[None])
        assert examine(problem.amplitude, level, *bumps, mixture, radius).excess[0] > 0.0


@given(seed=seeds, honest=st.booleans())
def test_a_peak_is_never_below_the_quadratic_whatever_the_eigenvectors(seed: int, honest: bool) -> None:
    rng = np.random.default_rng(seed)
    w = int(rng.integers(1, 8))
    g = rng.normal(size=(5, w))
    hessian = rng.normal(size=(5, w, w)) * 10.0 ** rng.uniform(-2.0, 2.0)
    hessian = hessian + np.swapaxes(hessian, 1, 2) - rng.choice([0.0, 10.0]) * np.eye(w)
    with pytest.MonkeyPatch.context() as patch:
        if not honest:
            wrong = rng.normal(size=(5, w)), rng.normal(size=(5, w, w))
            patch.setattr(quadratic.np.linalg, "eigh", lambda _: wrong)
        found = quadratic.peak(g, hessian)
    x = np.concatenate([rng.uniform(-1.0, 1.0, (200, w)), rng.choice([-1.0, 1.0], (200, w)), found.x])
    values = x @ g.T + 0.5 * np.einsum("mj,njk,mk->mn", x, hessian, x)
    assert np.all(values.max(axis=0) <= found.most)


def test_a_concave_peak_is_exact() -> None:
    found = quadratic.peak(np.array([[0.4, 3.0]]), np.array([[[-2.0, 0.3], [0.3, -1.0]]]))
    x = np.linspace(-1.0, 1.0, 401)
    a, b = np.meshgrid(x, x)
    exact = (0.4 * a + 3.0 * b - a**2 + 0.3 * a * b - 0.5 * b**2).max()
    assert exact <= found.most[0] <= exact + 1e-4


def test_coefficients_that_are_not_finite_bound_nothing() -> None:
    g, hessian = np.zeros((3, 2)), np.zeros((3, 2, 2))
    g[0, 1], hessian[1, 0, 0] = np.nan, np.inf
    assert np.array_equal(np.isinf(quadratic.peak(g, hessian).most), [True, True, False])


def test_the_constants() -> None:
    t = np.linspace(-6.0, 6.0, 200_001)
    third = np.abs(t**3 - 3.0 * t) * np.exp(-0.5 * t**2)
    assert third.max() <= LARGEST_THIRD <= third.max() * 1.001
    for x in (-30.0, -1.0, -0.1, -1e-3, -1e-9, 1e-9, 1e-3, 0.0999, 0.1, 1.0, 30.0):
        exact = (arb(x).exp() - 1 - arb(x)) / arb(x) ** 2
        assert abs(curvature(np.array([x]))[0] / float(exact.mid()) - 1.0) < 1e-12
