"""The n-input attack: the fewest inputs found whose change is a confident misclassification (method 6).

No certificate can claim more inputs than this finds, so the two together say how much is left unknown.

A pair (x, x') with f(x) <= latent_low and f(x') >= latent_high, read backwards, is an attack in the other
direction: the search is over unordered pairs, and both points move. From each start, a set of inputs *grows*
from x = x' by the input that gains most until the thresholds are reached; then one input is *dropped* after
the other, the pair ascends jointly (`ascent`), and inputs are *exchanged* for others (`line` rates them all
at once) for as long as that helps. Later starts only look for a smaller set than the best so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskab.attack.ascent import WORK_ROWS, ascend_pair, value_gradient
from daskab.attack.line import rate_inputs, tried_values
from daskab.bound.scaled import Scaled, to_model_units
from daskab.errors import ModelError
from daskab.model.expansion import KernelExpansion

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

AHEAD = 0.05  #: of the thresholds' distance: aiming beyond them keeps both ends' slopes alive
STEPS, SHORT_STEPS = 200, 15  #: of an ascent; and of one while the set still grows
RESELECTIONS = 30  #: of the whole set, for one number of inputs
SWAPS = 6  #: inputs inside, and outside, tried against each other
BUDGET = 3e9  #: multiplications after which no new start or exchange begins (some 10 s)


@dataclass(frozen=True, eq=False)
class SeveralWitness:
    """A confident misclassification by few inputs: what an attacker is known to be able to do.

    Parameters
    ----------
    x : (D,)
        A point of the box, in the model's units, with ``model.latent`` at or below ``latent_low``.
    x_prime : (D,)
        One at or above ``latent_high``, bit-equal to ``x`` in all but ``n_inputs`` entries.
    latent_x, latent_x_prime : float
        ``model.latent`` there.
    n_inputs : int
        At least 1.
    """

    x: Array
    x_prime: Array
    latent_x: float
    latent_x_prime: float
    n_inputs: int


def fewest_inputs(
    model: KernelExpansion, starts: Array | None = None, seed: int = 0, n_starts: int = 16
) -> SeveralWitness | None:
    """Search for a confident misclassification that changes as few inputs as possible.

    Parameters
    ----------
    model : KernelExpansion
        With both thresholds.
    starts : (K, D), optional
        More points to start from, in the model's units and clipped to its box: ends of one-input
        witnesses, test points. Each costs about as much as one of the search's own.
    seed : int
        Of the search's random starts. The same arguments give the same answer.
    n_starts : int
        The search's own starts: between the two confident sets, heavy centres, random points.

    Returns
    -------
    SeveralWitness or None
        None if no pair was found, which does not prove that there is none.

    Raises
    ------
    ModelError
        If the model has no thresholds, ``starts`` does not fit it, or ``n_starts`` is negative.

    Examples
    --------
    >>> model = KernelExpansion([[0.0, 0.0]], [1.0], 1.0, [0, 0], [1, 1], latent_low=0.4, latent_high=0.9)
    >>> fewest_inputs(model).n_inputs
    2
    """
    if model.latent_low is None or model.latent_high is None:
        raise ModelError("latent_low, latent_high: the model has none; this attack needs both")
    if n_starts < 0:
        raise ModelError(f"n_starts: {n_starts} is negative")
    given = np.empty((0, model.n_inputs)) if starts is None else np.asarray(starts, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != model.n_inputs or not np.all(np.isfinite(given)):
        raise ModelError(f"starts: has shape {given.shape}, expected finite numbers (K, {model.n_inputs})")
    if not np.any(model.weights):
        return None
    search = _Search(model, model.latent_low, model.latent_high)
    for start in [*search.scaled_points(given), *search.own_starts(n_starts, np.random.default_rng(seed))]:
        search.from_start(start)
        if search.spent > BUDGET or search.most == 0:
            break
    return search.best


@dataclass(eq=False)
class _Pair:
    """Two points of the scaled box that are equal except where ``moved``."""

    x: Array
    x_prime: Array
    moved: Flags

    def copy(self) -> _Pair:
        return _Pair(self.x.copy(), self.x_prime.copy(), self.moved.copy())

    def assign(self, other: _Pair) -> None:
        self.x[:], self.x_prime[:], self.moved[:] = other.x, other.x_prime, other.moved

    def select(self, moved: Flags, choice: Array) -> None:
        """Make ``moved`` the set; inputs that enter or leave it take their values from ``choice`` (3, D)."""
        enter, leave = moved & ~self.moved, self.moved & ~moved
        self.x[enter], self.x_prime[enter] = choice[0, enter], choice[1, enter]
        self.x[leave] = self.x_prime[leave] = choice[2, leave]
        self.moved[:] = moved


class _Search:
    """The scaled model, work space for the kernels, the best witness so far and the work spent."""

    def __init__(self, model: KernelExpansion, latent_low: float, latent_high: float) -> None:
        self.model = model
        scaled = Scaled.of(model)
        m, d = scaled.centres.shape
        # In units of the largest possible |f - c0|, squares neither overflow nor vanish.
        unit = float(np.sum(np.abs(scaled.amplitudes)))
        self.centres, self.amplitudes, self.width = scaled.centres, scaled.amplitudes / unit, scaled.width
        low, high = (latent_low - model.constant) / unit, (latent_high - model.constant) / unit
        self.delta = high - low
        # What is reached here must still be reached after rounding to the model's units and there.
        edges = np.maximum(np.abs(model.lower), np.abs(model.upper)) / model.lengthscale
        offsets = abs(model.constant) / unit
        self.slack = 1e-9 * self.delta + 4e-16 * (m + d + float(np.sum(edges)) + offsets)
        self.low, self.high = low - self.slack, high + self.slack
        self.first, self.values, self.bumps = tried_values(self.centres, self.width, scaled.reach)
        self.work, self.term_work, self.recent = np.empty((WORK_ROWS, d)), np.empty((4, m)), np.empty(6)
        self.worth, self.choice = np.empty(d), np.empty((3, d))
        self.best: SeveralWitness | None = None
        self.most = d  # larger sets are of no use any more
        self.spent = 0.0

    def scaled_points(self, points: Array) -> list[Array]:
        inside = np.clip(points, self.model.lower, self.model.upper)
        return list((inside - self.model.lower) / self.model.lengthscale)

    def value(self, x: Array) -> float:
        return value_gradient(x, self.centres, self.amplitudes, self.work[0])

    # Starts

    def own_starts(self, count: int, rng: np.random.Generator) -> list[Array]:
        """A half between the two confident sets, halfway up; a quarter heavy centres; a quarter random."""
        heaviest = np.argsort(-np.abs(self.amplitudes), kind="stable")
        centres = [np.clip(self.centres[i], 0.0, self.width) for i in heaviest]
        random = [rng.random(self.width.size) * self.width for _ in range(count)]
        lows, highs = self._confident_points(centres[:8] + random[:4])
        between = []
        if lows and highs:
            for _ in range((count + 1) // 2):
                a, b = lows[rng.integers(len(lows))], highs[rng.integers(len(highs))]
                between.append(self._halfway(a, b))
        return [*between, *centres[: count // 4], *random][:count]

    def _confident_points(self, points: list[Array]) -> tuple[list[Array], list[Array]]:
        """From each point, the nearest that an ascent finds at or beyond each threshold, if it does."""
        everything = np.ones(self.width.size, dtype=np.bool_)
        lows, highs = [], []
        for point in points:
            pair = _Pair(point.copy(), point.copy(), everything)
            self.ascend(pair, 0.0)
            if self.value(pair.x) <= self.low:
                lows.append(pair.x)
            if self.value(pair.x_prime) >= self.high:
                highs.append(pair.x_prime)
        return lows, highs

    def _halfway(self, a: Array, b: Array) -> Array:
        """The point between a and b where f passes the middle of the thresholds: the steep part."""
        begin, end = 0.0, 1.0
        for _ in range(30):
            share = 0.5 * (begin + end)
            if self.value(a + share * (b - a)) < 0.5 * (self.low + self.high):
                begin = share
            else:
                end = share
        return a + begin * (b - a)

    # Moves

    def ascend(self, pair: _Pair, ahead: float, steps: int = STEPS) -> tuple[float, bool]:
        """Joint ascent of the pair; its shortfall, and whether it is a witness (kept if it is the best)."""
        shortfall, taken, reached = ascend_pair(
            pair.x, pair.x_prime, pair.moved, self.centres, self.amplitudes, self.width,
            self.low, self.high, ahead * self.delta + self.slack, steps, self.work, self.recent,
        )  # fmt: skip
        self.spent += (taken + 1.0) * self.centres.size
        return shortfall, reached and self._keep(pair)

    def _keep(self, pair: _Pair) -> bool:
        """Whether the pair is a witness by `model.latent`; if it is, nothing as large is sought again."""
        x, x_prime = to_model_units(self.model, pair.x), to_model_units(self.model, pair.x_prime)
        latent, latent_prime = (float(v) for v in self.model.latent(np.stack((x, x_prime))))
        low, high = self.model.latent_low, self.model.latent_high
        if low is None or high is None or not (latent <= low and latent_prime >= high):
            return False
        n = int(np.count_nonzero(x != x_prime))
        if n <= self.most:
            self.best = SeveralWitness(x, x_prime, latent, latent_prime, n)
            self.most = n - 1
        return True

    def rate(self, pair: _Pair, ahead: float) -> None:
        """Fill ``worth`` and ``choice`` for the pair."""
        margin = ahead * self.delta + self.slack
        rate_inputs(
            pair.x, pair.x_prime, self.centres, self.amplitudes, self.first, self.values, self.bumps,
            self.low - margin, self.high + margin, self.term_work, self.worth, self.choice,
        )  # fmt: skip
        self.spent += 2.0 * self.centres.shape[0] * (self.values.size + 10.0 * self.width.size)

    def _weakest(self, pair: _Pair, count: int = 1) -> NDArray[np.intp]:
        """Inputs of the set that are worth least."""
        inside = np.flatnonzero(pair.moved)
        return inside[np.argsort(self.worth[inside], kind="stable")[:count]]

    def _strongest(self, pair: _Pair, count: int = 1) -> NDArray[np.intp]:
        """Inputs outside the set that are worth most, those worth nothing left out."""
        outside = np.flatnonzero(~pair.moved & (self.worth > 0.0))
        return outside[np.argsort(-self.worth[outside], kind="stable")[:count]]

    # The search

    def from_start(self, start: Array) -> None:
        """Grow a set from x = x' = start, then look for ever smaller ones."""
        pair = _Pair(start.copy(), start.copy(), np.zeros(start.size, dtype=np.bool_))
        if not self._grow(pair) and pair.moved.sum() < self.most:
            return  # no other input is worth anything
        while self.most >= 1:
            surplus = int(pair.moved.sum()) - self.most
            if surplus > 0:
                self.rate(pair, AHEAD)
                smaller = pair.moved.copy()
                smaller[self._weakest(pair, surplus)] = False
                pair.select(smaller, self.choice)
            if not self._improve(pair):
                return

    def _grow(self, pair: _Pair) -> bool:
        """Add the inputs worth most until the thresholds are reached, or the set is as large as is of use."""
        stuck = False
        while (size := int(pair.moved.sum())) < self.most:
            self.rate(pair, AHEAD)
            # Some at a time when there are many: what is added too much is dropped again.
            enter = self._strongest(pair, min(self.most - size, max(1, size // 8)))
            if enter.size == 0:
                # So far beyond a threshold that one input alone changes nothing: all of them together may.
                if stuck:
                    return False
                stuck = True
                if self.ascend(pair, AHEAD)[1]:
                    return True
                continue
            larger = pair.moved.copy()
            larger[enter] = True
            pair.select(larger, self.choice)
            if self.ascend(pair, AHEAD, SHORT_STEPS)[1]:
                return True
        return False

    def _improve(self, pair: _Pair) -> bool:
        """Whether a set of this size reaches the thresholds after ascent, reselection and exchange."""
        for ahead in (AHEAD, 0.0):
            shortfall, found = self.ascend(pair, ahead)
            for _ in range(RESELECTIONS):
                if found or self.spent > BUDGET:
                    break
                better = self._reselect(pair, ahead, shortfall)
                if better is None:
                    better = self._exchange(pair, ahead, shortfall)
                if better is None:
                    break
                shortfall, found = better
            if found:
                return True
        return False

    def _reselect(self, pair: _Pair, ahead: float, shortfall: float) -> tuple[float, bool] | None:
        """Make the set the inputs worth most at this pair, all at once; None, and no change, if no better."""
        self.rate(pair, ahead)
        moved = np.zeros_like(pair.moved)
        moved[np.argsort(-self.worth, kind="stable")[: int(pair.moved.sum())]] = True
        if np.array_equal(moved, pair.moved):
            return None
        trial = pair.copy()
        trial.select(moved, self.choice)
        found = self.ascend(trial, ahead)
        if not found[1] and not found[0] < shortfall * (1.0 - 1e-6):
            return None
        pair.assign(trial)
        return found

    def _exchange(self, pair: _Pair, ahead: float, shortfall: float) -> tuple[float, bool] | None:
        """Take the first better pair with one input exchanged; None, and no change, if there is none."""
        self.rate(pair, ahead)
        choice = self.choice.copy()
        weakest = self._weakest(pair, SWAPS)
        for enter in self._strongest(pair, SWAPS):
            for leave in weakest:
                trial = pair.copy()
                moved = pair.moved.copy()
                moved[enter], moved[leave] = True, False
                trial.select(moved, choice)
                found = self.ascend(trial, ahead)
                if found[1] or found[0] < shortfall * (1.0 - 1e-4):
                    pair.assign(trial)
                    return found
                if self.spent > BUDGET:
                    return None
        return None
