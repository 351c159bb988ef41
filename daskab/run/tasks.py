"""What a worker does with a task: compute one batch, write its chunks, then its record."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab.attack.attained import attained_change, crosses_thresholds
from daskab.attack.several import fewest_inputs
from daskab.attack.single import attack_input, start_points
from daskab.bound import sequences
from daskab.bound.contributions import DIRECTIONS, contributions, slice_edges
from daskab.bound.nodes import BOUND
from daskab.bound.units import bound_units, place, refine_nodes
from daskab.errors import IntegrityError
from daskab.run.records import Record, Task, read_record, write_record
from daskab.run.store import FOUND, NOT_FOUND, payload_digest
from daskab.run.witnesses import witness_pair
from daskab.run.workspace import Workspace, worker_workspace

Array = NDArray[Any]


class Work(NamedTuple):
    """What a task wrote and how much it did."""

    payload: tuple[Array, ...]
    items: int
    opened: int = 0
    left_open: int = 0


def execute(folder: str, run_id: str, task: Task) -> Record:
    """Do one task of a run on a worker and return its record, about 200 bytes; the rest is in the store."""
    return perform(worker_workspace(folder, run_id), task)


def perform(space: Workspace, task: Task) -> Record:
    """Do one task: its work, its chunks, and last its record."""
    begun = time.monotonic()
    work = STAGES[task.stage](space, task)
    seconds = time.monotonic() - begun
    record = Record.of(task, payload_digest(*work.payload), work.items, work.opened, work.left_open, seconds)
    write_record(space.records, record)
    return record


def finished(space: Workspace, task: Task) -> Record | None:
    """The record of a task whose stored payload is still what it wrote; None if it has to run (again)."""
    record = read_record(space.records, task)
    if record is None:
        return None
    try:
        return record if payload_digest(*stored(space, task)) == record.payload_sha256 else None
    except IntegrityError:
        return None


def stored(space: Workspace, task: Task) -> tuple[Array, ...]:
    """What a task wrote, read back, in the order its digest was taken."""
    read = space.evidence.read
    if task.stage == "round":
        rows = space.evidence.rows(task.round, task.index)
        at = f"rounds/{task.round}"
        frontier = space.evidence.read_frontier(task.round, task.index)
        return (
            read(f"{at}/closed", rows),
            read(f"{at}/used", rows),
            frontier,
            space.evidence.read_found(task.round, task.index),
        )
    if task.stage == "several":
        return read("attack_pair"), read("attack_status")
    inputs = space.block(task.index)
    rows = slice(inputs.start, inputs.stop)
    if task.stage == "contributions":
        return tuple(read("contributions", (slice(None), rows)))
    return read("search/witness", rows), read("search/witness_to", rows), read("search/attained", rows)


def fill_block(space: Workspace, task: Task) -> Work:
    """Contributions of a block of inputs, both directions."""
    s, slices = space.scaled, space.plan.question.slices
    inputs = space.block(task.index)
    out = np.empty((2, len(inputs), slices, 4, s.amplitudes.size))
    for side, sign in enumerate(DIRECTIONS):
        for row, d in enumerate(inputs):
            out[side, row] = contributions(s.centres[:, d].copy(), s.amplitudes, sign, slice_edges(s.width[d], slices))
    space.evidence.write("contributions", (slice(None), slice(inputs.start, inputs.stop)), out)
    return Work((out[0], out[1]), len(inputs))  # each by input first, as all payloads are by item


def attack_block(space: Workspace, task: Task) -> Work:
    """Best one-input change found for a block of inputs, and the pairs that attain it."""
    q, s, model = space.plan.question, space.scaled, space.model
    inputs = space.block(task.index)
    starts = start_points(s.centres, s.amplitudes, s.width, q.attack_starts, q.attack_seed)
    witness = np.empty((len(inputs), model.n_inputs))
    moved = np.empty(len(inputs))
    attained = np.empty(len(inputs))
    best = np.empty(model.n_inputs + 1)
    for row, d in enumerate(inputs):
        attack_input(s.centres, s.amplitudes, s.width, d, starts, best)
        x, x_prime = witness_pair(space, d, best[: model.n_inputs], best[model.n_inputs])
        witness[row] = x
        moved[row] = x_prime[d]
        attained[row] = attained_change(model, x, x_prime)
    rows = slice(inputs.start, inputs.stop)
    space.evidence.write("search/witness", rows, witness)
    space.evidence.write("search/witness_to", rows, moved)
    space.evidence.write("search/attained", rows, attained)
    return Work((witness, moved, attained), len(inputs))


def attack_several(space: Workspace, task: Task) -> Work:
    """The n-input attack, started from the one-input witnesses among others."""
    q, d = space.plan.question, space.model.n_inputs
    pair = np.full((2, d), np.nan)
    status = np.array([NOT_FOUND], dtype=np.uint8)
    strongest = np.argsort(-space.evidence.read("search/attained"), kind="stable")[: q.attack_starts]
    starts = space.evidence.read("search/witness")[strongest]
    found = fewest_inputs(space.model, starts=starts, seed=q.attack_seed, n_starts=q.attack_starts)
    # Rounding may hide how a pair just at a threshold lies; such a pair is no witness.
    if found is not None and crosses_thresholds(space.model, found.x, found.x_prime):
        pair = np.stack([found.x, found.x_prime])
        status[0] = FOUND
    space.evidence.write("attack_pair", ..., pair)
    space.evidence.write("attack_status", ..., status)
    return Work((pair, status), 1)


def refine_batch(space: Workspace, task: Task) -> Work:
    """Bound a range of units (round 0) or take open nodes further (later), and hand back what is still open."""
    plan, s, number = space.plan, space.scaled, task.round
    read = space.evidence.read
    goal = read(f"rounds/{number}/goal")
    nodes = bounded_units(space, task.index, goal) if number == 0 else stored_nodes(space, task)
    if plan.question.method == "fixed":
        closed, used = nodes[:, BOUND].copy(), np.ones(nodes.shape[0])
        frontier, found = nodes[:0], np.empty((0, space.model.n_inputs + 3))
    else:
        allowance, attained = read(f"rounds/{number}/allowance"), read(f"rounds/{number}/attained")
        closed, used, frontier, found = refine_nodes(
            nodes, plan.n_sequences, s.centres, s.amplitudes, s.width, goal, allowance, attained
        )
    rows = space.evidence.rows(number, task.index)
    space.evidence.write_outcome(number, task.index, frontier, found)
    space.evidence.write(f"rounds/{number}/used", rows, used)
    space.evidence.write(f"rounds/{number}/closed", rows, closed)
    return Work((closed, used, frontier, found), nodes.shape[0], int(used.sum()), frontier.shape[0])


def bounded_units(space: Workspace, index: int, goal: Array) -> Array:
    """The units of a batch of round 0 as nodes (n, 6), bounded from their stored contributions."""
    plan, s = space.plan, space.scaled
    rows = space.evidence.rows(0, index)
    start, stop = rows.start, rows.stop
    first, last = place(start, plan.n_sequences)[0], place(stop - 1, plan.n_sequences)[0]
    tables = space.evidence.read("contributions", (slice(None), slice(first, last + 1)))
    if not np.all(np.isfinite(tables)):
        raise IntegrityError(f"{space.folder}: contributions of inputs {first} to {last} are missing; run again")
    slices = plan.question.slices
    edges = np.stack([slice_edges(w, slices) for w in s.width])
    points = (
        space.evidence.read("search/witness", slice(first, last + 1)) - space.model.lower
    ) / space.model.lengthscale
    return bound_units(
        start,
        stop,
        sequences.ends(slices),
        edges,
        tables,
        np.clip(points, 0.0, s.width),
        first,
        s.centres,
        s.amplitudes,
        s.width,
        goal,
    )


def stored_nodes(space: Workspace, task: Task) -> Array:
    """The open nodes a batch of a later round starts from."""
    nodes = space.evidence.read(f"rounds/{task.round}/nodes", space.evidence.rows(task.round, task.index))
    if not np.all(np.isfinite(nodes)):
        raise IntegrityError(f"{space.folder}: nodes of {task.key} are missing; run again")
    return nodes


STAGES = {
    "contributions": fill_block,
    "attack": attack_block,
    "several": attack_several,
    "round": refine_batch,
}
