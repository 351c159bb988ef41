"""From given points, one input after another: how few changes make a confident misclassification (method 6).

The n-input attack (`several`) chooses both points. Here one is given, as a test point is, and may not move: the
others found are what this very point is turned into.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskab._elementary import exp_each
from daskab.attack.attained import latent_range
from daskab.attack.line import tried_values
from daskab.bound.scaled import Scaled, to_model_units
from daskab.errors import ModelError
from daskab.model.checked import points_of
from daskab.model.expansion import KernelExpansion

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

STEPS = 2  #: most changes tried of a point, in numbers of inputs
STALLED = 1e-9  #: of the sum of |terms|: a change that moves the latent by no more leads nowhere
ZOOMS, ZOOMED = 4, 9  #: how often the neighbourhood of the best tried value is cut finer, and into how many values


@dataclass(frozen=True, eq=False)
class AttackedPoints:
    """What given points were turned into.

    Parameters
    ----------
    points : (N, D)
        In the model's units and its box: confidently of the other class where ``n_inputs`` is not 0, else as given.
    n_inputs : (N,)
        Inputs, and groups that count as one change, in which each differs from the given one; 0 where it was not
        confident, or nothing was found, which does not prove that there is nothing.
    confident : (N,)
        Whether the given point is confidently of one class, whatever the rounding.
    """

    points: Array
    n_inputs: NDArray[np.int64]
    confident: Flags


def attack_points(model: KernelExpansion, X: ArrayLike) -> AttackedPoints:
    """Turn given points into confident misclassifications, changing few inputs of each.

    Of every point beyond one threshold, one input is changed at a time, the one and to the value that move the latent
    most towards the other threshold, until it is passed. Changes that are not needed any more by then are undone.

    Parameters
    ----------
    model : KernelExpansion
        With both thresholds.
    X : array_like, shape (N, D)
        Points of the model's box, in its units.

    Returns
    -------
    AttackedPoints
        ``n_inputs``, where not 0, is never below ``inputs_required`` of the model's certificate.

    Raises
    ------
    ModelError
        If the model has no thresholds, or X is not (N, D), not finite, or not in the model's domain; or the model has
        categories, which are not attacked from given points.

    Notes
    -----
    Smith, Grosse, Backes, Alvarez (2023) choose the input by the gradient and then search its line. Here the lines of
    all inputs are searched: a gradient says little about an input that may move by many lengthscales.

    Examples
    --------
    >>> model = KernelExpansion([[0.0, 0.0]], [1.0], 1.0, [0, 0], [1, 1], latent_low=0.5, latent_high=0.9)
    >>> attack_points(model, [[0.0, 0.0], [0.9, 0.9], [0.0, 0.8]]).n_inputs.tolist()
    [2, 2, 0]
    """
    low, high = model.latent_low, model.latent_high
    if low is None or high is None:
        raise ModelError("latent_low, latent_high: the model has none; this attack needs both")
    if model.domain.in_category.any():
        raise ModelError("the model has categories; these are attacked by `daskab run`, not from given points")
    given = _points_of_the_domain(model, X)
    points, lines = given.copy(), _Lines(model)
    n_inputs = np.zeros(given.shape[0], dtype=np.int64)
    confident = np.zeros(given.shape[0], dtype=np.bool_)
    for k, x in enumerate(given):
        least, most = latent_range(model, x)
        confident[k] = most <= low or least >= high
        if confident[k]:
            found = _Attack(model, lines, x, low, high, up=most <= low).run()
            if found is not None:
                points[k] = found
                n_inputs[k] = model.domain.n_changes(x, found)
    return AttackedPoints(points, n_inputs, confident)


def _points_of_the_domain(model: KernelExpansion, X: ArrayLike) -> Array:
    given = points_of("X", X, model.n_inputs)
    outside = np.flatnonzero(~((given >= model.lower) & (given <= model.upper)))
    if outside.size:
        k, j = divmod(int(outside[0]), model.n_inputs)
        raise ModelError(
            f"X: row {k} has {float(given[k, j])!r} for input {model.input_names[j]}, outside the box from "
            f"{float(model.lower[j])!r} to {float(model.upper[j])!r}; clip it, or give the model a wider box"
        )
    for k, x in enumerate(given):
        if not model.domain.holds(x):
            j = int(np.flatnonzero(model.domain.nearest(x) != x)[0])
            raise ModelError(f"X: row {k} has {float(x[j])!r} for input {model.input_names[j]}, none of its values")
    return given


class _Lines:
    """f - c0 in scaled coordinates, along one input with the others as they are, for every input in turn."""

    def __init__(self, model: KernelExpansion) -> None:
        scaled = Scaled.of(model)
        self.amplitudes = scaled.amplitudes
        self.first, self.values, self.bumps = tried_values(scaled.centres, scaled.width, scaled.reach)
        self.reach = scaled.reach
        self.owner = np.empty(self.values.size, dtype=np.int64)  # the input that each tried value is of
        for j in range(model.n_inputs):
            self.owner[self.first[j] : self.first[j + 1]] = j
        self.centres = np.ascontiguousarray(scaled.centres.T)  # (D, M): a row an input
        self.width = scaled.width

    def rest(self, point: Array) -> tuple[Array, Array]:
        """The M terms at a point, and (D, M) those terms without the factor of each input."""
        t = 0.5 * (point[:, None] - self.centres) ** 2
        total = np.sum(t, axis=0)
        # The exponent, not the factor, is taken apart: the factor alone may have underflowed.
        apart = np.clip(t - total, -np.inf, 0.0)
        return self.amplitudes * exp_each(-total), self.amplitudes * exp_each(apart)

    def replaced(self, point: Array, other: Array) -> Array:
        """f - c0, (D,), where one input of ``point`` has the value it has in ``other``."""
        bumps = exp_each(-0.5 * (other[:, None] - self.centres) ** 2)
        values: Array = np.sum(bumps * self.rest(point)[1], axis=1)
        return values

    def furthest(self, point: Array, start: Array, sign: float) -> tuple[int, float] | None:
        """The input, and the value of it, that make ``sign`` f largest; None if none makes it larger.

        No value is farther from that of ``start`` than an input may move.
        """
        terms, rest = self.rest(point)
        along = sign * np.sum(self.bumps * rest[self.owner], axis=1)
        along[np.abs(self.values - start[self.owner]) > self.reach.limit[self.owner]] = -np.inf
        k = int(np.argmax(along))
        farthest = self._farthest(start, rest, sign)
        if farthest is not None and farthest[0] > along[k]:
            enough = farthest[0] - sign * np.sum(terms) > STALLED * np.sum(np.abs(terms))
            return farthest[1:] if enough else None
        if not along[k] - sign * np.sum(terms) > STALLED * np.sum(np.abs(terms)):
            return None
        j = int(self.owner[k])
        if self.reach.first[j] < self.reach.first[j + 1]:
            return j, float(self.values[k])
        value = self._refined(j, k - int(self.first[j]), rest[j], sign)
        return j, float(np.clip(value, start[j] - self.reach.limit[j], start[j] + self.reach.limit[j]))

    def _farthest(self, start: Array, rest: Array, sign: float) -> tuple[float, int, float] | None:
        """The best end of a limited input's range about where it was: sign f there, the input, its value."""
        limited = np.flatnonzero(np.isfinite(self.reach.limit) & (np.diff(self.reach.first) == 0))
        best = None
        for side in (-1.0, 1.0):
            ends = np.clip(start[limited] + side * self.reach.limit[limited], 0.0, self.width[limited])
            bumps = exp_each(-0.5 * (ends[:, None] - self.centres[limited]) ** 2)
            for j, value, along in zip(limited, ends, sign * np.sum(bumps * rest[limited], axis=1), strict=True):
                if best is None or along > best[0]:
                    best = float(along), int(j), float(value)
        return best

    def _refined(self, j: int, k: int, rest: Array, sign: float) -> float:
        """The best value of input j near the k-th that is tried of it."""
        own = self.values[self.first[j] : self.first[j + 1]]
        for _ in range(ZOOMS):
            low, high = own[max(k - 1, 0)], own[min(k + 1, own.size - 1)]
            own = np.sort(np.concatenate((np.linspace(low, high, ZOOMED), own[k : k + 1])))
            bumps = exp_each(-0.5 * (own[:, None] - self.centres[j]) ** 2)
            k = int(np.argmax(sign * np.sum(bumps * rest, axis=1)))
        return float(own[k])


