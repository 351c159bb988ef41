"""What one change of several inputs can do at most: a group, or a category from one state to another (METHOD J8)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from daskab.bound.scaled import Scaled
from daskab.joint.attacks import Attacks
from daskab.joint.sets.candidates import MOST_MOVED
from daskab.joint.sets.nodes import cells_at
from daskab.joint.sets.search import root_nodes, search_sets
from daskab.model.domain import Group

Array = NDArray[np.float64]

STEPS = 24
"""Levels tried above the first, at most, each step twice as long as the last."""

HALVINGS = 4
"""Of the last step, back towards what was not proved."""

ALLOWANCE = 5000
"""Nodes for one level of one root."""


def parts_of(inputs: tuple[int, ...]) -> list[tuple[int, ...]]:
    """A group in parts of as many inputs as can be searched together, of about the same size."""
    if not inputs:
        return []
    count = math.ceil(len(inputs) / MOST_MOVED)
    return [tuple(int(j) for j in part) for part in np.array_split(np.array(inputs), count)]


def bound_group(
    scaled: Scaled, inputs: tuple[int, ...], attained: float, most: float, rtol: float, budget: int
) -> tuple[float, int]:
    """Bound what changing these inputs at once can do.

    Parameters
    ----------
    scaled : the model
    inputs : at most `MOST_MOVED`
    attained : by some such change: nothing is gained below it
    most : a bound that is proved already
    rtol : how far above what is attained is near enough
    budget : most nodes examined

    Returns
    -------
    bound : float
    used : int
        Nodes examined.
    """
    return _least_level(_free(scaled, inputs), attained, most, rtol, budget)


def bound_category(
    scaled: Scaled, group: Group, attained: float, most: float, rtol: float, budget: int
) -> tuple[float, int]:
    """Bound what going from any state of a category to any other can do; as `bound_group`."""
    return _least_level(_from_state_to_state(scaled, group), attained, most, rtol, budget)


Root = tuple[Scaled, NDArray[np.int64], Array | None]
"""A model, the inputs that move (n,), and the ends they move between (2, n), if those are given."""


def _free(scaled: Scaled, inputs: tuple[int, ...]) -> Iterator[Root]:
    yield scaled, np.array(inputs), None


def _from_state_to_state(scaled: Scaled, group: Group) -> Iterator[Root]:
    """Every two states: the columns in which they differ move, the others of the category are at their lower edges."""
    states = [(j,) for j in group.inputs] + ([()] if group.kind == "at most one" else [])
    for before in states:
        for after in states:
            if before == after:
                continue
            moved = np.array(sorted({*before, *after}))
            width = scaled.width.copy()
            width[[j for j in group.inputs if j not in moved]] = 0.0
            ends = np.stack([np.where(np.isin(moved, on), width[moved], 0.0) for on in (before, after)])
            yield replace(scaled, width=width), moved, ends


def _least_level(roots: Iterator[Root], attained: float, most: float, rtol: float, budget: int) -> tuple[float, int]:
    """The least level found that is proved of all roots."""
    level = attained * (1.0 + rtol)
    if not level < most:
        return most, 0
    used = 0
    for root in roots:
        last = level
        proved, n = _proved(root, level, budget - used)
        used += n
        step = max(rtol * level, 1e-3 * most)
        for _ in range(STEPS):
            if proved or level >= most:
                break
            last, level, step = level, min(level + step, most), 2.0 * step
            proved, n = (True, 0) if level >= most else _proved(root, level, budget - used)
            used += n
        if not (proved or level >= most):
            return most, used  # among subnormal numbers a step may be 0, and leads nowhere
        for _ in range(HALVINGS if last < level else 0):
            middle = 0.5 * (last + level)
            proved, n = _proved(root, middle, budget - used)
            used += n
            last, level = (last, middle) if proved else (middle, level)
    return min(level, most), used


def _proved(root: Root, level: float, budget: int) -> tuple[bool, int]:
    """Whether no move of a root changes the latent by the level or more, and the nodes that took."""
    scaled, inputs, ends = root
    allowance = min(ALLOWANCE, budget)
    if allowance < 2 or not level > 0.0:
        return False, 0
    attacks = Attacks.of_change(scaled, level, inputs.size)
    nodes = root_nodes(inputs[None], attacks)
    if ends is not None:
        at = cells_at(inputs.size)
        nodes[:, at : at + 4 * inputs.size] = np.concatenate([*ends, *ends])
    used, left = search_sets(nodes, attacks, allowance)
    return left.shape[0] == 0, int(used.sum())
