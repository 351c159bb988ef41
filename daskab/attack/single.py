"""One-input attacks: a pair of points that differ in one input and are far apart in latent (method 6).

The change F(z, from, to) = sum_i a_i [bump_i(to) - bump_i(from)] kappa_i(z) is climbed by projected
gradient from the most promising of many starts. Whatever is found is only a candidate: its value is taken
again, rounded down, by `daskab.attack.attained`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel, kernel
from daskab._elementary import exp
from daskab.bound.contributions import bump

Array = NDArray[np.float64]

GRID = 33
MOST_CENTRES = 32
"""Most centres whose own coordinate is tried as a value of the changed input."""

FULL_CLIMBS = 4
SHORT_STEPS = 8
LONG_STEPS = 400


@inner_kernel
def square_distance(point: Array, centre: Array) -> float:
    """|point - centre|^2 over the entries of ``centre``: four sums side by side, which a processor adds at once."""
    a = b = c = e = 0.0
    d = centre.size
    whole = d - d % 4
    for j in range(0, whole, 4):
        s0 = point[j] - centre[j]
        s1 = point[j + 1] - centre[j + 1]
        s2 = point[j + 2] - centre[j + 2]
        s3 = point[j + 3] - centre[j + 3]
        a += s0 * s0
        b += s1 * s1
        c += s2 * s2
        e += s3 * s3
    for j in range(whole, d):
        a += (point[j] - centre[j]) * (point[j] - centre[j])
    return (a + b) + (c + e)


@inner_kernel
def change(point: Array, centres: Array, amplitudes: Array, changed: int, gradient: Array) -> float:
    """F and its gradient at ``point``: (D + 1,), the last entry being the value the input moves to."""
    m, d = centres.shape
    low = float(point[changed])
    high = float(point[d])
    total = 0.0
    pull = 0.0
    for j in range(d + 1):
        gradient[j] = 0.0
    d_low = 0.0
    d_high = 0.0
    for i in range(m):
        c = centres[i, changed]
        t = square_distance(point, centres[i]) - (low - c) * (low - c)
        a = amplitudes[i] * exp(-0.5 * max(t, 0.0))
        up = a * bump(high, c)
        down = a * bump(low, c)
        v = up - down
        total += v
        pull += v
        d_high += up * (c - high)
        d_low -= down * (c - low)
        for j in range(d):
            gradient[j] += v * centres[i, j]
    for j in range(d):
        gradient[j] -= pull * point[j]
    gradient[changed] = d_low
    gradient[d] = d_high
    return total


@inner_kernel
def climb(
    point: Array, centres: Array, amplitudes: Array, width: Array, changed: int, steps: int, work: Array
) -> float:
    """Projected gradient ascent with Barzilai-Borwein steps; ``point`` (D + 1,) moves, F is returned.

    ``work`` is (3, D + 1) work space. The value never falls: a step that lowers it is cut back.
    """
    n = point.size
    d = n - 1
    gradient, trial, other = work[0], work[1], work[2]
    value = change(point, centres, amplitudes, changed, gradient)
    norm = 0.0
    for j in range(n):
        norm = max(norm, abs(gradient[j]))
    step = 1.0 / norm if norm > 0.0 else 0.0
    for _ in range(steps):
        if not step > 0.0:
            break
        moved = 0.0
        rise = 0.0
        for j in range(n):
            edge = width[changed] if j == d else width[j]
            trial[j] = min(max(point[j] + step * gradient[j], 0.0), edge)
            moved = max(moved, abs(trial[j] - point[j]))
            rise += gradient[j] * (trial[j] - point[j])
        if moved == 0.0:
            break
        found = change(trial, centres, amplitudes, changed, other)
        if not found >= value + 1e-4 * rise:
            step *= 0.2
            if step * norm < 1e-15:
                break
            continue
        ss = 0.0
        sy = 0.0
        norm = 0.0
        for j in range(n):
            s = trial[j] - point[j]
            ss += s * s
            sy += s * (gradient[j] - other[j])
            point[j] = trial[j]
            gradient[j] = other[j]
            norm = max(norm, abs(other[j]))
        # Where the function is convex along the step it will go on rising: lengthen instead.
        step = ss / sy if sy > 0.0 else 4.0 * step
        if found - value <= 1e-10 * abs(found):
            value = found
            break
        value = found
    return value


@inner_kernel
def best_values(
    z: Array, centres: Array, amplitudes: Array, width: Array, changed: int, table: Array, scale: Array
) -> tuple[float, float, float]:
    """Best (from, to) on the grid and at the centres, for the other inputs at ``z``; and F there.

    ``table`` is (K, M): bumps at the K tried values, made by `fill_table`; ``scale`` is (M,) work space.
    """
    m = centres.shape[0]
    for i in range(m):
        c = centres[i, changed]
        t = square_distance(z, centres[i]) - (z[changed] - c) * (z[changed] - c)
        scale[i] = amplitudes[i] * exp(-0.5 * max(t, 0.0))
    least = np.inf
    most = -np.inf
    at_least = 0
    at_most = 0
    for g in range(table.shape[0]):
        h = 0.0
        for i in range(m):
            h += scale[i] * table[g, i]
        if h < least:
            least = h
            at_least = g
        if h > most:
            most = h
            at_most = g
    return (
        tried_value(at_least, centres, width, changed),
        tried_value(at_most, centres, width, changed),
        most - least,
    )


@inner_kernel
def tried_value(g: int, centres: Array, width: Array, changed: int) -> float:
    """The g-th value of the changed input that is tried: an even grid, then centres, clipped to the box."""
    if g < GRID:
        return float(width[changed] * g / (GRID - 1))
    m = centres.shape[0]
    return float(min(max(centres[(g - GRID) * m // min(m, MOST_CENTRES), changed], 0.0), width[changed]))


@inner_kernel
def fill_table(centres: Array, width: Array, changed: int, table: Array) -> None:
    """Bumps (K, M) at the tried values of the changed input."""
    for g in range(table.shape[0]):
        t = tried_value(g, centres, width, changed)
        for i in range(table.shape[1]):
            table[g, i] = bump(t, centres[i, changed])


@kernel
def attack_input(centres: Array, amplitudes: Array, width: Array, changed: int, starts: Array, best: Array) -> float:
    """Best one-input change found from many starts.

    Parameters
    ----------
    centres, amplitudes, width : the scaled model, (M, D), (M,), (D,)
    changed : index of the input
    starts : (K, D) points of the box to start from
    best : (D + 1,), overwritten
        The point found: the other inputs, the value the input moves from, and the value it moves to (last).

    Returns
    -------
    float
        F at ``best``.
    """
    m, d = centres.shape
    k = starts.shape[0]
    table = np.empty((GRID + min(m, MOST_CENTRES), m))
    fill_table(centres, width, changed, table)
    scale = np.empty(m)
    work = np.empty((3, d + 1))
    points = np.empty((k, d + 1))
    values = np.empty(k)
    for s in range(k):
        for j in range(d):
            points[s, j] = starts[s, j]
        low, high, _ = best_values(points[s], centres, amplitudes, width, changed, table, scale)
        points[s, changed] = low
        points[s, d] = high
        values[s] = climb(points[s], centres, amplitudes, width, changed, SHORT_STEPS, work)
    answer = -np.inf
    for _ in range(min(FULL_CLIMBS, k)):
        s = int(np.argmax(values))
        values[s] = -np.inf
        value = -np.inf
        for _again in range(3):
            low, high, gain = best_values(points[s], centres, amplitudes, width, changed, table, scale)
            if gain > value:
                points[s, changed] = low
                points[s, d] = high
            found = climb(points[s], centres, amplitudes, width, changed, LONG_STEPS, work)
            if found <= value * (1.0 + 1e-12):
                break
            value = found
        if value > answer:
            answer = value
            best[:] = points[s]
    return answer


def start_points(centres: Array, amplitudes: Array, width: Array, count: int, seed: int) -> Array:
    """Points (K, D) to climb from: the middle, the weighted means, the heaviest centres, random corners and points.

    Parameters
    ----------
    centres, amplitudes, width : the scaled model
    count : about how many of the last three kinds together
    seed : of the random ones
    """
    rng = np.random.default_rng(seed)
    d = width.size
    points = [0.5 * width]
    for sign in (1.0, -1.0):
        share = np.maximum(sign * amplitudes, 0.0)
        if share.sum() > 0.0:
            # No matrix product: what BLAS makes of one depends on its number of threads.
            points.append((share[:, None] * centres).sum(axis=0) / share.sum())
    heaviest = np.argsort(-np.abs(amplitudes), kind="stable")[: max(count // 2, 2)]
    points.extend(centres[heaviest])
    points.extend(width * rng.integers(0, 2, size=d) for _ in range(count // 4))
    points.extend(width * rng.random(d) for _ in range(count // 4))
    return np.ascontiguousarray(np.clip(np.asarray(points), 0.0, width))
