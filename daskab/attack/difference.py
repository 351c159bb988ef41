"""The fewest inputs found that move the latent by as much as the thresholds are apart, wherever it begins (method 6).

The sum of one-input bounds excludes any change of that size, not only one from below one threshold to above the other.
Such a change is a confident misclassification of the same model with its thresholds moved, so those attacks find it.
"""

from __future__ import annotations

import math

import numpy as np

from daskab.attack.attacker import attacker
from daskab.attack.several import SeveralWitness
from daskab.errors import ModelError
from daskab.model.expansion import KernelExpansion
from daskab.sandwich.sums import ONE_EQ, EQSum

LEVELS = 5
"""Places of the thresholds tried beside their own, from where they would just be reached from below to from above."""


def fewest_for_difference(
    model: KernelExpansion, starts: int, seed: int, total: EQSum = ONE_EQ
) -> SeveralWitness | None:
    """Search for two points that differ in as few changes as possible, their latents as far apart as the thresholds.

    Parameters
    ----------
    model : KernelExpansion
        With both thresholds.
    starts, seed : how many points each attack starts from, and of which random ones
    total : the sum of EQs its kernel is taken as

    Returns
    -------
    SeveralWitness or None
        Never of more changes than the same attacks find across the thresholds themselves. None if nothing was found.

    Raises
    ------
    ModelError
        If the model has no thresholds.
    """
    if model.latent_low is None or model.latent_high is None:
        raise ModelError("latent_low, latent_high: the model has none; this attack needs both")
    best = attacker(model, starts, seed, total).fewest_changes()
    # Where latents are, at points among which there are peaks.
    rng = np.random.default_rng(seed)
    anywhere = model.lower + (model.upper - model.lower) * rng.random((256, model.n_inputs))
    latent = model.latent(model.domain.nearest(np.clip(np.vstack([anywhere, model.centres]), model.lower, model.upper)))
    apart = model.latent_high - model.latent_low
    for low in np.linspace(float(latent.min()), float(latent.max()) - apart, LEVELS).tolist():
        high = math.nextafter(low + apart, math.inf)  # never nearer than they were
        if not low < high or not math.isfinite(high):
            continue
        found = attacker(model.replace(latent_low=low, latent_high=high), starts, seed, total).fewest_changes()
        if found is not None and (best is None or found.n_inputs < best.n_inputs):
            best = found
    return best
