"""What a linear latent does over its box, in rational numbers (METHOD N1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from daskab.model.linear import LinearModel


@dataclass(frozen=True)
class ExactLinear:
    """A linear model's numbers as they are.

    Attributes
    ----------
    intercept : b
    coefficients, lower, upper : (D,)
    least, largest : (D,) ends of each input's share of the latent, w_j x_j, over the box
    """

    intercept: Fraction
    coefficients: tuple[Fraction, ...]
    lower: tuple[Fraction, ...]
    upper: tuple[Fraction, ...]
    least: tuple[Fraction, ...]
    largest: tuple[Fraction, ...]

    @classmethod
    def of(cls, model: LinearModel) -> ExactLinear:
        """The same numbers as float64 holds."""
        w, lower, upper = (
            tuple(map(Fraction, values.tolist())) for values in (model.coefficients, model.lower, model.upper)
        )
        ends = [sorted((a * low, a * high)) for a, low, high in zip(w, lower, upper, strict=True)]
        return cls(
            Fraction(model.intercept), w, lower, upper, tuple(low for low, _ in ends), tuple(high for _, high in ends)
        )

    @property
    def changes(self) -> tuple[Fraction, ...]:
        """The largest change of the latent by each input alone (D,), which its two edges attain."""
        return tuple(high - low for low, high in zip(self.least, self.largest, strict=True))

    def latent(self, x: Sequence[float]) -> Fraction:
        """f at a point (D,)."""
        return self.intercept + sum(w * Fraction(value) for w, value in zip(self.coefficients, x, strict=True))

    def holds(self, x: Sequence[float]) -> bool:
        """Whether a point (D,) is in the box."""
        return all(low <= value <= high for low, value, high in zip(self.lower, x, self.upper, strict=True))

    def reaches(self, low: float, high: float) -> bool:
        """Whether the box has a point with f <= low and one with f >= high."""
        return self.intercept + sum(self.least) <= low and self.intercept + sum(self.largest) >= high


def widest_first(changes: Sequence[Fraction]) -> list[int]:
    """Inputs by falling change, the first of equals first."""
    return sorted(range(len(changes)), key=lambda j: -changes[j])


def fewest_that_sum_to(delta: Fraction, changes: Sequence[Fraction]) -> int | None:
    """The fewest of the changes (D,) whose sum is at least delta > 0; None where all of them are not enough."""
    sums = accumulate(sorted(changes, reverse=True))
    return next((n for n, total in enumerate(sums, start=1) if total >= delta), None)


def rounded_up(value: Fraction) -> float:
    """The least float64 that is not below a value."""
    near = float(value)
    return math.nextafter(near, math.inf) if near < value else near


def rounded_down(value: Fraction) -> float:
    """The greatest float64 that is not above a value."""
    return -rounded_up(-value) + 0.0  # of zero, the one without a sign
