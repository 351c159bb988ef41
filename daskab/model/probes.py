"""Does a model still say what the library it was imported from said? Its probes tell.

Probes are a few points with the latent mean that library gave at them. They are kept with the model and compared
whenever it is made or read, so that a wrong import or a changed file cannot be missed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from daskab.model.checked import Array

# Of the largest latent the weights could add up to. What rounding alone makes is below 1e-13 of it; the classic
# mistakes of an import (another jitter, a lengthscale for its square) are above 1e-7.
PROBE_TOLERANCE = 1e-9


def mismatch(latent: Callable[[Array], Array], largest: float, points: Array, latents: Array) -> str:
    r"""Where a model and its probes disagree most, in words; empty where they agree.

    Parameters
    ----------
    latent : callable, (P, D) -> (P,)
        The model's latent mean.
    largest : float
        :math:`|c_0| + v \sum_i |\alpha_i|`, to which rounding is in proportion.
    points : ndarray, shape (P, D)
    latents : ndarray, shape (P,)
        What the library gave there.

    Returns
    -------
    str
    """
    with np.errstate(over="ignore"):  # a damaged probe may be anywhere
        found = latent(points)
        off = np.abs(found - latents)
    if np.all(off <= PROBE_TOLERANCE * largest):
        return ""
    k = int(np.argmax(off))
    return (
        f"probe {k}: the latent is {found[k]:.12g}, where the library it came from gave {latents[k]:.12g}, "
        f"and {PROBE_TOLERANCE * largest:.1g} is allowed"
    )
