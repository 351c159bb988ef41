"""The attacks to be excluded, and the one inequality that follows from their two thresholds (METHOD J1)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel
from daskab.bound.item import n_directions
from daskab.bound.reach import Reach
from daskab.bound.rounding import EPS
from daskab.bound.scaled import Scaled
from daskab.errors import ModelError
from daskab.model.expansion import KernelExpansion

Array = NDArray[np.float64]

FAINTEST = 1e-40
"""A term with a smaller share of the largest amplitude is left out, and its size taken off the thresholds."""

SMALLEST = 5e-324
"""The smallest positive number."""


class Attacks(NamedTuple):
    """The attacks to be excluded: pairs of a scaled model with f(x') - c0 >= high and c0 - f(x) >= low.

    Of ``apart`` ones it counts only that f(x') - f(x) >= high + low.
    """

    centres: Array  #: (M, D) in scaled coordinates, as are the next two
    amplitudes: Array  #: (M,)
    width: Array  #: (D,)
    reach: Reach  #: what else the domain says
    high: float
    low: float
    most: int  #: changes an attack may make; inputs, where sets of them are searched
    apart: bool  #: whether only the distance between the two latents counts

    @classmethod
    def of(cls, model: KernelExpansion, most: int) -> Attacks:
        """The attacks of a model with thresholds, rounded outward (METHOD J6)."""
        if model.latent_low is None or model.latent_high is None:
            raise ModelError("latent_low, latent_high: the model has none; an attack needs both")
        high = math.nextafter(model.latent_high - model.constant, -math.inf)
        low = math.nextafter(model.constant - model.latent_low, -math.inf)
        return cls._beyond(Scaled.of(model), high, low, most, apart=False)

    @classmethod
    def of_change(cls, scaled: Scaled, level: float, most: int) -> Attacks:
        """Pairs whose latents lie ``level`` apart or more, rounded outward (METHOD J8)."""
        return cls._beyond(scaled, 0.5 * level, 0.5 * level, most, apart=True)

    @classmethod
    def _beyond(cls, s: Scaled, high: float, low: float, most: int, *, apart: bool) -> Attacks:
        largest = float(np.max(np.abs(s.amplitudes)))
        # In units of about the largest amplitude nothing that counts underflows; a power of two costs no bit.
        unit = math.ldexp(1.0, math.frexp(largest)[1]) if largest > 0.0 else 1.0
        amplitudes = s.amplitudes / unit
        faint = np.abs(amplitudes) < FAINTEST
        m, d = s.centres.shape
        half_squares = 0.5 * np.sum((s.width + np.abs(s.centres)) ** 2, axis=1)
        directions = n_directions(m, d)
        error = EPS * (8.0 + 4.0 * (directions + 1) * (d + 16) * (half_squares + half_squares[0]))
        lost = math.fsum((np.abs(amplitudes) * np.where(faint, 2.0, 1.1 * error)).tolist()) + FAINTEST
        lost += m * SMALLEST / unit  # amplitudes are products, which lose that much where they are subnormal
        sides = [math.nextafter(side / unit - lost, -math.inf) for side in (high, low)]
        return cls(s.centres, np.where(faint, 0.0, amplitudes), s.width, s.reach, sides[0], sides[1], most, apart)


EDGE = 1e-3
"""Share of the range of lam that is left out at its ends, where T or the weight of an end of the pair vanishes."""


@inner_kernel
def shares(high: float, low: float) -> tuple[float, float]:
    """Range of lam in which T = lam high + (1 - lam) low is positive, without its ends."""
    least = 0.0
    most = 1.0
    if high < 0.0:
        most = low / (low - high)
    if low < 0.0:
        least = -low / (high - low)
    edge = EDGE * (most - least)
    return least + edge, most - edge


@inner_kernel
def required(lam: float, high: float, low: float) -> float:
    """T, rounded down: an attack has lam (f(x') - c0) - (1 - lam) (f(x) - c0) >= T for any lam of [0, 1].

    0, from which nothing follows, for any other.
    """
    if not 0.0 <= lam <= 1.0:
        return 0.0
    mu = 1.0 - lam
    return lam * high + mu * low - 4.0 * EPS * (abs(lam * high) + abs(mu * low))
