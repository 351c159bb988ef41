"""What *confidently* means if nothing else is said: percentiles of the latent mean over training points (method 1)."""

from __future__ import annotations

import numpy as np

from daskab.model.checked import Array


def percentile_thresholds(latent: Array, percentile: float) -> tuple[float, float]:
    """The latents at a percentile, from 0 to below 50, and at the opposite one, of latents (N,)."""
    low, high = np.percentile(latent, [percentile, 100.0 - percentile]).tolist()
    return low, high
