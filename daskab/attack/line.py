"""What changing one input can do, for every input in turn (method 6): the line search of the n-input attack.

Along one input, the others fixed, f is a one-dimensional mixture of M bumps. With the M factors of the
other inputs at hand, a value of the input costs M multiplications: the bumps at the tried values are
tabulated once for the whole attack.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskab._compile import kernel
from daskab._elementary import exp, exp_each
from daskab.bound.reach import Reach

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

SPACING = 0.125  #: of the tried values, in lengthscales; between them f is nearly a parabola
FEWEST, MOST = 5, 33  #: tried values of an input, its ends included
LARGEST_TABLE = 1 << 23  #: numbers; 64 MB


def grids_of(centres: Array, width: Array, reach: Reach) -> list[Array]:
    """The values at which each input is tried; see `tried_values`."""
    m, d = centres.shape
    most = max(2, min(MOST, LARGEST_TABLE // (m * d)))
    per_input = []
    for j in range(d):
        listed = reach.values[reach.first[j] : reach.first[j + 1]]
        if listed.size:
            per_input.append(listed)
            continue
        wanted = int(min(math.ceil(width[j] / SPACING) + 1, 1e6))
        grid = np.linspace(0.0, width[j], min(most, max(FEWEST, wanted))) if width[j] > 0.0 else np.zeros(1)
        if wanted > most:
            inside = np.unique(np.clip(centres[:, j], 0.0, width[j]))
            pick = np.linspace(0, inside.size - 1, min(inside.size, 2 * most)).astype(np.int64)
            grid = np.unique(np.concatenate((grid, inside[pick])))
        per_input.append(grid)
    return per_input


def tried_values(centres: Array, width: Array, reach: Reach) -> tuple[Indices, Array, Array]:
    """Values at which each input is tried, and every centre's bump there.

    An even grid with both ends; where an input is too wide for one, the centres' own values as well, for
    no peak is far from all of them. The joint ascent moves the chosen values off the grid. Listed values are tried,
    and no others, where an input has them.

    Parameters
    ----------
    centres, width, reach : the scaled model, (M, D), (D,)

    Returns
    -------
    first : (D + 1,)
        Input j owns entries ``first[j]:first[j + 1]`` of the other two.
    values : (V,)
    bumps : (V, M)
        exp(-(value - centre)^2 / 2).
    """
    m, d = centres.shape
    per_input = grids_of(centres, width, reach)
    first = np.concatenate(([0], np.cumsum([g.size for g in per_input]))).astype(np.int64)
    values = np.concatenate(per_input)
    bumps = np.empty((values.size, m))
    for j in range(d):
        own = slice(first[j], first[j + 1])
        bumps[own] = exp_each(-0.5 * (values[own, None] - centres[None, :, j]) ** 2)
    return first, values, bumps


@kernel
def rate_inputs(
    x: Array,
    x_prime: Array,
    centres: Array,
    amplitudes: Array,
    first: Indices,
    values: Array,
    bumps: Array,
    low: float,
    high: float,
    work: Array,
    worth: Array,
    choice: Array,
) -> None:
    """For every input: how much the shortfall of the pair (see `ascent`) gains by its having two values.

    Parameters
    ----------
    x, x_prime : (D,) the pair, scaled
    centres, amplitudes : the scaled model, (M, D), (M,)
    first, values, bumps : from `tried_values`
    low, high : the levels aimed at, less c0
    work : (4, M) work space
    worth : (D,), overwritten
        Least shortfall with one value of the input in both points, less the least with two; not negative.
    choice : (3, D), overwritten
        The value for x and the one for x' where there are two, and the one shared.

    Notes
    -----
    With two values the shortfall is least where f(x) is least and f(x') greatest: each is found alone.
    """
    m, d = centres.shape
    t, tp, rest, rest_p = work[0], work[1], work[2], work[3]
    f = 0.0
    fp = 0.0
    for i in range(m):
        t[i] = 0.0
        tp[i] = 0.0
        for j in range(d):
            t[i] += 0.5 * (x[j] - centres[i, j]) ** 2
            tp[i] += 0.5 * (x_prime[j] - centres[i, j]) ** 2
        f += amplitudes[i] * exp(-t[i])
        fp += amplitudes[i] * exp(-tp[i])
    for j in range(d):
        a = x[j]
        b = x_prime[j]
        crossed = 0.0  # f(x) with the input at b
        crossed_p = 0.0  # f(x') with the input at a
        for i in range(m):
            # The exponent, not the factor, is taken apart: the factor alone may have underflowed.
            ta = 0.5 * (a - centres[i, j]) ** 2
            tb = 0.5 * (b - centres[i, j]) ** 2
            rest[i] = amplitudes[i] * exp(min(0.0, ta - t[i]))
            rest_p[i] = amplitudes[i] * exp(min(0.0, tb - tp[i]))
            if a != b:
                crossed += rest[i] * exp(-tb)
                crossed_p += rest_p[i] * exp(-ta)
        if a == b:
            crossed = f
            crossed_p = fp
        least, most = f, fp
        choice[0, j], choice[1, j] = a, b
        if crossed < least:
            least = crossed
            choice[0, j] = b
        if crossed_p > most:
            most = crossed_p
            choice[1, j] = a
        shared = max(0.0, f - low) ** 2 + max(0.0, high - crossed_p) ** 2
        choice[2, j] = a
        other = max(0.0, crossed - low) ** 2 + max(0.0, high - fp) ** 2
        if other < shared:
            shared = other
            choice[2, j] = b
        for k in range(first[j], first[j + 1]):
            g = 0.0
            gp = 0.0
            for i in range(m):
                g += rest[i] * bumps[k, i]
                gp += rest_p[i] * bumps[k, i]
            if g < least:
                least = g
                choice[0, j] = values[k]
            if gp > most:
                most = gp
                choice[1, j] = values[k]
            other = max(0.0, g - low) ** 2 + max(0.0, high - gp) ** 2
            if other < shared:
                shared = other
                choice[2, j] = values[k]
        worth[j] = shared - (max(0.0, least - low) ** 2 + max(0.0, high - most) ** 2)
