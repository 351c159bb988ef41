"""What a worker does with a task: compute one batch, write its chunks, then its record."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab.attack.attacker import Attacker, attacker
from daskab.attack.attained import attained_change, crosses_thresholds
from daskab.bound import sequences
from daskab.bound.contributions import input_table, slice_edges
from daskab.bound.fixed import fixed_units
from daskab.bound.grid import grid_units
from daskab.bound.sequences import place
from daskab.bound.topn import largest_sums
from daskab.bound.units import bound_units, refine_nodes
from daskab.errors import IntegrityError
from daskab.files import path_at, storage_of
from daskab.joint.attacks import Attacks
from daskab.joint.midpoint.search import search_nodes
from daskab.joint.sets.groups import bound_category, bound_group, parts_of
from daskab.joint.sets.search import search_sets
from daskab.model.domain import Group
from daskab.run.joint import PAIRS
from daskab.run.records import Record, Task, read_record, write_record
from daskab.run.sandwich import attacks
from daskab.run.store import FOUND, NOT_FOUND, payload_digest
from daskab.run.workspace import Workspace, worker_workspace

Array = NDArray[Any]


GROUPS = ("bound", "attained", "used", "witness", "witness_to")
"""What is stored of a group by its task, in order."""


OF_SANDWICHES = {"pairs", "fewest"}
"""Stages of runs that are made of others."""


CATEGORY_NODES = 20_000
"""Budget of a category where slices are fixed, which says nothing of what has none."""


class Work(NamedTuple):
    """What a task wrote and how much it did."""

    payload: tuple[Array, ...]
    items: int
    opened: int = 0
    left_open: int = 0


def execute(folder: str, run_id: str, task: Task) -> Record:
    """Do one task of a run on a worker and return its record, about 200 bytes; the rest is in the store."""
    with storage_of(path_at(folder)):
        if task.stage in OF_SANDWICHES:
            return attacks.perform(folder, run_id, task)
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


def stored(space: Workspace, task: Task, *, whole: bool = False) -> tuple[Array, ...]:
    """What a task wrote, read back, in the order its digest was taken.

    Where all tasks are read one after another, arrays of a number a node are read as a ``whole``, for all of them.
    """
    # What is missing is told by the digest, and whose it is.
    read = partial(space.evidence.read, may_lack=True)

    def column(name: str, rows: slice) -> Array:
        if whole:
            # A part of it that is damaged may be of a task that nobody asks for.
            with suppress(IntegrityError):
                return space.evidence.kept(name, lambda: read(name))[rows]
        return read(name, rows)

    read_rows = partial(space.evidence.read_rows, may_lack=True)
    if task.stage == "round":
        at = f"rounds/{task.round}"
        rows = space.evidence.rows(f"{at}/closed", task.index)
        if space.plan.question.method != "adaptive":
            return (column(f"{at}/closed", rows),)
        frontier, found = (read_rows(f"{at}/{name}", task.index) for name in ("frontier", "found"))
        asked = () if task.round == 0 else (read(f"{at}/nodes", rows),)
        return *asked, column(f"{at}/closed", rows), column(f"{at}/used", rows), frontier, found
    if task.stage == "joint":
        at = f"joint/{task.round}"
        rows = space.evidence.rows(f"{at}/used", task.index)
        nodes, used = read(f"{at}/nodes", rows), column(f"{at}/used", rows)
        what = np.tile(space.evidence.joint_round(task.round), (used.size, 1))
        return what, nodes, used, read_rows(f"{at}/frontier", task.index)
    if task.stage == "enhancement":
        at = f"enhancements/{task.round}/bound"
        return (column(at, space.evidence.rows(at, task.index)),)
    if task.stage == "groups":
        rows = slice(task.index, task.index + 1)
        return read("groups/most", rows), read("groups/alone")[None], *(read(f"groups/{name}", rows) for name in GROUPS)
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
    for row, d in enumerate(inputs):
        out[:, row] = input_table(s.centres[:, d], s.amplitudes, s.width[d], slices)
    space.evidence.write("contributions", (slice(None), slice(inputs.start, inputs.stop)), out)
    return Work((out[0], out[1]), len(inputs))  # each by input first, as all payloads are by item


def attack_block(space: Workspace, task: Task) -> Work:
    """Best one-input change found for a block of inputs, and the pairs that attain it."""
    q, model = space.plan.question, space.model
    inputs = space.block(task.index)
    attacks = attacker(model, q.attack_starts, q.attack_seed)
    witness = np.empty((len(inputs), model.n_inputs))
    moved = np.empty(len(inputs))
    attained = np.empty(len(inputs))
    for row, d in enumerate(inputs):
        x, x_prime = attacks.best_pair((d,))
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
    found = attacker(space.model, q.attack_starts, q.attack_seed).fewest_changes(starts)
    # Rounding may hide how a pair just at a threshold lies; such a pair is no witness.
    if found is not None and crosses_thresholds(space.model, found.x, found.x_prime):
        pair = np.stack([found.x, found.x_prime])
        status[0] = FOUND
    space.evidence.write("attack_pair", ..., pair)
    space.evidence.write("attack_status", ..., status)
    return Work((pair, status), 1)


def bound_one_group(space: Workspace, task: Task) -> Work:
    """What changing a group of inputs can do at most, and what it is found to do."""
    q, s, model = space.plan.question, space.scaled, space.model
    group, rows = model.domain.groups[task.index], slice(task.index, task.index + 1)
    most, alone = space.evidence.read("groups/most", rows), space.evidence.read("groups/alone")
    attacks, rtol = attacker(model, q.attack_starts, q.attack_seed), q.rtol or 0.0
    x, x_prime = attacks.best_pair(group.inputs)
    attained = attained_change(model, x, x_prime)
    if q.method != "adaptive" and group.kind == "free":
        bound, used = float(most[0]), 0
    elif group.kind != "free":
        budget = q.node_budget or CATEGORY_NODES
        bound, used = bound_category(s, group, attained, float(most[0]), rtol, budget)
    else:
        bound, used = bound_free_group(space, group, attained, alone, attacks)
    found = (np.array([bound]), np.array([attained]), np.array([float(used)]), x[None], x_prime[None])
    for name, values in zip(GROUPS, found, strict=True):
        space.evidence.write(f"groups/{name}", rows, values)
    # What it set out from is part of what the record vouches for.
    return Work((most, alone[None], *found), 1, used)


def bound_free_group(
    space: Workspace, group: Group, attained: float, alone: Array, attacks: Attacker
) -> tuple[float, int]:
    """Bound a group by searches of its parts, one after the other as on a path that changes them in turn."""
    q = space.plan.question
    parts = parts_of(tuple(j for j in group.inputs if not space.model.domain.frozen[j]))
    total, used = 0.0, 0
    for part in parts:
        if len(parts) > 1:
            attained = attained_change(space.model, *attacks.best_pair(part))
        most = float(largest_sums(alone[list(part)], towards=np.inf)[-1])
        bound, n = bound_group(space.scaled, part, attained, most, q.rtol or 0.0, q.node_budget - used)
        total, used = float(largest_sums([total, bound], towards=np.inf)[-1]), used + n
    return total, used


def round_batch(space: Workspace, task: Task) -> Work:
    """A batch of a round, of the only one where slices are fixed."""
    return (refine_batch if space.plan.question.method == "adaptive" else bound_batch)(space, task)


def refine_batch(space: Workspace, task: Task) -> Work:
    """Bound a range of units (round 0) or take open nodes further (later), and hand back what is still open."""
    plan, s, number = space.plan, space.scaled, task.round
    read, at = space.evidence.read, f"rounds/{task.round}"
    rows = space.evidence.rows(f"{at}/closed", task.index)
    goal, allowance, attained = (read(f"{at}/{name}") for name in ("goal", "allowance", "attained"))
    nodes = first_nodes(space, rows, goal) if number == 0 else read(f"{at}/nodes", rows)
    # What it set out from is part of what the record vouches for: of other nodes it says nothing.
    asked = () if number == 0 else (nodes,)
    closed, used, frontier, found = refine_nodes(
        nodes, plan.n_sequences, s.centres, s.amplitudes, s.width, s.reach, goal, allowance.astype(np.int64), attained
    )
    space.evidence.write_rows(f"{at}/frontier", task.index, frontier)
    space.evidence.write_rows(f"{at}/found", task.index, found)
    space.evidence.write(f"{at}/used", rows, used)
    space.evidence.write(f"{at}/closed", rows, closed)
    return Work((*asked, closed, used, frontier, found), closed.size, int(used.sum()), frontier.shape[0])


def bound_batch(space: Workspace, task: Task) -> Work:
    """Bound a range of units for good."""
    at = f"rounds/{task.round}/closed"
    rows = space.evidence.rows(at, task.index)
    first, tables = stored_contributions(space, rows)
    closed = fixed_bounds(space, rows, space.plan.question.slices, first, tables)
    space.evidence.write(at, rows, closed)
    return Work((closed,), closed.size, closed.size)


def search_batch(space: Workspace, task: Task) -> Work:
    """Search a range of open nodes of pairs or of sets, and hand back what is still open."""
    at = f"joint/{task.round}"
    allowance, size, most = asked = space.evidence.joint_round(task.round)
    rows = space.evidence.rows(f"{at}/used", task.index)
    nodes, attacks = space.evidence.read(f"{at}/nodes", rows), Attacks.of(space.model, most)
    used, frontier = (search_nodes if size == PAIRS else search_sets)(nodes, attacks, allowance)
    space.evidence.write_rows(f"{at}/frontier", task.index, frontier)
    space.evidence.write(f"{at}/used", rows, used)
    # What was asked, and of which nodes, is part of what the record vouches for: attributes carry no checksum.
    payload = np.tile(asked, (used.size, 1)), nodes, used, frontier
    return Work(payload, used.size, int(used.sum()), frontier.shape[0])


def enhance_batch(space: Workspace, task: Task) -> Work:
    """Bound a range of the sequences of one input that is cut anew."""
    s, at = space.scaled, f"enhancements/{task.round}/bound"
    d, slices = space.evidence.enhancement(task.round)
    rows = space.evidence.rows(at, task.index)
    offset = 2 * d * sequences.count(slices)
    table = input_table(s.centres[:, d], s.amplitudes, s.width[d], slices)
    bound = fixed_bounds(space, slice(rows.start + offset, rows.stop + offset), slices, d, table[:, None])
    space.evidence.write(at, rows, bound)
    return Work((bound,), bound.size, bound.size)


def fixed_bounds(space: Workspace, units: slice, slices: int, first: int, tables: Array) -> Array:
    """Bound (n,) of a range of units by the run's method, each once, from contributions of inputs ``first`` ..."""
    q, s = space.plan.question, space.scaled
    ends = sequences.ends(slices)
    if q.method == "grid":
        return grid_units(
            units.start, units.stop, ends, tables, first, s.centres, s.amplitudes, s.width, q.components, q.resolution
        )
    points, attained = found_points(space, first, tables.shape[1]), space.evidence.read("rounds/0/attained")
    return fixed_units(units.start, units.stop, ends, tables, points, first, s.centres, s.amplitudes, s.width, attained)


