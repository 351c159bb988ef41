"""Where a library is asked what its latent mean is, when a model is imported from it."""

from __future__ import annotations

import numpy as np

from daskab.model.checked import Array

SEED = 20230919
UNIFORM, TRAINING, NEAR = 5, 5, 10


def probe_points(training: Array, lengthscale: Array, lower: Array, upper: Array) -> Array:
    """Points of the box at which a wrong import shows; the same ones every time.

    A few lie anywhere in the box. With many inputs the kernel is nearly zero there, so most are close to a training
    point, which shows the weights, or about one lengthscale from one, which shows lengthscales best.

    Parameters
    ----------
    training : ndarray, shape (N, D)
        Training points, in the units of the box; those outside are moved into it.
    lengthscale, lower, upper : ndarray, shape (D,)

    Returns
    -------
    ndarray, shape (20, D)
    """
    rng = np.random.default_rng(SEED)
    d = lower.size
    anywhere = lower + (upper - lower) * rng.random((UNIFORM, d))
    picked = training[rng.integers(training.shape[0], size=TRAINING + NEAR)]
    step = rng.normal(size=(NEAR, d))
    step *= lengthscale / np.sqrt(np.sum(step**2, axis=1, keepdims=True))
    picked[TRAINING:] += step
    # Close, not there: distances that are squared sums less products lose half their digits at 0, in libraries too.
    picked[:TRAINING] += 1e-3 * step[:TRAINING]
    points: Array = np.clip(np.concatenate([anywhere, picked]), lower, upper)
    return points
