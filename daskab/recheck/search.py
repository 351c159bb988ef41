"""Branch and bound: is the change of one input at most the level, everywhere? (METHOD 4, 6)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab.recheck.climb import Path, best_of, climb
from daskab.recheck.mixture import Inputs, coordinates
from daskab.recheck.node import Bump, examine
from daskab.recheck.problem import Problem

Array = NDArray[np.float64]

BATCH = 128
"""Nodes examined together."""

MOST_CELLS = 4_000_000
"""Numbers in the largest array: with many centres and inputs a batch is smaller."""

MOST_WORK = 10_000_000_000
"""Operations, about: half a minute. With hundreds of inputs and as many directions few nodes can be afforded."""

MOST_TERMS = 20_000
"""Centres plus inputs beyond which the rounding is not proved (METHOD 5)."""

STARTS = 8
"""Points an ascent begins at before the search."""


class Finding(NamedTuple):
    """What a search came to."""

    proved: bool  #: the change is at most the level
    nodes: int  #: examined
    path: Path | None  #: one that seems to change more, to be evaluated by other means


def search(problem: Problem, level: float, most_nodes: int, seed: int = 0) -> Finding:
    """Prove that no change of the input exceeds ``level``, or find one that seems to, within ``most_nodes``."""
    if not (math.isfinite(level) and level >= 0.0) or problem.own.size + problem.width.size > MOST_TERMS:
        return Finding(False, 0, None)
    if problem.reach == 0.0 or problem.most == 0.0:
        return Finding(True, 0, None)
    with np.errstate(all="ignore"):
        try:
            # A path in the box is none of the domain's where that is less: then nothing is refuted.
            best = best_of(problem, STARTS, seed) if problem.whole else None
            if best is not None and best.change > level:
                return Finding(False, 0, best)
            return _search(problem, level, most_nodes)
        except np.linalg.LinAlgError:
            return Finding(False, 0, None)


def _search(problem: Problem, level: float, most_nodes: int) -> Finding:
    where = coordinates(problem)
    k = where.low.size
    low = np.concatenate([[0.0, 0.0], where.low])[None]
    high = np.concatenate([[problem.reach] * 2, where.high])[None]
    inputs = isinstance(where, Inputs)
    low, high, there = problem.trimmed(low, high, inputs=inputs)
    low, high = low[there], high[there]
    eta, excess = np.zeros((low.shape[0], k)), np.full(low.shape[0], np.inf)
    m, w = problem.own.size, k + 2
    batch = max(1, min(BATCH, MOST_CELLS // (w * max(m, w))))
    most_nodes = min(most_nodes, max(1, MOST_WORK // (w * w * (20 * w + m))))
    nodes = 0
    while low.shape[0]:
        if nodes >= most_nodes:
            return Finding(False, nodes, None)
        order = np.argsort(-excess, kind="stable")
        now, later = order[:batch], order[batch:]
        lo, hi = low[now], high[now]
        nodes += now.size
        middle = 0.5 * lo + 0.5 * hi
        radius = np.maximum(middle - lo, hi - middle) * (1.0 + 2.0**-50)
        s = Bump.of(problem.own, middle[:, 0], radius[:, 0])
        e = Bump.of(problem.own, middle[:, 1], radius[:, 1])
        gain = problem.amplitude * (e.value - s.value)
        mixture, multipliers = where.mixture(middle[:, 2:], radius[:, 2:], eta[now], gain)
        found = examine(problem.amplitude, level, s, e, mixture, radius)
        tried = np.clip(middle + radius * found.x, lo, hi)
        z = where.points(tried[:, 2:], multipliers)
        changes = problem.change(tried[:, 0], tried[:, 1], z)
        if problem.whole and np.max(changes) > level:
            at = int(np.argmax(changes))
            path = climb(problem, float(tried[at, 0]), float(tried[at, 1]), z[at])
            if path.change > level:
                return Finding(False, nodes, path)

        rows = np.flatnonzero(~(found.excess <= 0.0))
        lo, hi = lo[rows], hi[rows]
        each = np.arange(rows.size)
        cut = np.argmax(np.where(hi > lo, found.score[rows], -1.0), axis=1)
        at_cut = middle[rows, cut]
        left, right = hi.copy(), lo.copy()
        left[each, cut] = right[each, cut] = at_cut
        halves = np.concatenate([lo, right]), np.concatenate([left, hi])
        new_low, new_high, there = problem.trimmed(*halves, inputs=inputs)
        of = np.concatenate([rows, rows])[there]
        low = np.concatenate([low[later], new_low[there]])
        high = np.concatenate([high[later], new_high[there]])
        eta = np.concatenate([eta[later], multipliers[of]])
        excess = np.concatenate([excess[later], found.excess[of]])
    return Finding(True, nodes, None)
