"""Outward rounding: the constants of METHOD section 5 and the exponentials every bound is built from."""

from __future__ import annotations

from daskab._compile import inner_kernel
from daskab._elementary import exp

EPS = 2.0**-52
"""Twice the unit roundoff: each error term below is proved with 2^-53 and taken with this."""

EXP_ERROR = 8.0
"""Relative error allowed to exp, in EPS. Ours is within 1.1 (METHOD, Lemma 8)."""

TINY = 1e-300
"""Absolute error of any product that may have gone through subnormal numbers."""


@inner_kernel
def exp_up(t: float) -> float:
    """Never below exp(-t), for t >= 0."""
    return exp(-t) * (1.0 + EXP_ERROR * EPS) + TINY


@inner_kernel
def exp_down(t: float) -> float:
    """Never above exp(-t), for t >= 0, and never negative."""
    return max(exp(-t) * (1.0 - EXP_ERROR * EPS) - TINY, 0.0)


@inner_kernel
def grown(value: float, exponent: float) -> float:
    """Never below value * exp(exponent), for value >= 0."""
    return value * (exp(exponent) * (1.0 + 2.0 * EXP_ERROR * EPS) + TINY)
