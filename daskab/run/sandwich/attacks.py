"""The tasks of a run that is made of others: attacks on its model, whose kernel none of its parts has."""

from __future__ import annotations

import io
import math
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskab.attack.attacker import Attacker, attacker
from daskab.attack.attained import attained_change, crosses_thresholds
from daskab.errors import IntegrityError, one_line
from daskab.files import path_at, reaching, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.model.npz import UNREADABLE
from daskab.run.records import Record, Task, read_record, write_record
from daskab.run.sandwich.layout import ATTACKS, RECORDS, SUM, Replaced, read_replaced
from daskab.run.sandwich.pairs import Pairs
from daskab.run.store import payload_digest
from daskab.run.workspace import check_question, seen_by_worker

Array = NDArray[np.float64]

MOST_TASKS = 64
"""Of the attacks on single changes: some seconds each where a model is large."""

FEWEST = Task("fewest", 0)
"""The attack on several changes at once, from what those found."""


def pair_tasks(model: KernelExpansion) -> list[Task]:
    """The attacks on single changes."""
    return [Task("pairs", b) for b in range(math.ceil(len(model.domain.changes) / block_size(model)))]


def block_size(model: KernelExpansion) -> int:
    """Changes a task."""
    return max(1, math.ceil(len(model.domain.changes) / MOST_TASKS))


def perform(folder: str, run_id: str, task: Task) -> Record:
    """Do one of the tasks on a worker: its work, what it found, and last its record."""
    at, begun = path_at(folder), time.monotonic()
    replaced = worker_replaced(folder, run_id)
    question = replaced.question
    attacks = attacker(replaced.model, question.attack_starts, question.attack_seed, replaced.total)
    if task == FEWEST:
        found = fewest(at, replaced.model, question.attack_starts, attacks)
    else:
        size = block_size(replaced.model)
        block = replaced.model.domain.changes[task.index * size : (task.index + 1) * size]
        found = np.array([attacks.best_pair(inputs) for inputs in block])
    content = io.BytesIO()
    np.save(content, found)
    write_atomically(at / ATTACKS / f"{task.key}.npy", content.getvalue())
    spent = time.monotonic() - begun
    record = Record.of(task, digest(run_id, task, found), found.shape[0], 0, 0, spent)
    write_record(at / RECORDS, record)
    return record


def fewest(folder: Path, model: KernelExpansion, starts: int, attacks: Attacker) -> Array:
    """The pair (1, 2, D) of fewest changes found, NaN if there is none; begun from the strongest single changes."""
    pairs = found_in(folder, model)
    attained = np.array([attained_change(model, x, x_prime) for x, x_prime in pairs])
    strongest = np.argsort(-attained, kind="stable")[:starts]
    best = attacks.fewest_changes(pairs[strongest, 0])
    if best is None or not crosses_thresholds(model, best.x, best.x_prime):
        return np.full((1, 2, model.n_inputs), np.nan)
    return np.stack([best.x, best.x_prime])[None]


def finished(folder: Path, model: KernelExpansion, task: Task) -> tuple[Record, Array] | None:
    """The record of a task that is done, and the pairs as it found them; None if it has to run (again)."""
    record = read_record(folder / RECORDS, task)
    try:
        found = found_by(folder, model, task)
    except IntegrityError:
        return None
    return (record, found) if record and record.payload_sha256 == digest(folder.name, task, found) else None


def digest(run_id: str, task: Task, found: Array) -> str:
    """Of what a task found; that of another run or task is another."""
    return payload_digest(np.frombuffer(f"{run_id} {task.key}".encode(), dtype=np.uint8), found)


def found_by(folder: Path, model: KernelExpansion, task: Task) -> Array:
    """The pairs (n, 2, D) that a task found.

    Raises
    ------
    IntegrityError
        If they cannot be read.
    """
    path, size = folder / ATTACKS / f"{task.key}.npy", block_size(model)
    expected = 1 if task == FEWEST else min(size, len(model.domain.changes) - task.index * size)
    try:
        with path.open("rb") as handle:
            pairs = np.load(handle, allow_pickle=False)
    except UNREADABLE as failed:
        raise IntegrityError(f"{path}: not readable ({one_line(failed)}); run again") from None
    shape = (expected, 2, model.n_inputs)
    if not isinstance(pairs, np.ndarray) or pairs.shape != shape or pairs.dtype != np.float64:
        raise IntegrityError(f"{path}: holds no pairs of points; run again")
    return pairs


def found_in(folder: Path, model: KernelExpansion) -> Array:
    """The pairs (C, 2, D) that the attacks on single changes found."""
    return np.concatenate([found_by(folder, model, task) for task in pair_tasks(model)])


def read_pairs(folder: Path, model: KernelExpansion) -> Pairs | None:
    """What all of the tasks found together; None where one of them is not done, or lost what it found."""
    attack = np.full((1, 2, model.n_inputs), np.nan)
    with reaching(folder):
        done = [finished(folder, model, task) for task in pair_tasks(model)]
        if model.delta is not None:
            several = finished(folder, model, FEWEST)
            if several is None:
                return None
            attack = several[1]
    found = [one[1] for one in done if one is not None]
    if len(found) < len(done):
        return None
    pairs = Pairs.of(model, np.concatenate(found), attack[0])
    changes = range(len(model.domain.changes))
    return pairs if all(model.domain.is_change(c, *pairs.witnesses.pair(c)) for c in changes) else None


def worker_replaced(folder: str, run_id: str) -> Replaced:
    """A worker's own view of such a run, kept between tasks for as long as it is the same file.

    Raises
    ------
    ClusterError
        If the worker does not see the run, or its numerics are others than the run's.
    """
    replaced = _opened(folder, *seen_by_worker(folder, SUM))
    check_question(folder, replaced.question, run_id)
    return replaced


@lru_cache(maxsize=4)
def _opened(folder: str, *_: object) -> Replaced:
    return read_replaced(path_at(folder))
