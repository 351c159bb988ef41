"""From the evidence to the certificate. Fails closed: what is not proved, present and intact does not count."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskab._version import VERSION
from daskab.attack.attained import crosses_thresholds
from daskab.bound.goals import goals, trivial_bound
from daskab.bound.nodes import BOUND, UNIT
from daskab.bound.scaled import to_model_units
from daskab.bound.topn import inputs_required, largest_sums, lower_side
from daskab.errors import IntegrityError
from daskab.model.expansion import KernelExpansion
from daskab.run.certificate import Attack, Certificate, Witnesses
from daskab.run.joint import Joint
from daskab.run.plan import Question
from daskab.run.records import Record, Task
from daskab.run.rounds import is_taken, open_bounds, round_units
from daskab.run.store import CLOSED, FOUND, OPEN, payload_digest
from daskab.run.tasks import finished, stored
from daskab.run.workspace import Workspace

Array = NDArray[Any]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class UnitBounds:
    """What is proved of every logical unit."""

    bound: Array  #: (direction, dimension, sequence)
    status: Array  #: OPEN or CLOSED

    @property
    def open_inputs(self) -> int:
        """Inputs that are not closed to the tolerance."""
        return int(np.sum((self.status != CLOSED).any(axis=(0, 2))))


def done_records(space: Workspace, tasks: list[Task]) -> dict[str, Record]:
    """Records of the tasks whose payload is in the store as they wrote it."""
    found = ((t.key, finished(space, t)) for t in tasks)
    return {key: record for key, record in found if record is not None}


def unit_bounds(space: Workspace, n_rounds: int, goal: Array, done: dict[str, Record]) -> UnitBounds:
    """Gather the bound of every unit over the rounds.

    A unit's bound is the largest over what each round closed of it and what was left open and not taken up again.
    Where a batch is not done, what it started from still holds: the bounds of its nodes, in round 0 the trivial one.
    A unit is open where work is left to do or its bound is above its input's goal (D,).
    """
    plan, q = space.plan, space.plan.question
    trivial = trivial_bound(space.scaled.amplitudes)
    bound = np.zeros(plan.n_units)
    is_open = np.zeros(plan.n_units, dtype=bool)
    if n_rounds == 0:
        bound[:] = trivial
        is_open[:] = True
    for number in range(n_rounds):
        for units, at_most, done_with in round_bounds(space, number, done, trivial):
            np.maximum.at(bound, units, at_most)
            is_open[units] |= not done_with
    if q.method == "adaptive":
        for number in range(n_rounds):
            for left, at_most in left_open(space, number, n_rounds, done):
                np.maximum.at(bound, left, at_most)
    if not np.all(np.isfinite(bound)):
        raise IntegrityError(f"{space.folder}: a stored bound is not a finite number; nothing is certified from it")
    is_open |= bound > goal[plan.input_of(np.arange(plan.n_units))]
    shape = (q.n_inputs, 2, plan.n_sequences)
    status = np.where(is_open, OPEN, CLOSED).astype(np.uint8)
    return UnitBounds(np.swapaxes(bound.reshape(shape), 0, 1), np.swapaxes(status.reshape(shape), 0, 1))


def left_open(space: Workspace, number: int, n_rounds: int, done: dict[str, Record]) -> Iterator[tuple[Ints, Array]]:
    """Units and bounds (n,) of the nodes that the tasks done of a round left open, and the next did not take."""
    tasks = space.tasks("round", number)
    if all(task.key in done for task in tasks):
        parts = [open_bounds(space.evidence, number)]
    else:
        at = f"rounds/{number}/frontier"
        parts = [space.evidence.read_rows(at, task.index)[:, [UNIT, BOUND]] for task in tasks if task.key in done]
    for part in parts:
        units, at_most = part[:, 0].astype(np.int64), part[:, 1]
        if number + 1 < n_rounds:
            left = ~is_taken(space.evidence, space.plan, units, number + 1)
            units, at_most = units[left], at_most[left]
        yield units, at_most


def round_bounds(
    space: Workspace, number: int, done: dict[str, Record], trivial: float
) -> Iterator[tuple[Ints, Array, bool]]:
    """Units (n,) of a round's nodes, what they are bounded by (n,) but for what was left open, and whether all is done.

    A chunk that no task in ``done`` vouches for is not read.
    """
    at, read = f"rounds/{number}", space.evidence.read
    tasks = space.tasks("round", number)
    if all(task.key in done for task in tasks):
        yield round_units(space.evidence, space.plan, number), space.evidence.column(f"{at}/closed"), True
        return
    for task in tasks:
        rows = space.evidence.rows(f"{at}/closed", task.index)
        nodes = read(f"{at}/nodes", rows) if number > 0 else None
        units = np.arange(rows.start, rows.stop) if nodes is None else nodes[:, UNIT].astype(np.int64)
        if task.key in done:
            yield units, read(f"{at}/closed", rows), True
        else:
            yield units, np.full(units.size, trivial) if nodes is None else nodes[:, BOUND], False


def goals_of(space: Workspace, attained: Array) -> Array:
    """Goal (D,) of every input, from what is known to be attained; none where slices are fixed, or it cannot change."""
    q = space.plan.question
    if q.rtol is None:
        return np.full(q.n_inputs, np.inf)
    slack = np.array(q.slack) if q.slack else 0.0
    goal = goals(attained, space.scaled.amplitudes, space.model.delta, q.rtol, slack)
    # A number, as one that is not finite is read as missing.
    goal[stays(space)] = np.finfo(np.float64).max
    return goal


def bounds_alone(space: Workspace, units: UnitBounds) -> Array:
    """Bound (D,) of what every input can do alone: the largest of its units'; 0 of one that cannot change alone."""
    return np.where(stays(space), 0.0, units.bound.max(axis=(0, 2)))


