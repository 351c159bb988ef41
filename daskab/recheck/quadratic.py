"""The maximum of a quadratic over the cube [-1, 1]^w, from above: what is concave in it by duality (METHOD 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDING = 2.0**-36
"""Of everything, times the sum of the sizes of what was added up (METHOD 5)."""

ASCENT_STEPS = 25
BENT_SHARE = 0.1
"""How much bending beside what is not concave says about where to cut."""


class Peak(NamedTuple):
    """Of n quadratics."""

    most: Array  #: (n,) never below the maximum; infinite where a coefficient is not finite
    x: Array  #: (n, w) near the maximiser of the concave part
    score: Array  #: (n, w) what cutting a coordinate may gain


def peak(g: Array, hessian: Array) -> Peak:
    """Bound g.x + x.hessian.x / 2 for ``g`` (n, w) and symmetric ``hessian`` (n, w, w).

    The hessian is a concave part plus a remainder; the remainder counts at most the sum of its sizes. Two concave
    parts are tried: the negative eigenvalues, and all of them lowered by the largest. Neither the eigenvalues nor the
    eigenvectors need be right.
    """
    finite = np.asarray(np.isfinite(hessian).all(axis=(1, 2)) & np.isfinite(g).all(axis=1))
    g = np.where(finite[:, None], g, 0.0)
    hessian = np.where(finite[:, None, None], hessian, 0.0)
    values, vectors = np.linalg.eigh(hessian)
    spread = np.sum(np.abs(vectors), axis=1) ** 2
    first, x, score = _with(g, hessian, vectors, np.minimum(values, 0.0), spread)
    second = _with(g, hessian, vectors, np.minimum(values - np.maximum(values[:, -1:], 0.0), 0.0), spread)[0]
    return Peak(np.where(finite, np.minimum(first, second), np.inf), x, score)


def _with(g: Array, hessian: Array, vectors: Array, values: Array, spread: Array) -> tuple[Array, Array, Array]:
    """The bound with ``vectors`` diag(``values``) ``vectors``' as concave part, values <= 0."""
    concave = np.matmul(vectors * values[:, None, :], np.swapaxes(vectors, 1, 2))
    remainder = np.abs(hessian - concave).sum(axis=2)
    x = ascend(g, concave, np.abs(values).max(axis=1))
    pull = np.einsum("njk,nk->nj", concave, x)
    # For any x: g.v + v.concave.v / 2 <= (g + concave x).v - x.concave.x / 2.
    most = np.abs(g + pull).sum(axis=1) - 0.5 * np.sum(x * pull, axis=1) + 0.5 * remainder.sum(axis=1)
    sizes = np.sum(np.abs(values) * spread, axis=1) + np.abs(g).sum(axis=1) + np.abs(hessian).sum(axis=(1, 2))
    return most + ROUNDING * sizes, x, 0.5 * remainder + BENT_SHARE * np.abs(hessian).sum(axis=2)


def ascend(g: Array, concave: Array, steepest: Array) -> Array:
    """Points (n, w) of the cube near the maximum of g.x + x.concave.x / 2, by accelerated projected ascent."""
    step = 1.0 / np.maximum(steepest, 1e-300)[:, None]
    x = np.clip(g * step, -1.0, 1.0)
    ahead, t = x, 1.0
    for _ in range(ASCENT_STEPS):
        new = np.clip(ahead + step * (g + np.einsum("njk,nk->nj", concave, ahead)), -1.0, 1.0)
        t_new = 0.5 * (1.0 + (1.0 + 4.0 * t * t) ** 0.5)
        ahead = new + (t - 1.0) / t_new * (new - x)
        x, t = new, t_new
    return x
