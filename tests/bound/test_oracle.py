"""The rigorous oracle: ball arithmetic encloses the true maximum, and no bound lies below the enclosure.

`enclosure` is a second, independent branch and bound in python-flint's arb: model units, no scaling, no
majorants, nothing shared with daskab's kernels. Its lower end is a value the function provably attains.
"""

from __future__ import annotations

import heapq
from itertools import count

import numpy as np
import pytest
from flint import arb, ctx
from strategies import points_of

from daskab import KernelExpansion, certify
from daskab.bound.rounding import EPS, EXP_ERROR, exp_down, exp_up

ctx.prec = 120


def ball(low: float, high: float) -> arb:
    """The interval [low, high] as one ball."""
    return arb(low).union(arb(high))


def latent(model: KernelExpansion, x: list[arb]) -> arb:
    total = arb(model.constant)
    for i in range(model.n_centres):
        t = arb(0)
        for j, xj in enumerate(x):
            t += ((xj - arb(float(model.centres[i, j]))) / arb(float(model.lengthscale[j]))) ** 2
        total += arb(float(model.weights[i])) * arb(model.variance) * (-t / 2).exp()
    return total


def change(model: KernelExpansion, d: int, box: list[tuple[float, float]], to: tuple[float, float]) -> arb:
    """Enclosure of f(x') - f(x) over a box of x and an interval of x'_d, the difference in d taken per term."""
    total = arb(0)
    for i in range(model.n_centres):
        t = arb(0)
        for j, side in enumerate(box):
            if j != d:
                t += ((ball(*side) - arb(float(model.centres[i, j]))) / arb(float(model.lengthscale[j]))) ** 2
        scale, centre = arb(float(model.lengthscale[d])), arb(float(model.centres[i, d]))
        up = (-(((ball(*to) - centre) / scale) ** 2) / 2).exp()
        down = (-(((ball(*box[d]) - centre) / scale) ** 2) / 2).exp()
        total += arb(float(model.weights[i])) * arb(model.variance) * (-t / 2).exp() * (up - down)
    return total


def enclosure(model: KernelExpansion, d: int, rel: float = 0.02, most: int = 4000) -> tuple[float, float]:
    """[low, high] around Delta_d, found by bisection in all D + 1 coordinates."""
    sides = list(zip(model.lower.tolist(), model.upper.tolist(), strict=True))
    start = [*sides, sides[d]]

    def value(cell: list[tuple[float, float]]) -> arb:
        return change(model, d, cell[:-1], cell[-1])

    low = 0.0
    order = count()
    heap = [(-float(value(start).upper()), next(order), start)]
    for _ in range(most):
        high = max(-heap[0][0], 0.0)
        if high <= low * (1 + rel) + 1e-9:
            break
        _, _, cell = heapq.heappop(heap)
        j = max(
            range(len(cell)),
            key=lambda k: (cell[k][1] - cell[k][0]) / model.lengthscale[min(k, d) if k == len(cell) - 1 else k],
        )
        mid = 0.5 * (cell[j][0] + cell[j][1])
        for part in ((cell[j][0], mid), (mid, cell[j][1])):
            child = [*cell[:j], part, *cell[j + 1 :]]
            middle = [(0.5 * (a + b),) * 2 for a, b in child]
            low = max(low, float(value(middle).lower()))
            heapq.heappush(heap, (-float(value(child).upper()), next(order), child))
    return low, max(-heap[0][0], 0.0)


def small_model(seed: int) -> KernelExpansion:
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    weights = rng.normal(size=m) * 10 ** rng.uniform(-1, 2)
    if m > 1 and rng.random() < 0.4:
        weights[1] = -weights[0]
    return KernelExpansion(
        rng.uniform(-0.3, 1.3, (m, d)), weights, 10 ** rng.uniform(-0.7, 0.5), np.zeros(d), np.ones(d)
    )


@pytest.mark.parametrize("method", ["adaptive", "fixed"])
@pytest.mark.parametrize("seed", range(6))
def test_no_bound_lies_below_the_true_maximum(seed: int, method: str) -> None:
    model = small_model(seed)
    certificate = certify(model, method=method, slices=None if method == "adaptive" else 20)
    for d in range(model.n_inputs):
        low, high = enclosure(model, d)
        assert certificate.upper_bound[d] >= low
        # What the attack attains is a true value, so it lies below the enclosure's upper end.
        assert certificate.attained[d] <= high
        assert certificate.attained[d] >= 0.97 * low - 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_attained_values_are_rounded_down(seed: int) -> None:
    model = small_model(seed)
    certificate = certify(model, method="fixed", slices=2)
    assert certificate.witnesses is not None
    for d in range(model.n_inputs):
        x, x_prime = certificate.witnesses.pair(d)
        exact = latent(model, [arb(float(v)) for v in x_prime]) - latent(model, [arb(float(v)) for v in x])
        assert certificate.attained[d] == 0.0 or arb(float(certificate.attained[d])) <= exact


def test_latent_agrees_with_ball_arithmetic() -> None:
    for seed in range(10):
        model = small_model(seed)
        points = points_of(model, np.random.default_rng(seed), 6)
        for x, value in zip(points, model.latent(points), strict=True):
            exact = latent(model, [arb(float(v)) for v in x])
            assert abs(float(exact) - value) <= 1e-13 * np.abs(model.weights).sum()


def test_exponentials_are_on_their_side() -> None:
    t = np.concatenate([np.random.default_rng(0).uniform(0, 750, 3000), 10.0 ** np.linspace(-18, 3, 500), [0.0]])
    worst = 0.0
    for value in t.tolist():
        exact = (-arb(value)).exp()
        assert arb(exp_up(value)) >= exact
        assert arb(exp_down(value)) <= exact
        if value < 700:
            worst = max(worst, abs(float((arb(float(np.exp(-value))) - exact) / exact)))
    assert worst < 0.5 * EXP_ERROR * EPS
