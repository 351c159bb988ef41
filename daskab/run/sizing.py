"""How much work a task gets: a few units are timed once, when a run is laid out."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskab.attack.single import attack_input, start_points
from daskab.bound.contributions import input_table, slice_edges
from daskab.bound.fixed import fixed_units
from daskab.bound.grid import MOST_LINES, grid_units
from daskab.bound.item import LARGEST_MATRIX
from daskab.bound.nodes import node_width
from daskab.bound.scaled import Scaled
from daskab.bound.sequences import count, ends
from daskab.bound.units import bound_units, refine_nodes
from daskab.errors import JobError
from daskab.run.batches import MOST_TASKS, REFUSED_TASKS, TARGET_SECONDS, items
from daskab.run.plan import Plan, Question
from daskab.run.rounds import NODES_A_ROUND

Array = NDArray[np.float64]

SAMPLES = 3
SAMPLED_UNITS = 32
SAMPLE_SECONDS = 0.2
"""A hard input is not sampled any longer."""


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
    n_units = 2 * question.n_inputs * count(question.slices)
    pace = measure(question, scaled)
    return Plan(
        question,
        batch=batch or items(n_units, pace.unit),
        block=items(question.n_inputs, pace.attack),
        node_batch=max(1, int(TARGET_SECONDS / max(pace.node, 1e-9))),
    )


def check_batch(question: Question, batch: int | None) -> None:
    """Raise JobError if so many units a task make more tasks than a scheduler should be given."""
    n_units = 2 * question.n_inputs * count(question.slices)
    if batch is not None and n_units > batch * REFUSED_TASKS:
        raise JobError(
            f"run.batch: {batch} cuts {n_units} units into more than {REFUSED_TASKS} tasks; "
            f"{math.ceil(n_units / MOST_TASKS)} makes {MOST_TASKS}"
        )


def sizes(plan: Plan, scaled: Scaled) -> Sizes:
    """Estimate time, memory and disk of a plan."""
    q, pace = plan.question, measure(plan.question, scaled)
    attack = q.n_inputs * pace.attack
    contribution_bytes = 2 * 4 * 8 * q.slices * q.n_centres
    row_bytes = 8 * node_width(q.n_centres, q.n_inputs - 1)
    rows = max(4 * NODES_A_ROUND, 1024) + NODES_A_ROUND + plan.batch
    matrix_bytes = 3 * 8 * min(q.n_centres, q.n_inputs - 1, LARGEST_MATRIX) ** 2
    grid_bytes = 8 * q.components * q.n_centres * min(q.resolution**q.components, MOST_LINES)
    return Sizes(
        first_round_seconds=attack + plan.n_units * pace.unit,
        budget_seconds=attack + q.n_inputs * q.node_budget * pace.node,
        task_bytes=8 * q.n_centres * (3 * q.n_inputs + 64)
        + rows * row_bytes
        + contribution_bytes * plan.block
        + matrix_bytes
        + grid_bytes,
        store_bytes=q.n_inputs * contribution_bytes + 8 * q.n_inputs**2 + 8 * 4 * plan.n_units,
    )


def measure(question: Question, s: Scaled) -> Pace:
    """Time a few attacks, units and nodes, on inputs spread over the model."""
    starts = start_points(s.centres, s.amplitudes, s.width, question.attack_starts, question.attack_seed)
    best = np.empty(question.n_inputs + 1)
    sampled = np.unique(np.linspace(0, question.n_inputs - 1, SAMPLES).astype(int)).tolist()
    attacks, bounds = [], []
    for d in [sampled[0], *sampled]:
        begun = time.perf_counter()
        attained = attack_input(s.centres, s.amplitudes, s.width, d, starts, best)
        attacks.append(time.perf_counter() - begun)
        bounds.append(sample_bounds(question, s, d, attained, best[: question.n_inputs]))
    # The first of each is left out: it only compiled.
    seconds, units, nodes = np.sum(bounds[1:], axis=0).tolist()
    return Pace(float(np.mean(attacks[1:])), seconds / units, seconds / nodes)


def sample_bounds(question: Question, s: Scaled, d: int, attained: float, point: Array) -> tuple[float, int, float]:
    """Bound some units of an input as the first round does: seconds, units done, nodes examined."""
    sequence_ends = ends(question.slices)
    n, model = sequence_ends.shape[0], (s.centres, s.amplitudes, s.width)
    start, take = 2 * d * n, min(SAMPLED_UNITS, n)
    units = start, start + take, sequence_ends
    goal = np.full(question.n_inputs, attained * (1.0 + (question.rtol or 0.0)))
    begun = time.perf_counter()
    edges = np.stack([slice_edges(w, question.slices) for w in s.width])
    tables = input_table(s.centres[:, d], s.amplitudes, s.width[d], question.slices)[:, None]
    if question.method == "grid":
        grid_units(*units, tables, d, *model, question.components, question.resolution)
    elif question.method == "fixed":
        fixed_units(*units, tables, point[None], d, *model, goal)
    if question.method != "adaptive":
        return time.perf_counter() - begun, take, take
    # What a node of the first round may open, as `rounds.allowance` has it.
    allowance = np.full(question.n_inputs, min(NODES_A_ROUND, question.node_budget // (2 * n)))
    nodes = bound_units(*units, edges, tables, point[None], d, *model, s.reach, goal)
    opened = 0.0
    for done in range(1, take + 1):
        opened += 1.0 + refine_nodes(nodes[done - 1 : done], n, *model, s.reach, goal, allowance, goal)[1].sum()
        if time.perf_counter() - begun > SAMPLE_SECONDS:
            break
    return time.perf_counter() - begun, done, opened
