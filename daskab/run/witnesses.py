"""The best pair known for every input: from the attack, or met later while its bound was refined."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskab.attack.attained import attained_change
from daskab.bound.scaled import witness_pair
from daskab.bound.sequences import place
from daskab.run.certificate import Witnesses
from daskab.run.records import Record, Task
from daskab.run.workspace import Workspace

Array = NDArray[Any]


def attack_found(space: Workspace, done: dict[str, Record]) -> tuple[Array, Witnesses]:
    """Attained change (D,) of every input, rounded down, and the pairs that attain it, from the attack's tasks done.

    Where none is the pair is a point and itself, which attains 0.
    """
    model = space.model
    attained = np.zeros(model.n_inputs)
    x = np.tile(model.lower, (model.n_inputs, 1))
    moved_to = model.lower.copy()
    for index in range(space.plan.n_blocks):
        if Task("attack", index).key in done:
            rows = slice(space.block(index).start, space.block(index).stop)
            attained[rows] = space.evidence.read("search/attained", rows)
            x[rows] = space.evidence.read("search/witness", rows)
            moved_to[rows] = space.evidence.read("search/witness_to", rows)
    return attained, Witnesses(x, moved_to)


def met_in_round(
    space: Workspace, done: dict[str, Record], number: int, known: tuple[Array, Witnesses]
) -> tuple[Array, Witnesses]:
    """The same, with better pairs that the tasks done of a round met."""
    attained, x, moved_to = known[0].copy(), known[1].x.copy(), known[1].moved_to.copy()
    for task in space.tasks("round", number):
        if task.key not in done:
            continue
        for row in space.evidence.read_rows(f"rounds/{number}/found", task.index):
            d = place(int(row[-1]), space.plan.n_sequences)[0]
            pair = path_pair(space, d, row)
            pair = space.model.domain.reconciled(*pair, [d])
            change = attained_change(space.model, *pair)
            if change > attained[d]:
                attained[d], x[d], moved_to[d] = change, pair[0], pair[1][d]
    return attained, Witnesses(x, moved_to)


def path_pair(space: Workspace, d: int, row: Array) -> tuple[Array, Array]:
    """The two points, in the model's units, of a path that `refine_nodes` found."""
    start, end, others = row[1], row[2], row[3:-1]
    return witness_pair(space.model, d, np.insert(others, d, start), end)
