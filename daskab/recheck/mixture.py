"""The other inputs as a few coordinates p: themselves, or where few centres span few directions, those (METHOD 2)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from daskab.recheck.problem import Problem

Array = NDArray[np.float64]

MOST_DIRECTIONS = 9
INPUTS_A_DIRECTION = 4
"""Directions are searched instead of inputs up to this many, and from this many inputs for each and one more."""

NEWTON_STEPS = 12
LONGEST_STEP = 4.0
ENOUGH = 30.0
"""Of the search for multipliers: steps, their length, and the exponent below which a node holds nothing."""


class Mixture(NamedTuple):
    """exp(at + toward.h - |h|^2 / 2), h = p - middle, which stands for k(|z - others_i|) at every z of a node."""

    at: Array  #: (n, M) exponent in the node's middle
    toward: Array  #: (n, M, k) from the middle to the centre
    size: Array  #: (n, M) sizes of all that was added up in an exponent
    slack: Array  #: (n, M) by how much an exponent may be off beside rounding


class Coordinates(Protocol):
    """What the search cuts beside s and e."""

    low: Array  #: (k,)
    high: Array  #: (k,)

    def mixture(self, middle: Array, radius: Array, eta: Array, gain: Array) -> tuple[Mixture, Array]:
        """The mixture on nodes given by ``middle`` and ``radius`` (n, k), and their multipliers.

        ``eta`` (n, k) are multipliers to begin with and ``gain`` (n, M) the weights that matter: choices, no more.
        """

    def points(self, p: Array, eta: Array) -> Array:
        """Points z (n, D - 1) to try in nodes."""


class Inputs:
    """p = z."""

    def __init__(self, problem: Problem) -> None:
        self.centres = problem.others
        self.low, self.high = np.zeros(problem.width.size), problem.width
        self.size = problem.size

    def mixture(self, middle: Array, radius: Array, eta: Array, gain: Array) -> tuple[Mixture, Array]:
        """Exact."""
        toward = self.centres - middle[:, None, :]
        at = -0.5 * np.einsum("nij,nij->ni", toward, toward)
        return Mixture(at, toward, np.broadcast_to(self.size, at.shape), np.zeros(at.shape)), eta

    def points(self, p: Array, eta: Array) -> Array:
        """p itself."""
        return np.clip(p, self.low, self.high)


class Directions:
    """p = Q y, y = z - mean of the centres, the rows of Q (k, D - 1) about orthonormal in the centres' span."""

    def __init__(self, problem: Problem, basis: Array, mean: Array) -> None:
        self.basis, self.mean = basis, mean
        self.y_low, self.y_high = -mean, problem.width - mean
        self.y_most = np.maximum(np.abs(self.y_low), np.abs(self.y_high))
        ends = np.stack([basis * self.y_low, basis * self.y_high])
        wide = 1e-11 * np.abs(ends).max(axis=0).sum(axis=1)
        self.low, self.high = ends.min(axis=0).sum(axis=1) - wide, ends.max(axis=0).sum(axis=1) + wide
        apart = problem.others - mean
        self.placed = apart @ basis.T
        self.half_square = 0.5 * np.sum(apart**2, axis=1)
        self.size = problem.size + self.half_square
        k, n = basis.shape
        rounding = 2.0**-44 * (np.abs(apart) + np.abs(self.placed) @ np.abs(basis))
        self.off_plane = (np.abs(apart - self.placed @ basis) + rounding) @ self.y_most
        self.defect = float(np.abs(basis @ basis.T - np.eye(k)).sum(axis=1).max()) + 2.0**-52 * k * (n + 8)

    def mixture(self, middle: Array, radius: Array, eta: Array, gain: Array) -> tuple[Mixture, Array]:
        """With the square of what p does not tell replaced by a line below it."""
        eta = self.multipliers(middle, radius, eta, gain)
        y = np.clip(eta @ self.basis, self.y_low, self.y_high)
        p = y @ self.basis.T
        rest = y - p @ self.basis
        slope = eta - p
        back = slope + rest @ self.basis.T
        line = 2.0 * (rest - back @ self.basis)
        square = np.sum(rest**2, axis=1)
        least = np.minimum(line * self.y_low, line * self.y_high).sum(axis=1) - square
        at = middle @ self.placed.T - self.half_square
        at -= (0.5 * np.sum(middle**2, axis=1) + np.sum(slope * middle, axis=1) + 0.5 * least)[:, None]
        far = np.abs(middle) + radius
        far_square = np.sum(far**2, axis=1)
        sizes = (np.abs(rest) + np.abs(back) @ np.abs(self.basis)) @ (2.0 * self.y_most) + square
        sizes += far_square + np.sum(np.abs(slope) * far, axis=1)
        size = far @ np.abs(self.placed).T + self.size + sizes[:, None]
        slack = self.off_plane + self.defect * far_square[:, None]
        return Mixture(at, self.placed - slope[:, None, :] - middle[:, None, :], size, slack), eta

    def multipliers(self, middle: Array, radius: Array, eta: Array, gain: Array) -> Array:
        """Multipliers (n, k) whose line touches where a node is highest, by Newton's method on a convex merit."""
        log = middle @ self.placed.T - self.half_square
        top = log.max(axis=1, keepdims=True)
        weight = gain * np.exp(log - top)
        total = np.maximum(weight.sum(axis=1), 0.05 * np.abs(weight).sum(axis=1) + 1e-300)
        slope = (weight @ self.placed) / total[:, None]
        best, (value, y, h) = eta, self._merit(eta, middle, radius, slope)
        damping = np.full(eta.shape[0], 1e-6)
        for _ in range(NEWTON_STEPS):
            free = ((y > self.y_low) & (y < self.y_high)).astype(np.float64)
            bend = np.einsum("nj,aj,bj->nab", free, self.basis, self.basis, optimize=True)
            bend += ((np.abs(h) < radius) + damping[:, None])[:, :, None] * np.eye(eta.shape[1])
            step = np.linalg.solve(bend, (y @ self.basis.T - h - middle)[:, :, None])[:, :, 0]
            longest = LONGEST_STEP * (1.0 + np.sqrt(np.sum(best**2, axis=1)))
            trial = best - step / np.maximum(np.sqrt(np.sum(step**2, axis=1)) / longest, 1.0)[:, None]
            value_there, y_there, h_there = self._merit(trial, middle, radius, slope)
            better = (value_there < value) & (value > -ENOUGH - top[:, 0])
            best = np.where(better[:, None], trial, best)
            y, h = np.where(better[:, None], y_there, y), np.where(better[:, None], h_there, h)
            value = np.where(better, value_there, value)
            damping = np.clip(np.where(better, 0.2 * damping, 10.0 * damping + 1e-3), 1e-9, 1e6)
        return best

    def _merit(self, eta: Array, middle: Array, radius: Array, slope: Array) -> tuple[Array, Array, Array]:
        pull = eta @ self.basis
        y = np.clip(pull, self.y_low, self.y_high)
        h = np.clip(slope - eta, -radius, radius)
        value = np.sum((pull - 0.5 * y) * y, axis=1) + np.sum((slope - eta - 0.5 * h) * h - eta * middle, axis=1)
        return value, y, h

    def points(self, p: Array, eta: Array) -> Array:
        """The points of the box the lines touch at."""
        return np.clip(eta @ self.basis, self.y_low, self.y_high) + self.mean


def coordinates(problem: Problem) -> Coordinates:
    """Whichever promise fewer nodes."""
    n = problem.width.size
    if n >= 2 * INPUTS_A_DIRECTION:
        mean = problem.others.mean(axis=0)
        sizes, basis = np.linalg.svd(problem.others - mean, full_matrices=False)[1:]
        rank = int(np.sum(sizes > 1e-12 * sizes[0]))
        if 0 < rank <= MOST_DIRECTIONS and n >= INPUTS_A_DIRECTION * (rank + 1):
            return Directions(problem, basis[:rank], mean)
    return Inputs(problem)
