"""How fast a mixture may curve upwards: largest eigenvalues, proved by a Cholesky test (METHOD 3.3, Lemma 8)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel
from daskab.bound.item import EXPONENT, LARGEST_MATRIX, Item
from daskab.bound.rounding import EPS, EXP_ERROR

Array = NDArray[np.float64]

POWER_STEPS = 12
STRETCHES = 12


@inner_kernel
def cholesky(matrix: Array, shift: float, sign: float, factor: Array) -> bool:
    """Factor ``shift * I + sign * matrix`` as L L'; False where a pivot is not positive.

    Success proves the matrix positive semidefinite up to (n + 2) EPS times its trace (METHOD, Lemma 8).
    """
    n = matrix.shape[0]
    for i in range(n):
        for j in range(i + 1):
            value = sign * matrix[i, j]
            if i == j:
                value += shift
            for k in range(j):
                value -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = value / factor[j, j]
            elif value > 0.0:
                factor[i, i] = math.sqrt(value)
            else:
                return False
    return True


@inner_kernel
def largest_eigenvalue(matrix: Array, factor: Array, vector: Array) -> float:
    """A number not below the largest eigenvalue of a symmetric matrix (n, n) and not below 0.

    Power iteration on the matrix shifted to be non-negative guesses; the guess is stretched until the
    Cholesky factorisation of guess * I - matrix exists. ``factor`` (n, n) and ``vector`` (2, n) are work space.
    """
    n = matrix.shape[0]
    radius = 0.0  # largest absolute row sum: no eigenvalue is larger in size
    trace = 0.0
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += abs(matrix[i, j])
        radius = max(radius, total)
        trace += abs(matrix[i, i])
        vector[0, i] = 1.0 + 0.1 * (i % 7)
    if not radius > 0.0:
        return 0.0
    guess = 0.0
    for _ in range(POWER_STEPS):
        norm = 0.0
        along = 0.0
        for i in range(n):
            value = radius * vector[0, i]
            for j in range(n):
                value += matrix[i, j] * vector[0, j]
            vector[1, i] = value
            norm += value * value
            along += vector[0, i] * vector[0, i]
        if not norm > 0.0:
            break
        guess = math.sqrt(norm / along) - radius
        scale = 1.0 / math.sqrt(norm)
        for i in range(n):
            vector[0, i] = vector[1, i] * scale
    guess = max(guess, 1e-3 * radius)
    step = 0.01 * guess
    for _ in range(STRETCHES):
        guess += step
        step *= 2.0
        if cholesky(matrix, guess, -1.0, factor):
            return float(guess + (n + 4.0) * EPS * (n * guess + trace))
    return float(radius * (1.0 + (n + 4.0) * EPS))


@inner_kernel
def factor_gram(item: Item) -> float:
    """Factor L L' of the Gram matrix of the A_i, lifted so that it exists, into the item's third matrix; the lift.

    It is the Gram matrix of vectors that agree with the A_i on the space at hand (METHOD, Lemma 8). -1 where there
    is none: too large, not needed as there are more centres than inputs, or rounding is in the way.
    """
    m, d = item.offset.shape
    if m > d or m > LARGEST_MATRIX:
        return -1.0
    square = item.matrix[0]
    trace = 0.0
    for i in range(m):
        for k in range(i + 1):
            g = 0.0
            for j in range(d):
                g += item.offset[i, j] * item.offset[k, j]
            square[i, k] = g
        trace += square[i, i]
    lift = 4.0 * (m + d + 16.0) * EPS * trace
    return lift if trace > 0.0 and cholesky(square, lift, 1.0, item.matrix[2]) else -1.0


@inner_kernel
def curvature_bound(item: Item, row: int, lift: float) -> float:
    """Not below the largest eigenvalue of sum_i q_i A_i A_i', nor below 0; A as `settle` left them.

    Parameters
    ----------
    item : after `settle`
    row : of ``item.term``, where the q_i are
    lift : what `factor_gram` returned since
    """
    m, d = item.offset.shape
    term, offset = item.term, item.offset
    n = min(m, d)
    if n == 0:
        return 0.0
    second = 0.0
    upward = 0.0
    trace = 0.0
    for i in range(m):
        norm = 2.0 * term[EXPONENT, i]
        trace += norm
        second += abs(term[row, i]) * norm
        upward += max(term[row, i], 0.0) * norm
    upward *= 1.0 + (m + d + 16.0) * EPS
    if n > LARGEST_MATRIX or not trace > 0.0 or (m <= d and lift < 0.0):
        # Only the terms that curve upwards, each along its own direction.
        return float(upward)
    square, factor = item.matrix[0], item.matrix[1]
    if m <= d:
        gram = item.matrix[2]
        for i in range(m):
            second += abs(term[row, i]) * lift
            for k in range(i + 1):
                square[i, k] = 0.0
        for r in range(m):
            for i in range(r + 1):
                scaled = term[row, r] * gram[r, i]
                for k in range(i + 1):
                    square[i, k] += scaled * gram[r, k]
        for i in range(m):
            for k in range(i):
                square[k, i] = square[i, k]
    else:
        for j in range(d):
            for k in range(j + 1):
                square[j, k] = 0.0
        for i in range(m):
            for j in range(d):
                scaled = term[row, i] * offset[i, j]
                for k in range(j + 1):
                    square[j, k] += scaled * offset[i, k]
        for j in range(d):
            for k in range(j):
                square[k, j] = square[j, k]
    proved = largest_eigenvalue(square, factor, item.vector) + (m + d + EXP_ERROR + 16.0) * EPS * second
    return float(min(upward, proved))