def stays(space: Workspace) -> NDArray[np.bool_]:
    """Inputs (D,) that cannot change alone: frozen ones, and columns of a category."""
    return np.asarray(space.model.domain.frozen | space.model.domain.in_category)


def groups_at_most(space: Workspace, alone: Array) -> Array:
    """What is proved (G,) of the groups before they are searched, from what their inputs can do alone (D,)."""
    trivial = trivial_bound(space.scaled.amplitudes)
    return np.array(
        [
            min(float(largest_sums(alone[list(group.inputs)], towards=math.inf)[-1]), trivial)
            if group.kind == "free"
            else trivial
            for group in space.model.domain.groups
        ]
    )


def change_bounds(space: Workspace, alone: Array, done: dict[str, Record]) -> Array:
    """Bound (C,) of everything that counts as one change: an input alone (D,), or a group, as far as it is done."""
    domain, most = space.model.domain, groups_at_most(space, alone)
    for k in range(most.size):
        if Task("groups", k).key in done:
            most[k] = min(most[k], float(space.evidence.read("groups/bound", slice(k, k + 1))[0]))
    firsts = [inputs[0] for inputs in domain.changes]
    return np.array([alone[j] if (k := domain.group_of[j]) < 0 else most[k] for j in firsts])


def change_witnesses(
    space: Workspace, known: tuple[Array, Witnesses], done: dict[str, Record]
) -> tuple[Array, Witnesses]:
    """The same of what is attained: by every input (D,), to by everything that counts as one change (C,)."""
    domain = space.model.domain
    if not domain.groups:
        return known
    attained, pairs = [], []
    for inputs in domain.changes:
        k = int(domain.group_of[inputs[0]])
        rows = slice(k, k + 1)
        if k >= 0 and Task("groups", k).key in done:
            attained.append(float(space.evidence.read("groups/attained", rows)[0]))
            pairs.append([space.evidence.read(f"groups/{name}", rows)[0] for name in ("witness", "witness_to")])
        elif k >= 0:
            attained.append(0.0)
            pairs.append([space.model.domain.nearest(space.model.lower)] * 2)
        else:
            attained.append(float(known[0][inputs[0]]))
            pairs.append(list(known[1].pair(inputs[0])))
    x, moved_to = np.swapaxes(np.array(pairs), 0, 1)
    return np.array(attained), Witnesses(x, moved_to)


def enhanced_bound(space: Workspace, number: int) -> float:
    """Bound an enhancement proved of its input, once all its tasks are done."""
    return float(space.evidence.read(f"enhancements/{number}/bound").max())


def evidence_digest(space: Workspace, done: dict[str, Record]) -> str:
    """SHA-256 over what the finished tasks stored, each stage's arrays end to end: batching leaves no trace.

    Raises
    ------
    IntegrityError
        If the store no longer holds what a task wrote.
    """
    stages: dict[str, list[Any]] = {}
    as_it_is = space.reopened()
    for key in sorted(done):  # a stage's batches in order
        payload = stored(as_it_is, Task.from_key(key), whole=True)
        if payload_digest(*payload) != done[key].payload_sha256:
            raise IntegrityError(f"{space.folder}: what {key} wrote has changed since; run again")
        parts = stages.setdefault(key.rpartition("-")[0], [hashlib.sha256() for _ in payload])
        for part, array in zip(parts, payload, strict=True):
            part.update(np.ascontiguousarray(array).tobytes())
    whole = hashlib.sha256()
    for stage in sorted(stages):
        whole.update(f"{stage} {' '.join(part.hexdigest() for part in stages[stage])}\n".encode())
    return whole.hexdigest()


def several_attack(space: Workspace, done: dict[str, Record]) -> Attack | None:
    """The n-input attack, if one was found; its latents are evaluated here, from the stored points."""
    if Task("several", 0).key not in done or int(space.evidence.read("attack_status")[0]) != FOUND:
        return None
    pair = space.evidence.read("attack_pair")
    attack = attack_of(space.model, pair[0], pair[1])
    if attack is None:
        raise IntegrityError(f"{space.folder}: the stored attack does not cross both thresholds")
    return attack


