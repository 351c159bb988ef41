"""Straight lines above  psi(s) = lam e^s - mu e^-s,  the shape every term of a pair's equation has (METHOD J3)."""

from __future__ import annotations

import math

from daskab._compile import inner_kernel
from daskab._elementary import exp, log


@inner_kernel
def psi(lam: float, mu: float, s: float) -> float:
    """The function itself: concave where it is negative, convex where it is positive, rising everywhere."""
    return lam * exp(s) - mu * exp(-s)


@inner_kernel
def highest_over_line(lam: float, mu: float, slope: float, low: float, high: float) -> float:
    """Maximum over [low, high] of psi(s) - slope s: at an end, or where psi is concave and has this slope."""
    top = max(psi(lam, mu, low) - slope * low, psi(lam, mu, high) - slope * high)
    # No square of the slope: it would overflow where psi does not, and the place be missed.
    share = 4.0 * (lam / slope) * (mu / slope) if slope > 0.0 else 2.0
    if share <= 1.0:
        s = log(2.0 * (mu / slope) / (1.0 + math.sqrt(1.0 - share)))
        if not math.isfinite(s):
            return math.inf
        if low < s < high:
            top = max(top, psi(lam, mu, s) - slope * s)
    return top


@inner_kernel
def touching_point(lam: float, mu: float, low: float, high: float) -> float:
    """About where the least concave function above psi leaves it for a chord to ``high``; never below ``low``.

    For the cubic that psi is near its inflection, the chord's foot is half as far below the inflection as its head
    is above. Any other place would do, only less tightly.
    """
    inflection = 0.5 * log(mu / lam)
    if inflection >= high:
        return high
    return max(inflection - 0.5 * (high - inflection), low)


@inner_kernel
def slope_above(lam: float, mu: float, low: float, high: float, at: float) -> float:
    """Slope at ``at`` of about the least concave function above psi on [low, high]."""
    foot = touching_point(lam, mu, low, high)
    if at > foot and foot == low and high - low > 1e-9:
        return (psi(lam, mu, high) - psi(lam, mu, low)) / (high - low)
    s = min(at, foot)
    return lam * exp(s) + mu * exp(-s)
