"""The paper's transverse bound in a sound form: merge, project, evaluate on a grid, divide (METHOD 3.5).

Bounds T(w) = max over the box [0, width] of sum_i w_i exp(-|z - c_i|^2 / 2). Negative weights are merged into
positive ones, pair by pair; the non-negative mixture left is projected on a few directions and evaluated on
a grid over its centres; the largest value is divided by what it can fall short of the maximum between lines.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab.bound.rounding import EPS, EXP_ERROR, TINY, exp_down, exp_up

Array = NDArray[np.float64]

MOST_LINES = 1024
"""Most grid lines along one direction, whatever the number of points allowed: it bounds the memory."""

COARSER = 1.05
"""Factor the spacing grows by until the grid is small enough."""

NEGLIGIBLE = 1e-14
"""A weight this small beside the largest is counted whole, wherever it stands, so it cannot stretch the grid."""

ITERATIONS = 10
"""Rounds of orthogonal iteration. Any directions are sound; better ones are only tighter."""

HALVINGS = 32
LOWEST, HIGHEST = -40.0, 27.0
"""Range searched for the logarithm of how far a merged centre moves; beyond it rounding would eat the gain."""

# Rows of `axis`: lowest and highest projected centre, and the number of grid lines.
LOW, HIGH, COUNT = range(3)


class GridWork(NamedTuple):
    """Work arrays for M centres, D' inputs, k directions and n grid lines along each."""

    weights: Array  #: (M,) of the mixture as it is rewritten
    centres: Array  #: (M, D')
    mean: Array  #: (D',)
    directions: Array  #: (2, k, D') orthonormal rows, and their next iterate
    heights: Array  #: (M,) weights with the error of the projection added
    along: Array  #: (k, M) projected centres
    axis: Array  #: (3, k)
    lines: Array  #: (n,) positions of grid lines along one direction
    table: Array  #: (k, M, n) one factor of every kernel at every line
    sums: Array  #: (n,) the mixture along one row of the grid


@kernel
def grid_work(m: int, d: int, components: int, most_points: int) -> GridWork:
    """Allocate work arrays for `grid_bound`.

    Parameters
    ----------
    m, d : number of centres M and of inputs that do not change D'
    components : most directions k to project on, at least 1
    most_points : most grid points
    """
    k = max(components, 1)
    n = max(min(most_points, MOST_LINES), 2)
    return GridWork(
        np.empty(m),
        np.empty((m, d)),
        np.empty(d),
        np.empty((2, k, d)),
        np.empty(m),
        np.empty((k, m)),
        np.empty((3, k)),
        np.empty(n),
        np.empty((k, m, n)),
        np.empty(n),
    )


@kernel
def grown(value: float, exponent: float) -> float:
    """Never below value * exp(exponent), for value >= 0."""
    return value * (math.exp(exponent) * (1.0 + 2.0 * EXP_ERROR * EPS) + TINY)


@kernel
def shift(ratio: float, tau: float) -> float:
    """How far the peak of a pair lies behind the positive centre, in units of the pair's distance.

    The root of log(ratio) - log(1 + 1/rho) + tau (1 + 2 rho) = 0, which makes the merged weight smallest.
    Any positive value is sound, so bisection in log(rho) need not be exact.
    """
    low = LOWEST
    high = HIGHEST
    g = math.log(ratio)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if g - math.log1p(math.exp(-middle)) + tau * (1.0 + 2.0 * math.exp(middle)) < 0.0:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))


@kernel
def merged_exponent(ratio: float, tau: float, rho: float) -> float:
    """Logarithm, rounded up, of merged over positive weight for a peak at ``rho`` (METHOD, Lemma 10).

    Parameters
    ----------
    ratio : positive over negative weight
    tau : half the squared distance of the two centres, rounded up
    rho : any positive number
    """
    g = math.log(ratio)
    back = math.log1p(1.0 / rho)
    shrink = math.log1p(rho)
    apart = tau * (rho * (1.0 + rho))
    error = 16.0 * EPS * (rho * (1.0 + abs(g) + back) + shrink + apart)
    return rho * (g - back) - shrink + apart + error


