"""Rounds of the search over pairs: what the next one takes up, and what all of them exclude, from what is stored.

Round 0 starts from the root; round r + 1 from what round r left open. Like `rounds`, a pure function of the evidence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab.errors import IntegrityError
from daskab.joint.nodes import EXCLUDED
from daskab.joint.search import Attacks, can_search, root_node
from daskab.run.records import Record
from daskab.run.rounds import LEAST, NODES_A_ROUND
from daskab.run.workspace import Workspace

Array = NDArray[Any]


class Joint(NamedTuple):
    """What the search over pairs came to."""

    excluded: int  #: no attack changes that many inputs or fewer; 0 where nothing was searched
    n_open: int  #: nodes left open


NOT_SEARCHED = Joint(0, 0)


def most_inputs(space: Workspace, required: int | None, attack_inputs: int | None) -> int:
    """Inputs an attack may change for the search to be worth its while: fewer than the attack's; 0 for no search.

    ``required`` are the inputs that the sum of the bounds certifies; None where all there are do not suffice, or the
    model has no thresholds.
    """
    model = space.model
    most = model.n_inputs if attack_inputs is None else attack_inputs - 1
    wanted = required is not None and most >= required
    able = space.plan.question.joint_nodes > 0 and can_search(model.n_centres, model.n_inputs)
    return most if wanted and able else 0


def prepare(space: Workspace, most: int, number: int) -> int:
    """Write the templates of a round; the number of its nodes, 0 when none is needed."""
    nodes = root_node(Attacks.of(space.model, most)) if number == 0 else open_nodes(space, number - 1)
    spent = [int(space.evidence.read(f"joint/{earlier}/used").sum()) for earlier in range(number)]
    left = space.plan.question.joint_nodes - sum(spent)
    share = min(left // max(1, nodes.shape[0]), NODES_A_ROUND)
    # A round that opened nothing has found nodes that cannot be split; neither can the next.
    if nodes.shape[0] == 0 or share < LEAST or (number > 0 and spent[-1] == 0):
        return 0
    space.evidence.create_joint_round(number, space.plan.joint_batch(share), nodes, share, most)
    return int(nodes.shape[0])


def open_nodes(space: Workspace, number: int) -> Array:
    """Everything round ``number`` left open (n, width), in the order of its batches."""
    tasks = space.tasks("joint", number)
    return np.concatenate([space.evidence.read_rows(f"joint/{number}/frontier", t.index) for t in tasks])


def conclude(space: Workspace, n_rounds: int, most: int, done: dict[str, Record]) -> Joint:
    """What is excluded after the last round; where a batch is not done, what it started from still holds."""
    if n_rounds == 0:
        return NOT_SEARCHED
    if any(space.evidence.joint_round(number)[1] != most for number in range(n_rounds)):
        raise IntegrityError(f"{space.folder}: the search over pairs was for other attacks than it should; run again")
    number = n_rounds - 1
    parts = []
    for task in space.tasks("joint", number):
        at = f"joint/{number}"
        if task.key in done:
            parts.append(space.evidence.read_rows(f"{at}/frontier", task.index))
        else:
            parts.append(space.evidence.read(f"{at}/nodes", space.evidence.rows(f"{at}/used", task.index)))
    excluded = np.concatenate([part[:, EXCLUDED] for part in parts])
    if not np.all((excluded >= 0.0) & (excluded <= most)):
        raise IntegrityError(f"{space.folder}: an open node of the search over pairs is damaged; run again")
    return Joint(int(excluded.min(initial=most)), excluded.size)
