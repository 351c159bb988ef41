"""What every import ends with: the box, the thresholds, and the library's own word on the result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from daskab.errors import ModelError, one_line
from daskab.model.checked import Array, numbers
from daskab.model.expansion import KernelExpansion
from daskab.model.importers.probes import probe_points
from daskab.model.probes import PROBE_TOLERANCE, mismatch
from daskab.model.thresholds import percentile_thresholds

Box = tuple[ArrayLike, ArrayLike]

# Of the distance between the thresholds: so much of a mistake may go unseen.
MOST_HIDDEN = 1e-2


def box_edges(box: Box | None, training: Array) -> tuple[Array, Array]:
    """Edges (D,) of the box: those given, a number standing for every input, or the range of the points (N, D)."""
    if box is None:
        return training.min(axis=0), training.max(axis=0)
    d = training.shape[1]
    try:
        lower, upper = (numbers("box", edge) for edge in box)
        return np.broadcast_to(lower, (d,)), np.broadcast_to(upper, (d,))
    except ModelError:
        raise
    except (TypeError, ValueError):
        raise ModelError(f"box: is not a pair (lower, upper), each a number or of shape ({d},)") from None


def assemble(
    source: str,
    model: KernelExpansion,
    training: Array,
    predict: Callable[[Array], Array],
    thresholds: tuple[float, float] | None,
    percentile: float,
) -> KernelExpansion:
    """Give a bare imported model its thresholds and probes.

    Parameters
    ----------
    source : str
        The library, for errors.
    model : KernelExpansion
        Without thresholds or probes.
    training : ndarray, shape (N, D)
        Training points, in the model's units.
    predict : callable, (P, D) -> (P,)
        The library's own latent mean.
    thresholds : tuple (latent_low, latent_high), optional
    percentile : float
        Without thresholds, they are this and the opposite percentile of the latent mean over the training points
        (method 1), from 0 to below 50.

    Returns
    -------
    KernelExpansion

    Raises
    ------
    ModelError
        If the thresholds are none, the library cannot predict or does not agree with the model, or the weights cancel
        to so few digits that it could not be told.
    """
    low, high = _thresholds(model, training, thresholds, percentile)
    # Whatever is smaller than this share of the largest latent, no probe can show.
    if PROBE_TOLERANCE * model.largest_latent > MOST_HIDDEN * (high - low):
        raise ModelError(
            f"{source}: its weights add up to a latent of {model.largest_latent:.2g}, where {high - low:.2g} makes the "
            "difference between the classes: they cancel to so few digits that a wrong import could not be told from a "
            "right one. Drop points that nearly coincide, or raise the jitter and fit it again"
        )
    points = probe_points(training, model.lengthscale, model.lower, model.upper)
    try:
        predicted = predict(points)
    except ModelError:
        raise
    except Exception as error:  # whatever a model that was edited comes to
        raise ModelError(f"{source} itself cannot predict with it ({one_line(error)})") from None
    latents = numbers(f"the latent mean {source} gives", predicted, shape=(points.shape[0],))
    wrong = mismatch(model.latent, model.largest_latent, points, latents)
    if wrong:
        raise ModelError(
            f"{source}: {wrong}; nothing is imported. Rescale columns that are far from zero for their lengthscale; "
            "else this is a fault of daskab: please report it"
        )
    return model.replace(latent_low=low, latent_high=high, probe_points=points, probe_latents=latents)


def _thresholds(
    model: KernelExpansion, training: Array, given: tuple[float, float] | None, percentile: float
) -> tuple[float, float]:
    if given is not None:
        pair = numbers("thresholds", given)
        if pair.shape != (2,) or not pair[0] < pair[1]:
            raise ModelError(f"thresholds: {given} is not a pair of latents (low, high), low below high")
        return float(pair[0]), float(pair[1])
    if not 0.0 <= percentile < 50.0:
        raise ModelError(f"percentile: {percentile:g} is not from 0 to below 50")
    low, high = percentile_thresholds(model.latent(training), percentile)
    if not low < high:
        raise ModelError(f"percentile: the latent mean is {low:g} at nearly every training point; give thresholds")
    return low, high
