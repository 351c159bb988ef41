"""How many items a task gets, for it to last about a second."""

from __future__ import annotations

import math

TARGET_SECONDS = 1.0
"""A task's length: scheduling costs 1-3 ms, storing some 20, and a stopped run loses no more than what is in flight."""

SHORTEST_SECONDS = 0.1
EVEN_TASKS = 16
"""A stage shorter than 16 s is cut into this many tasks, so that a few workers share it evenly, but into none
so short that its overhead shows."""

MOST_TASKS = 20_000
"""Of a stage: beyond, tasks last longer than a second. Each costs the scheduler some 10 kB."""

REFUSED_TASKS = 100_000
"""A batch size that makes more tasks is refused."""

LONGEST_SECONDS = 4.0
"""A task of a round lasts no longer, even if each of its nodes opens all it may."""

MARGIN = 2.0
"""Nodes that are left open are harder than those that were not."""


def items(n_items: int, seconds_each: float) -> int:
    """Items a task, of ``n_items`` that take about ``seconds_each``."""
    seconds = min(max(n_items * seconds_each / EVEN_TASKS, SHORTEST_SECONDS), TARGET_SECONDS)
    return max(fewest(n_items), min(n_items, math.ceil(seconds / max(seconds_each, 1e-9))))


def nodes(n_nodes: int, per_second: float, most: int, opened: float | None) -> int:
    """Nodes a task of a round starts from.

    Parameters
    ----------
    n_nodes : of the round
    per_second : nodes that can be bounded
    most : nodes that one node of the round may open
    opened : what a node of the round before opened, on average; None if there was none
    """
    expected = most if opened is None else min(max(MARGIN * opened, 1.0), most)
    longest = int(LONGEST_SECONDS * per_second / max(most, 1))
    return max(fewest(n_nodes), min(items(n_nodes, expected / per_second), longest))


def fewest(n_items: int) -> int:
    """Items a task at the least, for a stage not to have too many tasks."""
    return max(1, math.ceil(n_items / MOST_TASKS))