def stored_contributions(space: Workspace, rows: slice) -> tuple[int, Array]:
    """Contributions (2, B, slice, constraint, centre) of the inputs of a range of units, and the first of them."""
    n = space.plan.n_sequences
    first, last = place(rows.start, n)[0], place(rows.stop - 1, n)[0]
    return first, space.evidence.read("contributions", (slice(None), slice(first, last + 1)))


def first_nodes(space: Workspace, rows: slice, goal: Array) -> Array:
    """The units of a batch of round 0 as nodes (n, width), bounded from their stored contributions."""
    s, slices = space.scaled, space.plan.question.slices
    first, tables = stored_contributions(space, rows)
    edges = np.stack([slice_edges(w, slices) for w in s.width])
    points = found_points(space, first, tables.shape[1])
    ends = sequences.ends(slices)
    return bound_units(
        rows.start, rows.stop, ends, edges, tables, points, first, s.centres, s.amplitudes, s.width, s.reach, goal
    )


def found_points(space: Workspace, first: int, count: int) -> Array:
    """Scaled points (count, D) the attack found for inputs ``first`` ..., where a search may well start."""
    found = space.evidence.read("search/witness", slice(first, first + count))
    return np.clip((found - space.model.lower) / space.model.lengthscale, 0.0, space.scaled.width)


STAGES = {
    "contributions": fill_block,
    "attack": attack_block,
    "several": attack_several,
    "round": round_batch,
    "joint": search_batch,
    "enhancement": enhance_batch,
    "groups": bound_one_group,
}
