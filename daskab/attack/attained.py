"""What a witness pair attains, evaluated again in the model's own units and rounded down (METHOD 5, Lemma 6).

Nothing here shares code with the search that found the pair but exp: no scaling, no compiled kernel.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab._elementary import exp_each
from daskab.bound.rounding import EPS, TINY
from daskab.errors import BoundError
from daskab.model.expansion import KernelExpansion
from daskab.model.kernels import EQ, profile, stretched

Array = NDArray[np.float64]


def terms(model: KernelExpansion, x: Array) -> tuple[Array, float]:
    """The M terms of f(x) - c0, and a bound on the sum of their errors."""
    d = model.n_inputs
    t = 0.5 * np.sum(((x - model.centres) / model.lengthscale) ** 2, axis=1)
    value = model.weights * model.variance * profile(model.kernel, t, exp_each)
    # What a relative error of t does to the logarithm of the kernel: METHOD 5 for EQ, sandwich/METHOD S4 for others.
    exponent = t if model.kernel == EQ else stretched(model.kernel, t)
    error = float(np.sum(np.abs(value) * ((d + 8.0) * exponent + 16.0))) * EPS * 1.01 + model.n_centres * TINY
    return value, error


def latent_range(model: KernelExpansion, x: Array) -> tuple[float, float]:
    """Two numbers f(x) lies between, whatever the rounding; ``x`` is (D,), in the model's units."""
    value, error = terms(model, x)
    total = math.fsum([model.constant, *value.tolist()])
    return math.nextafter(total - error, -math.inf), math.nextafter(total + error, math.inf)


def crosses_thresholds(model: KernelExpansion, x: Array, x_prime: Array) -> bool:
    """Whether one point is certainly at or below latent_low and the other at or above latent_high."""
    if model.latent_low is None or model.latent_high is None:
        return False
    a, b = latent_range(model, x), latent_range(model, x_prime)
    lower, upper = (a, b) if a[0] <= b[0] else (b, a)
    return lower[1] <= model.latent_low and upper[0] >= model.latent_high


def attained_change(model: KernelExpansion, x: Array, x_prime: Array) -> float:
    """A number that f(x_prime) - f(x) is never below; 0 where the error hides the change.

    Parameters
    ----------
    model : KernelExpansion
    x, x_prime : (D,) points of the box, in the model's units

    Raises
    ------
    BoundError
        If a point lies outside the box or the value is not finite.
    """
    for point in (x, x_prime):
        if not bool(np.all((point >= model.lower) & (point <= model.upper))):
            raise BoundError("witness: a point lies outside the model's box")
    up, up_error = terms(model, x_prime)
    down, down_error = terms(model, x)
    change = math.fsum([*up.tolist(), *(-down).tolist()])
    proved = math.nextafter(change - (up_error + down_error) * 1.01, -math.inf)
    if not math.isfinite(proved):
        raise BoundError(f"witness: its change is {proved}, not a finite number")
    return max(proved, 0.0)
