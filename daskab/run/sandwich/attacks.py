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
from daskab.errors import IntegrityError
from daskab.files import path_at, write_atomically
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
    record = Record.of(task, payload_digest(found), found.shape[0], 0, 0, time.monotonic() - begun)
    write_record(at / RECORDS, record)
    return record


def fewest(folder: Path, model: KernelExpansion, starts: int, attacks: Attacker) -> Array:
    """The pair (1, 2, D) of fewest changes found, NaN if there is none; begun from the strongest single changes."""
    pairs = found_by(folder, pair_tasks(model))
    attained = np.array([attained_change(model, x, x_prime) for x, x_prime in pairs])
    strongest = np.argsort(-attained, kind="stable")[:starts]
    best = attacks.fewest_changes(pairs[strongest, 0])
    if best is None or not crosses_thresholds(model, best.x, best.x_prime):
        return np.full((1, 2, model.n_inputs), np.nan)
    return np.stack([best.x, best.x_prime])[None]


def finished(folder: Path, task: Task) -> Record | None:
    """The record of a task that is done and whose pairs are there as it found them; None if it has to run (again)."""
    record = read_record(folder / RECORDS, task)
    try:
        return record if record and payload_digest(found_by(folder, [task])) == record.payload_sha256 else None
    except IntegrityError:
        return None


def found_by(folder: Path, tasks: list[Task]) -> Array:
    """The pairs (n, 2, D) that tasks found.

    Raises
    ------
    IntegrityError
        If some cannot be read.
    """
    found = []
    for task in tasks:
        path = folder / ATTACKS / f"{task.key}.npy"
        try:
            with path.open("rb") as handle:
                pairs = np.load(handle, allow_pickle=False)
        except UNREADABLE as failed:
            raise IntegrityError(f"{path}: not readable ({failed}); run again") from None
        if pairs.ndim != 3 or pairs.shape[1] != 2 or pairs.dtype != np.float64:
            raise IntegrityError(f"{path}: holds no pairs of points; run again")
        found.append(pairs)
    return np.concatenate(found)


def gathered(folder: Path, model: KernelExpansion) -> Pairs:
    """What all of the tasks found together."""
    attack = found_by(folder, [FEWEST])[0] if model.delta is not None else np.full((2, model.n_inputs), np.nan)
    return Pairs.of(model, found_by(folder, pair_tasks(model)), attack)


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
