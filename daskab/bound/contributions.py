"""Largest increase of each term along a slice of one input: the four constraints (METHOD 2).

Everything here is for a path in the positive direction. The negative direction is the same path walked
backwards with every amplitude negated, and is stored as that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel
from daskab._elementary import exp
from daskab.bound.rounding import EPS, TINY

Array = NDArray[np.float64]

INSIDE, TO_UPPER, FROM_LOWER, ACROSS = range(4)
CONSTRAINTS = ("inside", "to_upper", "from_lower", "across")
DIRECTIONS = (1, -1)


def slice_edges(width: float, slices: int) -> Array:
    """Edges (slices + 1,) of equal slices of [0, width]; the last is exactly ``width``."""
    edges = width * (np.arange(slices + 1) / slices)
    edges[-1] = width
    return edges


@inner_kernel
def bump(t: float, centre: float) -> float:
    """exp(-(t - centre)^2 / 2)."""
    return exp(-0.5 * (t - centre) * (t - centre))


@inner_kernel
def largest(amplitude: float, centre: float, lower: float, upper: float) -> float:
    """Largest amplitude * bump over [lower, upper]; the peak's own value where it lies inside."""
    if amplitude >= 0.0:
        return amplitude * bump(min(max(centre, lower), upper), centre)
    return amplitude * min(bump(lower, centre), bump(upper, centre))


@inner_kernel
def inside_increase(amplitude: float, centre: float, lower: float, upper: float) -> float:
    """Largest increase from t to t' >= t inside [lower, upper]: up to the peak, or away from the trough."""
    turn = bump(min(max(centre, lower), upper), centre)
    if amplitude >= 0.0:
        return amplitude * (turn - bump(lower, centre))
    return amplitude * (bump(upper, centre) - turn)


@inner_kernel
def weight_error(amplitude: float, centre: float, width: float) -> float:
    """What is added to one computed increase so that it is never below the true one (METHOD, Lemma 3)."""
    return abs(amplitude) * EPS * (16.0 + 2.0 * (width + abs(centre))) + TINY


@inner_kernel
def fill_contributions(centre: Array, amplitudes: Array, direction: int, edges: Array, out: Array) -> None:
    """Contributions of every slice, constraint and centre, each rounded up.

    Parameters
    ----------
    centre : (M,) coordinates of the centres along the input
    amplitudes : (M,)
    direction : +1 or -1
    edges : (s + 1,)
    out : (s, 4, M), overwritten
    """
    width = edges[edges.size - 1]
    for i in range(centre.size):
        a = direction * amplitudes[i]
        c = centre[i]
        error = weight_error(a, c, width)
        for k in range(edges.size - 1):
            lower = edges[k]
            upper = edges[k + 1]
            g_lower = a * bump(lower, c)
            g_upper = a * bump(upper, c)
            out[k, INSIDE, i] = inside_increase(a, c, lower, upper) + error
            out[k, TO_UPPER, i] = g_upper + largest(-a, c, lower, upper) + error
            out[k, FROM_LOWER, i] = largest(a, c, lower, upper) - g_lower + error
            out[k, ACROSS, i] = g_upper - g_lower + error


def input_table(centre: Array, amplitudes: Array, width: float, slices: int) -> Array:
    """Contributions (direction, slice, constraint, centre) of one input cut into equal slices.

    Parameters
    ----------
    centre : (M,) coordinates of the centres along the input
    amplitudes : (M,)
    width : of the input's range
    slices : how many
    """
    along, edges = np.ascontiguousarray(centre), slice_edges(width, slices)
    return np.stack([contributions(along, amplitudes, sign, edges) for sign in DIRECTIONS])


def contributions(centre: Array, amplitudes: Array, direction: int, edges: Array) -> Array:
    """Contributions (slice, constraint, centre) of one input and direction; see `fill_contributions`."""
    out = np.empty((edges.size - 1, len(CONSTRAINTS), centre.size))
    fill_contributions(centre, amplitudes, direction, edges, out)
    return out
