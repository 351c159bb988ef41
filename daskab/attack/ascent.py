"""Joint ascent of a pair of points that differ in a given set of inputs (method 6).

The pair is (x, x'), x to be at or below one level of the latent and x' at or above another. Inputs that are
not in the set are shared; each input of the set has two values. What is made small is the *shortfall*

    max(0, high - f(x'))^2 + max(0, f(x) - low)^2,

zero exactly when both are reached, so that no change is spent on going beyond a threshold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab._elementary import exp

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

WORK_ROWS = 8  #: rows of D numbers that `ascend_pair` works in
PATIENCE = 10  #: steps without progress before it stops
CUTS = 25  #: times a step is shortened before it is given up


@kernel
def value_gradient(x: Array, centres: Array, amplitudes: Array, gradient: Array) -> float:
    """f(x) - c0 in scaled coordinates; ``gradient`` (D,) is overwritten with that of f.

    Parameters
    ----------
    x : (D,)
    centres, amplitudes : (M, D), (M,)
    """
    m, d = centres.shape
    for j in range(d):
        gradient[j] = 0.0
    total = 0.0
    fours = d - d % 4
    for i in range(m):
        # Four sums: one alone would wait for each addition to end before the next begins.
        t0 = t1 = t2 = t3 = 0.0
        for j in range(0, fours, 4):
            e0 = x[j] - centres[i, j]
            e1 = x[j + 1] - centres[i, j + 1]
            e2 = x[j + 2] - centres[i, j + 2]
            e3 = x[j + 3] - centres[i, j + 3]
            t0 += e0 * e0
            t1 += e1 * e1
            t2 += e2 * e2
            t3 += e3 * e3
        for j in range(fours, d):
            e0 = x[j] - centres[i, j]
            t0 += e0 * e0
        term = amplitudes[i] * exp(-0.5 * ((t0 + t1) + (t2 + t3)))
        total += term
        for j in range(d):
            gradient[j] += term * centres[i, j]
    for j in range(d):
        gradient[j] -= total * x[j]
    return total


@kernel
def ascend_pair(
    x: Array,
    x_prime: Array,
    moved: Flags,
    centres: Array,
    amplitudes: Array,
    width: Array,
    low: float,
    high: float,
    margin: float,
    steps: int,
    work: Array,
    recent: Array,
) -> tuple[float, int, bool]:
    """Spectral projected gradient on the shortfall; the pair is overwritten with the best one met.

    Parameters
    ----------
    x, x_prime : (D,), equal where ``moved`` is false
    moved : (D,) the inputs whose two values are free of each other
    centres, amplitudes, width : the scaled model, (M, D), (M,), (D,)
    low, high : the levels that count as reached, less c0
    margin : how far beyond them the shortfall aims; positive, so that its slope is not zero at the levels
    steps : most steps taken
    work : (WORK_ROWS, D) work space
    recent : (K,) work space; a step may be worse than the last one, but not than the last K

    Returns
    -------
    shortfall : float
        With the margin, at the pair returned.
    taken : int
        Steps.
    reached : bool
        Whether f(x) <= low and f(x') >= high there; the ascent stops as soon as they are.

    Notes
    -----
    Birgin, Martinez, Raydan (2000), "Nonmonotone spectral projected gradient methods on convex sets".
    """
    d = x.size
    # Row by row: unpacking all at once, and assigning slices, take numba seconds to compile.
    gx = work[0]
    gp = work[1]
    dx = work[2]
    dp = work[3]
    ox = work[4]
    op = work[5]
    bx = work[6]
    bp = work[7]
    f = value_gradient(x, centres, amplitudes, gx)
    fp = value_gradient(x_prime, centres, amplitudes, gp)
    above = max(0.0, f - low + margin)
    below = max(0.0, high + margin - fp)
    shortfall = above * above + below * below
    reached = f <= low and fp >= high
    best = shortfall
    for j in range(d):
        bx[j] = x[j]
        bp[j] = x_prime[j]
    for k in range(recent.size):
        recent[k] = shortfall
    step = -1.0
    stalled = 0
    taken = 0
    while taken < steps and not reached and stalled <= PATIENCE:
        # Half the descent direction of the shortfall; shared inputs have one entry, written twice.
        steepest = 0.0
        for j in range(d):
            ox[j] = -above * gx[j]
            op[j] = below * gp[j]
            if not moved[j]:
                ox[j] += op[j]
                op[j] = ox[j]
            steepest = max(steepest, abs(ox[j]), abs(op[j]))
        if steepest == 0.0:
            break
        if step <= 0.0:
            step = 0.3 / steepest  # a third of a lengthscale
        slope = 0.0
        for j in range(d):
            dx[j] = min(width[j], max(0.0, x[j] + step * ox[j])) - x[j]
            slope += dx[j] * ox[j]
            dp[j] = dx[j]
            if moved[j]:
                dp[j] = min(width[j], max(0.0, x_prime[j] + step * op[j])) - x_prime[j]
                slope += dp[j] * op[j]
        if slope <= 1e-14 * best:
            break
        allowed = shortfall
        for k in range(recent.size):
            allowed = max(allowed, recent[k])
        share = 1.0
        before = 0.0
        accepted = False
        for _ in range(CUTS):
            for j in range(d):
                x[j] = min(width[j], max(0.0, x[j] + (share - before) * dx[j]))
                if moved[j]:
                    x_prime[j] = min(width[j], max(0.0, x_prime[j] + (share - before) * dp[j]))
                else:
                    x_prime[j] = x[j]
            f = value_gradient(x, centres, amplitudes, gx)
            fp = value_gradient(x_prime, centres, amplitudes, gp)
            above = max(0.0, f - low + margin)
            below = max(0.0, high + margin - fp)
            found = above * above + below * below
            if found <= allowed - 2e-4 * share * slope:
                accepted = True
                break
            # Lowest point of the parabola through what is known, kept within reason.
            before = share
            bend = found - shortfall + 2.0 * share * slope
            lowest = slope * before * before / bend if bend > 0.0 else 0.0
            share = min(0.5 * before, max(0.1 * before, lowest))
        if not accepted:
            break
        taken += 1
        ss = 0.0
        sy = 0.0
        for j in range(d):
            s = share * dx[j]
            ss += s * s
            if moved[j]:
                sy += s * (ox[j] + above * gx[j])
                s = share * dp[j]
                ss += s * s
                sy += s * (op[j] - below * gp[j])
            else:
                sy += s * (ox[j] + above * gx[j] - below * gp[j])
        # Where the shortfall curves down along the step it will go on falling: lengthen instead.
        step = min(ss / sy, 1e6 / steepest) if sy > 0.0 else 4.0 * step
        stalled = stalled + 1 if best - found <= 1e-5 * best else 0
        shortfall = found
        recent[taken % recent.size] = found
        reached = f <= low and fp >= high
        if reached or found < best:
            best = found
            for j in range(d):
                bx[j] = x[j]
                bp[j] = x_prime[j]
    for j in range(d):
        x[j] = bx[j]
        x_prime[j] = bp[j]
    return best, taken, reached