@kernel
def merge_negatives(weights: Array, centres: Array, width: Array) -> None:
    """Merge every negative weight into the nearest positive one; on return no weight is negative.

    Pairs are taken in the paper's order: negative weights as they come, each with the positive centre, itself
    possibly merged before, that is nearest. Works in place; a weight of zero marks a centre that is gone.
    """
    m, d = centres.shape
    reach = 0.0
    for j in range(d):
        reach += width[j] * width[j]
    reach = math.sqrt(reach)
    for i in range(m):
        while weights[i] < 0.0:
            nearest = -1
            least = np.inf
            for k in range(m):
                if weights[k] > 0.0:
                    square = 0.0
                    for j in range(d):
                        apart = centres[k, j] - centres[i, j]
                        square += apart * apart
                    if square < least:
                        least = square
                        nearest = k
            if nearest < 0:
                weights[i] = 0.0  # no positive weight is left: dropping a negative one only raises the sum
                break
            a = weights[nearest]
            b = -weights[i]
            same = True
            for j in range(d):
                same = same and centres[nearest, j] == centres[i, j]
            if same:
                # One kernel: weights add up, and what is left of the negative one may be merged elsewhere.
                weights[nearest] = (a - b) * (1.0 + 2.0 * EPS) if a > b else 0.0
                weights[i] = (a - b) * (1.0 - 2.0 * EPS) if a < b else 0.0
                continue
            weights[i] = 0.0
            ratio = a / b
            if not (1e-300 < ratio < 1e300):
                continue
            tau = 0.5 * least * (1.0 + (d + 4.0) * EPS) + TINY
            rho = shift(ratio, tau)
            size = 0.0
            for j in range(d):
                moved = centres[nearest, j] + rho * (centres[nearest, j] - centres[i, j])
                size += moved * moved
            size = math.sqrt(size)
            exponent = merged_exponent(ratio, tau, rho)
            # The rounded centre stands beside the exact one: see (iii) of the rounding argument.
            exponent += 4.0 * EPS * (reach + size) * (size + rho * math.sqrt(2.0 * tau))
            if exponent < 0.0:
                weights[nearest] = grown(a, exponent)
                for j in range(d):
                    centres[nearest, j] += rho * (centres[nearest, j] - centres[i, j])


@kernel
def nearest_in_box(centre: Array, width: Array) -> float:
    """Half the squared distance of a centre from the box, rounded down."""
    total = 0.0
    for j in range(width.size):
        outside = max(max(-centre[j], centre[j] - width[j]), 0.0)
        total += outside * outside
    return 0.5 * total * (1.0 - (width.size + 8.0) * EPS)


@kernel
def farthest_in_box(centre: Array, width: Array) -> float:
    """Distance of a centre from the farthest point of the box, rounded up."""
    total = 0.0
    for j in range(width.size):
        farthest = max(abs(centre[j]), abs(width[j] - centre[j]))
        total += farthest * farthest
    return math.sqrt(total) * (1.0 + (width.size + 8.0) * EPS)


@kernel
def keep_heavy(weights: Array, centres: Array, width: Array, n: int) -> tuple[int, float]:
    """Move the weights that matter to the front; return their number and a bound on the rest's sum."""
    largest = 0.0
    for i in range(n):
        largest = max(largest, weights[i])
    kept = 0
    rest = 0.0
    for i in range(n):
        if weights[i] > NEGLIGIBLE * largest:
            weights[kept] = weights[i]
            for j in range(width.size):
                centres[kept, j] = centres[i, j]
            kept += 1
        elif weights[i] > 0.0:
            rest += weights[i] * exp_up(nearest_in_box(centres[i], width))
    return kept, rest * (1.0 + (n + 8.0) * EPS)


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
def project(work: GridWork, n: int, rank: int, width: Array) -> None:
    """Fill ``along`` and ``heights``: a mixture over R^rank that lies above the given one on the box."""
    d = width.size
    rows = work.directions[0, :rank]
    middle = farthest_in_box(work.mean, width)
    for i in range(n):
        for a in range(rank):
            total = 0.0
            for j in range(d):
                total += rows[a, j] * (work.centres[i, j] - work.mean[j])
            work.along[a, i] = total
        far = farthest_in_box(work.centres[i], width)
        error = math.sqrt(rank) * (d + 4.0) * EPS * (far + middle)
        work.heights[i] = grown(work.weights[i], error * (far + error))


@kernel
def grid_lines(work: GridWork, n: int, rank: int, spacing: float, most_points: int) -> bool:
    """Fill ``axis``: the extent and number of lines of each direction; False where no grid is small enough."""
    most_lines = work.lines.size
    widest = 0.0
    for a in range(rank):
        low = work.along[a, 0]
        high = low
        for i in range(1, n):
            low = min(low, work.along[a, i])
            high = max(high, work.along[a, i])
        work.axis[LOW, a] = low
        work.axis[HIGH, a] = high
        widest = max(widest, high - low)
    if not spacing > widest / most_lines:
        spacing = widest / most_lines  # no finer grid fits; this also ends the search for any spacing given
    while True:
        points = 1.0
        longest = 0.0
        for a in range(rank):
            extent = work.axis[HIGH, a] - work.axis[LOW, a]
            count = math.ceil(extent / spacing) + 1.0 if extent > 0.0 else 1.0
            work.axis[COUNT, a] = count
            points *= count
            longest = max(longest, count)
        if points <= most_points and longest <= most_lines:
            return True
        if not longest > 2.0:
            return False
        spacing *= COARSER