def attack_of(model: KernelExpansion, x: Array, x_prime: Array) -> Attack | None:
    """Two points (D,) as an attack, if they certainly are one."""
    if not (crosses_thresholds(model, x, x_prime) and model.domain.allows(x, x_prime)):
        return None
    latent = model.latent(np.stack([x, x_prime]))
    return Attack(
        n_inputs=model.domain.n_changes(x, x_prime),
        x=tuple(x.tolist()),
        x_prime=tuple(x_prime.tolist()),
        latent_x=float(latent[0]),
        latent_x_prime=float(latent[1]),
    )


def met_attack(model: KernelExpansion, attack: Attack | None, together: Joint) -> Attack | None:
    """The attack, or one of fewer inputs that the search over sets met."""
    for pair in together.met:
        x = to_model_units(model, pair[0])
        x_prime = np.where(pair[0] == pair[1], x, to_model_units(model, pair[1]))
        found = attack_of(model, x, x_prime)
        if found is not None and (attack is None or found.n_inputs < attack.n_inputs):
            attack = found
    return attack


def required_by_sum(model: KernelExpansion, upper: Array) -> int | None:
    """Fewest changes whose bounds (C,) sum to the thresholds' distance; None where all do not, or there are none."""
    delta = model.delta
    return None if delta is None else inputs_required(largest_sums(upper, towards=math.inf), lower_side(delta))


def required_by_all(model: KernelExpansion, by_sum: int | None, together: Joint) -> int | None:
    """Fewest inputs an attack changes, by the sum and by what the searches exclude; None as in `required_by_sum`."""
    if by_sum is None or together.excluded < by_sum:
        return by_sum
    return together.excluded + 1 if together.excluded < len(model.domain.changes) else None


def conclude(
    space: Workspace,
    units: UnitBounds,
    alone: Array,
    known: tuple[Array, Witnesses],
    attack: Attack | None,
    together: Joint,
    done: dict[str, Record],
    *,
    all_done: bool,
) -> Certificate:
    """Sum the n largest, compare with what is excluded together, and say what follows.

    C is the number of inputs and groups that count as one change each.

    Parameters
    ----------
    space : the run
    units : what is proved of every logical unit
    alone : (D,) bound of every input alone, from `bounds_alone`, or less where an enhancement proved less
    known : attained change (D,) of every input, and the pairs that attain it
    attack : from `several_attack`, or the better one from `met_attack`
    together : what the searches over several inputs exclude
    done : records of the tasks done
    all_done : whether those are all

    Raises
    ------
    IntegrityError
        If a bound lies below what a witness attains: then daskab is wrong, and says so instead of certifying.
    """
    upper, (attained, witnesses) = change_bounds(space, alone, done), change_witnesses(space, known, done)
    return certificate_of(
        space.folder,
        space.plan.question,
        space.model,
        evidence_digest(space, done),
        upper,
        attained,
        witnesses,
        attack,
        together,
        complete=all_done and units.open_inputs == 0,
        open_inputs=units.open_inputs,
    )


def certificate_of(
    folder: Path,
    question: Question,
    model: KernelExpansion,
    evidence: str,
    upper: Array,
    attained: Array,
    witnesses: Witnesses,
    attack: Attack | None,
    together: Joint,
    *,
    complete: bool,
    open_inputs: int,
) -> Certificate:
    """What follows for a model from bounds (C,), what is attained (C,), and what searches exclude; see `conclude`.

    ``evidence`` is the SHA-256 of all it rests on.
    """
    by_sum, names = required_by_sum(model, upper), model.domain.change_names(model.input_names)
    wrong = np.flatnonzero(~(upper >= attained))
    if wrong.size:
        d = int(wrong[0])
        raise IntegrityError(
            f"{folder}: {names[d]} attains {attained[d]!r}, above its bound {upper[d]!r}; "
            "this is a fault in daskab, please report it with the run directory"
        )
    required, at_best = required_by_all(model, by_sum, together), None
    if model.delta is not None:
        at_best = inputs_required(largest_sums(attained, towards=-math.inf), model.delta)
    if attack is not None and (required is None or attack.n_inputs < required):
        raise IntegrityError(
            f"{folder}: an attack changes {attack.n_inputs} inputs where {required} were certified; "
            "this is a fault in daskab, please report it with the run directory"
        )
    return Certificate(
        model_digest=question.model_digest,
        daskab_version=VERSION,
        run_id=question.run_id,
        evidence_sha256=evidence,
        method=question.method,
        slices=question.slices,
        rtol=question.rtol,
        input_names=names,
        latent_low=model.latent_low,
        latent_high=model.latent_high,
        delta=model.delta,
        upper_bound=upper,
        attained=attained,
        inputs_required=required,
        inputs_required_by_sum=by_sum,
        inputs_excluded_by_pairs=together.by_pairs,
        inputs_excluded_by_sets=together.by_sets,
        open_pairs=together.open_pairs,
        open_sets=together.open_sets,
        inputs_required_at_best=at_best,
        no_attack_exists=model.delta is not None and required is None,
        attack=attack,
        complete=complete,
        open_inputs=open_inputs,
        witnesses=witnesses,
    )
