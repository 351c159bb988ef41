"""exp, log and log1p with the same bits on every machine.

What libm and NumPy do depends on the processor they find, and differs in the last bit. Here every operation is one
that IEEE 754 rounds in one way only, so a certificate is the same to the byte wherever its parts were computed.
METHOD.md of `bound`, Lemma 8, has the errors.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel

Array = NDArray[np.float64]

LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # 32 bits, so that multiples of it are exact
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
PARTS = 128
"""Parts an octave is cut into; the power of 2 at each is in a table."""

PARTS_A_UNIT = PARTS * 1.4426950408889634
PART_HIGH = LN2_HIGH / PARTS
PART_LOW = LN2_LOW / PARTS
ROUNDER = 1.5 * 2.0**52  # added and taken off again, it leaves the nearest integer
SIXTH = 1.0 / 6.0

MOST = 709.782712893384  # the largest number whose exp is finite
LEAST = -745.2  # where exp is closer to 0 than to any other number


def _powers() -> Array:
    """2^(j / PARTS), each the nearest number there is."""
    exact = Context(prec=40)
    return np.array([float(exact.power(Decimal(2), Decimal(j) / PARTS)) for j in range(PARTS)])


POWERS = _powers()


@inner_kernel
def exp(x: float) -> float:
    """e to the x: infinity, not an error, where that is too large; NaN of NaN."""
    if not x <= MOST:
        return x if x != x else math.inf
    if x < LEAST:
        return 0.0
    part = (x * PARTS_A_UNIT + ROUNDER) - ROUNDER
    r = (x - part * PART_HIGH) - part * PART_LOW
    r2 = r * r
    n = int(part)
    power = float(POWERS[n & (PARTS - 1)])
    value = power + power * (r + r2 * ((0.5 + r * SIXTH) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0))))
    n >>= 7
    if -1021 <= n <= 1023:
        return value * two_to(n)
    half = n >> 1
    return value * two_to(half) * two_to(n - half)


@inner_kernel
def two_to(n: int) -> float:
    """2^n for -1022 <= n <= 1023, from the bits of its exponent."""
    bits = np.int64((n + 1023) << 52)
    return bits.view(np.float64)


@inner_kernel
def log(x: float) -> float:
    """Natural logarithm: minus infinity of 0, NaN of what is negative or NaN."""
    if not 0.0 < x < math.inf:
        return x if x == math.inf else (-math.inf if x == 0.0 else math.nan)
    m, n = math.frexp(x)
    if m < 0.7071067811865476:
        m *= 2.0
        n -= 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    rest = 0.0
    for k in range(21, 1, -2):  # log m = 2 (s + s^3/3 + s^5/5 + ...)
        rest = z * (1.0 / k + rest)
    return n * LN2_HIGH + (2.0 * (s + s * rest) + n * LN2_LOW)


@inner_kernel
def log1p(x: float) -> float:
    """log(1 + x) for x >= 0, as exact for the smallest x as for any other."""
    y = 1.0 + x
    if y == math.inf:
        return y
    return log(y) + (x - (y - 1.0)) / y


@inner_kernel
def _fill_exp(values: Array, out: Array) -> None:
    for i in range(values.size):
        out[i] = exp(values[i])


def exp_each(values: Array) -> Array:
    """`exp` of every element, in the shape they are given in."""
    flat = np.ravel(values)
    out = np.empty_like(flat)
    _fill_exp(flat, out)
    return out.reshape(np.shape(values))