@kernel
def grid_maximum(work: GridWork, n: int, rank: int) -> float:
    """Bound on the projected mixture over all of R^rank, from its values on the grid in ``axis``."""
    short = 0.0  # |e|^2 / 2 for the farthest a point of the hull can lie from the grid
    outer = 1
    for a in range(rank):
        count = int(work.axis[COUNT, a])
        low = work.axis[LOW, a]
        step = (work.axis[HIGH, a] - low) / max(count - 1, 1)
        for g in range(count):
            work.lines[g] = low + step * g
        if count > 1:
            work.lines[count - 1] = work.axis[HIGH, a]
        gap = 0.0  # measured, not assumed: the lines are rounded
        for g in range(count - 1):
            gap = max(gap, abs(work.lines[g + 1] - work.lines[g]))
        short += 0.125 * gap * gap
        for i in range(n):
            for g in range(count):
                away = work.lines[g] - work.along[a, i]
                work.table[a, i, g] = math.exp(-0.5 * away * away)
        if a < rank - 1:
            outer *= count
    last = rank - 1
    count = int(work.axis[COUNT, last])
    highest = 0.0
    for row in range(outer):
        for g in range(count):
            work.sums[g] = 0.0
        for i in range(n):
            factor = work.heights[i]
            code = row
            for a in range(last):
                lines = int(work.axis[COUNT, a])
                factor *= work.table[a, i, code % lines]
                code //= lines
            for g in range(count):
                work.sums[g] += factor * work.table[last, i, g]
        for g in range(count):
            highest = max(highest, work.sums[g])
    total = 0.0
    for i in range(n):
        total += work.heights[i]
    highest += EPS * (n + 9.0 * rank + 8.0) * highest + 2.0 * EPS * total + (rank + 1.0) * TINY * (1.0 + total)
    return grown(highest, short * (1.0 + (rank + 8.0) * EPS)) if short < 600.0 else np.inf


@kernel
def grid_bound(
    weights: Array,
    centres: Array,
    width: Array,
    work: GridWork,
    spacing: float,
    components: int,
    most_points: int,
) -> float:
    """Bound on the positive part of T(w) by the paper's grid (METHOD 3.5).

    Parameters
    ----------
    weights : (M,)
    centres : (M, D') scaled, without the input that changes; D' may be 0
    width : (D',) the box is [0, width]
    work : `grid_work` for D' inputs and at least M centres, ``components`` and ``most_points``
    spacing : float
        Largest distance, in lengthscales, between neighbouring grid lines; it grows where the grid would
        have more than ``most_points`` points or `MOST_LINES` lines along one direction.
    components : int
        Directions to project on, at least 1.
    most_points : int
        Most grid points. Without a grid that small the sum of the merged weights is returned.

    Returns
    -------
    float
        Never below max(T(w), 0). inf where the arithmetic overflows.

    Notes
    -----
    Smith, Grosse, Backes, Alvarez (2023), "Adversarial vulnerability bounds for Gaussian process classification".
    """
    m, d = centres.shape
    if d == 0:
        total = 0.0
        size = 0.0
        for i in range(m):
            total += weights[i]
            size += abs(weights[i])
        if not size < np.inf:
            return np.inf
        return max(total + (weights.size + 4.0) * EPS * size, 0.0)
    w = work.weights
    c = work.centres
    for i in range(m):
        spread = 0.0
        for j in range(d):
            c[i, j] = centres[i, j]
            spread += 0.5 * (width[j] + abs(centres[i, j])) * (width[j] + abs(centres[i, j]))
        # From here on the kernels' centres are exact numbers: Lemma 1's error goes into the weights.
        error = (d + 16.0) * EPS * spread
        w[i] = grown(weights[i], error) if weights[i] >= 0.0 else weights[i] * exp_down(error)
        if not abs(w[i]) < np.inf:
            return np.inf
    merge_negatives(w[:m], c[:m], width)
    n, rest = keep_heavy(w, c, width, m)
    if n == 0:
        return rest
    answer = np.inf
    while True:
        total = 0.0
        outside = False
        for i in range(n):
            near = nearest_in_box(c[i], width)
            outside = outside or near > 0.0
            total += w[i] * exp_up(near)
        answer = min(answer, total * (1.0 + (n + 8.0) * EPS))
        rank = principal_directions(c, n, components, work.mean, work.directions)
        if rank > 0:
            shorten(work.directions[0, :rank])
            project(work, n, rank, width)
            if grid_lines(work, n, rank, spacing, most_points):
                answer = min(answer, grid_maximum(work, n, rank))
        if not outside:
            break
        # Again with the centres moved into the box: |z - c|^2 >= |z - clip(c)|^2 + |c - clip(c)|^2 there.
        for i in range(n):
            w[i] *= exp_up(nearest_in_box(c[i], width))
            for j in range(d):
                c[i, j] = min(max(c[i, j], 0.0), width[j])
    return (answer + rest) * (1.0 + 4.0 * EPS)
