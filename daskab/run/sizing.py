"""How much work a task gets: a few units are timed once, when a run is laid out."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from daskab.attack.single import attack_input, start_points
from daskab.bound.contributions import contributions, slice_edges
from daskab.bound.fixed import fixed_units
from daskab.bound.grid import MOST_LINES, grid_units
from daskab.bound.nodes import node_width
from daskab.bound.scaled import Scaled
from daskab.bound.sequences import count, ends
from daskab.bound.units import bound_units, refine_nodes
from daskab.run.plan import Plan, Question
from daskab.run.rounds import NODES_A_ROUND

TARGET_SECONDS = 1.0
"""A task's length: scheduling costs 1-3 ms, and a stopped run loses no more than what is in flight."""

SHORTEST_SECONDS = 0.1
EVEN_TASKS = 16
"""A stage shorter than 16 s is cut into this many tasks, so that a few workers share it evenly, but into none
so short that its overhead shows."""

SAMPLES = 3
SAMPLED_UNITS = 32


@dataclass(frozen=True)
class Pace:
    """Seconds on this machine, on average over a few inputs spread over the model."""

    attack: float  #: to attack one input
    unit: float  #: to bound one unit and refine it in the first round
    node: float  #: to bound one node


@dataclass(frozen=True)
class Sizes:
    """What a plan will cost."""

    first_round_seconds: float  #: of one core, attack included
    budget_seconds: float  #: of one core, if every input used up its node budget
    task_bytes: int
    store_bytes: int


def sized_plan(question: Question, scaled: Scaled, batch: int | None = None) -> Plan:
    """Cut a question into tasks of about a second; ``batch`` fixes the units a task instead."""
    pace = measure(question, scaled)
    n_units = 2 * question.n_inputs * count(question.slices)
    return Plan(
        question,
        batch=batch or items(n_units, pace.unit),
        block=items(question.n_inputs, pace.attack),
        node_batch=max(1, int(TARGET_SECONDS / max(pace.node, 1e-9))),
    )


def sizes(plan: Plan, scaled: Scaled) -> Sizes:
    """Estimate time, memory and disk of a plan."""
    q, pace = plan.question, measure(plan.question, scaled)
    attack = q.n_inputs * pace.attack
    contribution_bytes = 2 * 4 * 8 * q.slices * q.n_centres
    row_bytes = 8 * node_width(q.n_centres, q.n_inputs - 1)
    rows = max(4 * NODES_A_ROUND, 1024) + NODES_A_ROUND + plan.batch
    grid_bytes = 8 * q.components * q.n_centres * min(q.resolution**q.components, MOST_LINES)
    return Sizes(
        first_round_seconds=attack + plan.n_units * pace.unit,
        budget_seconds=attack + q.n_inputs * q.node_budget * pace.node,
        task_bytes=8 * q.n_centres * (3 * q.n_inputs + 64)
        + rows * row_bytes
        + contribution_bytes * plan.block
        + grid_bytes,
        store_bytes=q.n_inputs * contribution_bytes + 8 * q.n_inputs**2 + 8 * 4 * plan.n_units,
    )


def items(n_items: int, seconds_each: float) -> int:
    """Items a task, of ``n_items`` that take about ``seconds_each``."""
    seconds = min(max(n_items * seconds_each / EVEN_TASKS, SHORTEST_SECONDS), TARGET_SECONDS)
    return max(1, min(n_items, math.ceil(seconds / max(seconds_each, 1e-9))))


def measure(question: Question, s: Scaled) -> Pace:
    """Time a few attacks, units and nodes, on inputs spread over the model."""
    starts = start_points(s.centres, s.amplitudes, s.width, question.attack_starts, question.attack_seed)
    sequence_ends = ends(question.slices)
    take = min(SAMPLED_UNITS, sequence_ends.shape[0])
    edges = np.stack([slice_edges(w, question.slices) for w in s.width])
    best = np.empty(question.n_inputs + 1)
    # What a node of the first round may open, as `rounds.allowance` has it.
    share = min(NODES_A_ROUND, question.node_budget // (2 * sequence_ends.shape[0]))
    allowance = np.full(question.n_inputs, share)
    sampled = np.unique(np.linspace(0, question.n_inputs - 1, SAMPLES).astype(int))
    seconds = np.zeros((sampled.size + 1, 2))
    opened = np.full(sampled.size + 1, float(take))
    for row, d in enumerate([sampled[0], *sampled]):
        begun = time.perf_counter()
        attained = attack_input(s.centres, s.amplitudes, s.width, d, starts, best)
        attacked = time.perf_counter()
        table = contributions(s.centres[:, d].copy(), s.amplitudes, 1, edges[d])
        tables = np.stack([table, table])[:, None]
        goal = np.full(question.n_inputs, attained * (1.0 + (question.rtol or 0.0)))
        start = 2 * int(d) * sequence_ends.shape[0]
        points = best[None, : question.n_inputs]
        model = s.centres, s.amplitudes, s.width
        if question.method == "grid":
            grid = question.components, question.resolution
            grid_units(start, start + take, sequence_ends, tables, d, *model, *grid)
        elif question.method == "fixed":
            fixed_units(start, start + take, sequence_ends, tables, points, d, *model, goal)
        else:
            nodes = bound_units(start, start + take, sequence_ends, edges, tables, points, d, *model, goal)
            used = refine_nodes(nodes, sequence_ends.shape[0], *model, goal, allowance, goal)[1]
            opened[row] += used.sum()
        seconds[row] = attacked - begun, time.perf_counter() - attacked
    # The first row is left out: it only compiled.
    attack, unit = seconds[1:].mean(axis=0)
    return Pace(float(attack), float(unit) / take, float(seconds[1:, 1].sum() / opened[1:].sum()))
