"""How low each input's bound has to come before more work cannot change the certificate (METHOD 4)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab.bound.topn import inputs_required, largest_sums

Array = NDArray[np.float64]

FLOOR = 1e-11
"""Goals are never below this share of sum |a_i|: closer than that, rounding is all there is to see."""

MARGIN_SHARE = 0.7
LEAST_RTOL = 1e-5
"""A tolerance is cut to this share of the margin that would cost an input, but not below this."""


def goals(attained: Array, amplitudes: Array, delta: float | None, rtol: float, slack: Array | float = 0.0) -> Array:
    """Goal (D,) of every input: (1 + rtol) times what it attains, or what the n-th input attains if more.

    Where the model is a part of another (sandwich/METHOD S5) a bound may also stay ``slack``, () or (D,), above.

    With n the number of inputs the attained values need to reach ``delta``, an input that is shown to
    change the latent by no more than the n-th largest attained value cannot raise the sum of n by more
    than the tolerance, so its own bound need not come closer (METHOD, Lemma 7). Where delta lies so little above
    the n - 1 largest attained values that the tolerance would cost an input, a smaller one is used.
    """
    level = 0.0
    if delta is not None:
        sums = largest_sums(attained, towards=-math.inf)
        n = inputs_required(sums, delta)
        if n is not None:
            level = float(np.sort(attained)[-n])
            if n > 1 and sums[n - 2] > 0.0:
                rtol = min(rtol, max(MARGIN_SHARE * (delta / float(sums[n - 2]) - 1.0), LEAST_RTOL))
    floor = FLOOR * float(np.sum(np.abs(amplitudes)))
    goal = np.maximum(np.maximum(attained, level) * (1.0 + rtol), floor)
    return np.maximum(goal, attained + slack)


def trivial_bound(amplitudes: Array) -> float:
    """A bound on any change whatever: every bump moves from 0 to 1 or back. Used where work is missing."""
    return math.nextafter(math.fsum(np.abs(amplitudes).tolist()) * (1.0 + 1e-12), math.inf)
