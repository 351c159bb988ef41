"""A model of another kernel as a sum of EQ models, its parts, and how far it is from their sum (METHOD S1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskab.bound.rounding import EPS
from daskab.bound.scaled import Scaled
from daskab.errors import BoundError
from daskab.model.expansion import KernelExpansion
from daskab.model.kernels import EQ
from daskab.sandwich.enclosure import distance
from daskab.sandwich.fit import fitted_sum
from daskab.sandwich.sums import EQSum

Array = NDArray[np.float64]

SHARE_LOST = 3e-3
"""Of the thresholds' distance: what replacing the kernel may cost a one-input bound, where a sum is near enough."""

LEAST_REACH = 1e-3
"""Lengthscales: nothing can be fitted over less, and more is proved than is needed."""

LEAST_NUMBER = 1e-290
"""Of the parts' lengthscales and variances: below, rounding is no longer in proportion."""

DEFAULT_TOLERANCE = 1e-4
"""Distance of the kernels that is aimed at where a model has no thresholds."""


@dataclass(frozen=True, eq=False)
class Parts:
    """|f(x) - sum_j part_j(x)| <= error everywhere in the box, constants left out."""

    total: EQSum
    models: tuple[KernelExpansion, ...]  #: one for each term of the sum, EQ, without thresholds
    error: float


def parts_of(model: KernelExpansion) -> Parts:
    """The parts of a model whose kernel is not EQ.

    Raises
    ------
    BoundError
        If no distance between the kernel and a sum can be proved.
    """
    size, tolerance = total_size(model), DEFAULT_TOLERANCE
    if model.delta is not None and size > 0.0:
        tolerance = SHARE_LOST * model.delta / (2.0 * size)
    return parts_by(model, fitted_sum(model.kernel, farthest(model), tolerance))


def parts_by(model: KernelExpansion, total: EQSum) -> Parts:
    """The parts by a sum that is given.

    Raises
    ------
    BoundError
        If the distance is not a finite number, or a part's own numbers are too small to be rounded in proportion.
    """
    off = distance(model.kernel, total, farthest(model))
    # Scales times lengthscales and shares times the variance are rounded: 2 u of an exponent, and u of a share.
    off += 8.0 * EPS * (1.0 + float(np.sum(total.shares)))
    least = min(float(model.lengthscale.min() * total.scales.min()), float(model.variance * total.shares.min()))
    if not least >= LEAST_NUMBER:
        raise BoundError(
            f"{model.kernel}: a lengthscale or variance of its parts would be {least:g}, too small to round"
        )
    models = tuple(
        model.replace(
            kernel=EQ,
            lengthscale=model.lengthscale * scale,
            variance=model.variance * share,
            constant=0.0,
            latent_low=None,
            latent_high=None,
            accuracy=None,
        )
        for scale, share in zip(total.scales.tolist(), total.shares.tolist(), strict=True)
    )
    return Parts(total, models, off * total_size(model) * (1.0 + 8.0 * EPS))


def farthest(model: KernelExpansion) -> float:
    """A distance in lengthscales that no point of the box has from any centre; not below `LEAST_REACH`."""
    scaled = Scaled.of(model.replace(kernel=EQ))
    away = np.maximum(np.abs(scaled.centres), np.abs(scaled.width - scaled.centres))
    reach = float(np.sqrt(np.max(np.sum(away**2, axis=1)))) * (1.0 + (model.n_inputs + 16.0) * EPS)
    return max(reach, LEAST_REACH)


def total_size(model: KernelExpansion) -> float:
    """v sum_i |alpha_i|, rounded up."""
    return float(np.sum(np.abs(model.weights))) * model.variance * (1.0 + (model.n_centres + 4.0) * EPS)