class _Attack:
    """One given point, and the inputs of it that are changed."""

    def __init__(
        self, model: KernelExpansion, lines: _Lines, given: Array, low: float, high: float, *, up: bool
    ) -> None:
        self.model, self.lines, self.given = model, lines, given
        self.low, self.high, self.up = low, high, up
        self.sign = 1.0 if up else -1.0
        self.start = np.clip((given - model.lower) / model.lengthscale, 0.0, lines.width)
        self.point = self.start.copy()
        self.moved = np.zeros(given.size, dtype=np.bool_)

    def run(self) -> Array | None:
        """The point it becomes (D,), in the model's units."""
        for _ in range(STEPS * self.given.size):
            step = self.lines.furthest(self.point, self.start, self.sign)
            if step is None:
                return None
            self.point[step[0]] = step[1]
            self.moved[step[0]] = True
            if self._passed(self.moved):
                self._put_back()
                return self._as_given_but(self.moved)
        return None

    def _put_back(self) -> None:
        """Undo, the least needed first, the changes without which the threshold is passed all the same."""
        while True:
            without = self.sign * self.lines.replaced(self.point, self.start)
            j = int(np.argmax(np.where(self.moved, without, -np.inf)))
            fewer = self.moved.copy()
            fewer[j] = False
            if not self._passed(fewer):
                return
            self.moved, self.point[j] = fewer, self.start[j]

    def _as_given_but(self, moved: Flags) -> Array:
        there = np.where(moved, to_model_units(self.model, self.point), self.given)
        return self.model.domain.reconciled(self.given, there, np.flatnonzero(moved).tolist())[1]

    def _passed(self, moved: Flags) -> bool:
        """Whether the other threshold is, whatever the rounding."""
        least, most = latent_range(self.model, self._as_given_but(moved))
        return least >= self.high if self.up else most <= self.low
