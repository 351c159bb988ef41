"""Principal directions of a few centres, and the mixture projected on them: never below it in the box (METHOD 3.5)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab.bound.rounding import EPS, grown

Array = NDArray[np.float64]

ITERATIONS = 10
"""Rounds of orthogonal iteration. Any directions are sound; better ones are only tighter."""


@kernel
def orthonormalise(rows: Array) -> bool:
    """Gram-Schmidt, twice over, in place; False where a row vanishes."""
    for a in range(rows.shape[0]):
        for _ in range(2):
            for b in range(a):
                dot = 0.0
                for j in range(rows.shape[1]):
                    dot += rows[a, j] * rows[b, j]
                for j in range(rows.shape[1]):
                    rows[a, j] -= dot * rows[b, j]
            norm = 0.0
            for j in range(rows.shape[1]):
                norm += rows[a, j] * rows[a, j]
            if not (1e-280 < norm < np.inf):
                return False
            norm = math.sqrt(norm)
            for j in range(rows.shape[1]):
                rows[a, j] /= norm
    return True


@kernel
def principal_directions(centres: Array, n: int, k: int, mean: Array, directions: Array) -> int:
    """Leading directions of the first n centres about their mean; return how many there are, at most k.

    They start as the centres farthest from the span so far, and turn towards the eigenvectors of the
    covariance by orthogonal iteration.
    """
    d = mean.size
    for j in range(d):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += centres[i, j]
        mean[j] /= n
    now, then = directions[0], directions[1]
    if d <= k:
        for a in range(d):
            for j in range(d):
                now[a, j] = 1.0 if a == j else 0.0
        return d
    rank = 0
    scale = 0.0
    while rank < min(k, n - 1):
        farthest = -1
        most = 1e-24 * scale
        for i in range(n):
            left = 0.0
            for j in range(d):
                left += (centres[i, j] - mean[j]) * (centres[i, j] - mean[j])
            scale = max(scale, left)
            for a in range(rank):
                dot = 0.0
                for j in range(d):
                    dot += (centres[i, j] - mean[j]) * now[a, j]
                left -= dot * dot
            if left > most:
                most = left
                farthest = i
        if farthest < 0:
            break
        for j in range(d):
            now[rank, j] = centres[farthest, j] - mean[j]
        if not orthonormalise(now[: rank + 1]):
            break
        rank += 1
    for _ in range(ITERATIONS):
        for a in range(rank):
            for j in range(d):
                then[a, j] = 0.0
        for i in range(n):
            for a in range(rank):
                dot = 0.0
                for j in range(d):
                    dot += (centres[i, j] - mean[j]) * now[a, j]
                for j in range(d):
                    then[a, j] += dot * (centres[i, j] - mean[j])
        if not orthonormalise(then[:rank]):
            break
        for a in range(rank):
            for j in range(d):
                now[a, j] = then[a, j]
    return rank


@kernel
def shorten(rows: Array) -> None:
    """Scale rows so that multiplying by them lengthens no vector, however far they are from orthonormal."""
    k, d = rows.shape
    worst = 0.0
    longest = 0.0
    for a in range(k):
        total = 0.0
        for b in range(k):
            dot = 0.0
            for j in range(d):
                dot += rows[a, j] * rows[b, j]
            total += abs(dot)
            if a == b:
                longest = max(longest, dot)
        worst = max(worst, total)
    factor = (1.0 - (k + 8.0) * EPS) / math.sqrt(worst + k * (d + 8.0) * EPS * longest)
    for a in range(k):
        for j in range(d):
            rows[a, j] *= factor


@kernel
def farthest_in_box(centre: Array, width: Array) -> float:
    """Distance of a centre from the farthest point of the box, rounded up."""
    total = 0.0
    for j in range(width.size):
        farthest = max(abs(centre[j]), abs(width[j] - centre[j]))
        total += farthest * farthest
    return math.sqrt(total) * (1.0 + (width.size + 8.0) * EPS)


@kernel
def project(
    rows: Array, weights: Array, centres: Array, mean: Array, width: Array, along: Array, heights: Array
) -> None:
    """Fill a mixture over R^k that lies above the given one on the box.

    Parameters
    ----------
    rows : (k, D') directions, from `shorten`
    weights : (n,), none negative
    centres : (n, D')
    mean : (D',) taken from point and centre alike
    width : (D',)
    along : (k, n) projected centres, overwritten
    heights : (n,) weights with the error of the projection added, overwritten
    """
    n, d = centres.shape
    k = rows.shape[0]
    middle = farthest_in_box(mean, width)
    for i in range(n):
        for a in range(k):
            total = 0.0
            for j in range(d):
                total += rows[a, j] * (centres[i, j] - mean[j])
            along[a, i] = total
        far = farthest_in_box(centres[i], width)
        error = math.sqrt(k) * (d + 4.0) * EPS * (far + middle)
        heights[i] = grown(weights[i], error * (far + error))
