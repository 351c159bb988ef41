"""Lengthscale and variance of the highest Laplace marginal likelihood, and what is done where its optimiser stalls.

The likelihood is flat where the lengthscale is far too short or too long, has several maxima, and can overflow. A climb
is trusted if L-BFGS-B says that it converged, having met nothing but finite numbers and having moved in both values. If
the one from the given values is not, others begin at the median distance between training points and at random values;
whatever became of each, the best point that any of them saw is kept, and what happened is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from daskab.errors import DataError, one_line
from daskab.model.checked import Array

RANDOM_STARTS = 4

NAMES = ("variance", "lengthscale")
"""Of the two parts of theta."""

AT_EDGE = 1e-3
STILL = 1e-6
"""In logarithms: nearer than this to an edge of the range is at the edge, and no further than this has not moved."""

Objective = Callable[[Array], tuple[float, Array]]


@dataclass
class Climber:
    """An optimiser as scikit-learn takes it, of theta = (log variance, log lengthscale).

    Parameters
    ----------
    points : ndarray, shape (N, D)
        Training points.
    random_state : int, RandomState or None
        Of the random starts.

    Attributes
    ----------
    notes : list of str
        What happened that a person should know; empty if the first climb converged inside the range.
    """

    points: Array
    random_state: int | np.random.RandomState | None
    notes: list[str] = field(default_factory=list)

    def __call__(self, objective: Objective, start: Array, bounds: Array) -> tuple[Array, float]:
        """The theta (2,) of the least objective seen, and that.

        Raises
        ------
        DataError
            If it is not finite anywhere that was tried.
        """
        best = Best(start)
        stalled = climb(objective, start, bounds, best)
        if stalled:
            at_first, others = best.value, self.other_starts(bounds)
            converged = sum(not climb(objective, other, bounds, best) for other in others)
            if not math.isfinite(best.value):
                raise DataError(
                    f"lengthscale, variance: the marginal likelihood is not a finite number at {of_theta(start)}, nor "
                    f"at {len(others)} other starts; give values that fit the data"
                )
            first = f"{-at_first:.6g}" if math.isfinite(at_first) else "no finite one"
            self.notes.append(
                f"the optimiser of the marginal likelihood stalled at the given values ({stalled}); of {len(others)} "
                f"other starts {converged} converged; kept the best point seen, {of_theta(best.theta)}, log likelihood "
                f"{-best.value:.6g} against {first}"
            )
        self.notes.extend(edges(best.theta, bounds))
        return best.theta, best.value

    def other_starts(self, bounds: Array) -> list[Array]:
        """The median distance between points with variance 1, and random values, all within the range."""
        low, high = bounds.T
        with np.errstate(over="ignore"):
            apart = pdist(self.points[:1000])
        apart = apart[(apart > 0.0) & np.isfinite(apart)]
        usual = np.array([0.0, math.log(float(np.median(apart)))]) if apart.size else (low + high) / 2
        rng = check_random_state(self.random_state)
        return [np.clip(usual, low, high), *(rng.uniform(low, high) for _ in range(RANDOM_STARTS))]


@dataclass
class Best:
    """The least objective seen, and where."""

    theta: Array
    value: float = math.inf


def climb(objective: Objective, start: Array, bounds: Array, best: Best) -> str:
    """Climb from one start, noting the best point; why the end is not to be trusted, or nothing if it is."""

    def noted(theta: Array) -> tuple[float, Array]:
        value, gradient = objective(theta)
        if not (math.isfinite(value) and np.all(np.isfinite(gradient))):
            raise FloatingPointError(f"the likelihood or its gradient is not finite at {of_theta(theta)}")
        if value < best.value:
            best.theta, best.value = theta.copy(), float(value)
        return value, gradient

    try:
        with np.errstate(all="ignore"):  # what overflows is not finite, and met above
            result = minimize(noted, start, jac=True, method="L-BFGS-B", bounds=[(low, high) for low, high in bounds])
    except (np.linalg.LinAlgError, FloatingPointError, ValueError) as error:  # ValueError: scipy met a NaN
        return one_line(error)
    if not result.success:
        return one_line(RuntimeError(result.message))
    still = [name for name, way in zip(NAMES, np.abs(result.x - start), strict=True) if way < STILL]
    return f"it is flat there along the {' and the '.join(still)}" if still else ""


def edges(theta: Array, bounds: Array) -> list[str]:
    """What is at an edge of the range it was looked for in, where the likelihood may go on rising."""
    said = []
    for name, value, (low, high) in zip(NAMES, theta, bounds, strict=True):
        which = "smallest" if value < low + AT_EDGE else "largest" if value > high - AT_EDGE else ""
        if which:
            said.append(
                f"the marginal likelihood is highest at the {which} {name} that was tried, {math.exp(value):.6g}; "
                f"another given {name} may find better"
            )
    return said


def of_theta(theta: Sequence[float] | Array) -> str:
    """A point in words."""
    return f"lengthscale {math.exp(theta[1]):.6g} and variance {math.exp(theta[0]):.6g}"
