"""A point where the change is large: what could refute a bound. Proves nothing (METHOD 6)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from daskab.recheck.problem import Problem

Array = NDArray[np.float64]

GRID = 9
"""Values of s and of e tried at a starting point."""


class Path(NamedTuple):
    """From s to e at z, and how far that moves the latent."""

    s: float
    e: float
    z: Array
    change: float


def climb(problem: Problem, s: float, e: float, z: Array) -> Path:
    """Ascend from a path (L-BFGS-B)."""
    a, own, others = problem.amplitude, problem.own, problem.others
    unit = float(np.max(np.abs(a))) or 1.0

    def downhill(x: Array) -> tuple[float, Array]:
        kernel = a / unit * np.exp(-0.5 * np.sum((x[2:] - others) ** 2, axis=1))
        start, end = np.exp(-0.5 * (x[0] - own) ** 2), np.exp(-0.5 * (x[1] - own) ** 2)
        term = kernel * (end - start)
        slope_s, slope_e = kernel @ ((x[0] - own) * start), -kernel @ ((x[1] - own) * end)
        return -float(term.sum()), -np.concatenate([[slope_s, slope_e], term @ (others - x[2:])])

    bounds = [(0.0, problem.reach)] * 2 + [(0.0, float(w)) for w in problem.width]
    found = minimize(downhill, np.concatenate([[s, e], z]), jac=True, method="L-BFGS-B", bounds=bounds)
    return Path(float(found.x[0]), float(found.x[1]), found.x[2:], -unit * float(found.fun))


def best_of(problem: Problem, starts: int, seed: int) -> Path:
    """The best path climbed to, from the heaviest centres and random points of the box."""
    rng = np.random.default_rng(seed)
    heaviest = np.argsort(-np.abs(problem.amplitude), kind="stable")[: starts // 2]
    random = problem.width * rng.random((starts - heaviest.size, problem.width.size))
    zs = np.concatenate([np.clip(problem.others[heaviest], 0.0, problem.width), random])
    s, e = (v.ravel() for v in np.meshgrid(*[np.linspace(0.0, problem.reach, GRID)] * 2))
    best = Path(0.0, 0.0, zs[0], 0.0)
    for z in zs:
        at = int(np.argmax(problem.change(s, e, np.broadcast_to(z, (s.size, z.size)))))
        best = max(best, climb(problem, float(s[at]), float(e[at]), z), key=lambda path: path.change)
    return best
