"""Rounds of the searches over several inputs: what the next takes up, what all of them exclude, from what is stored.

First the pairs by their midpoint, if the centres span few directions; then the sets of one input more than is
excluded, and so on up to the attack. Round r + 1 starts from what round r left open, or begins the next search.
Like `rounds`, a pure function of the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab.bound.topn import lower_side
from daskab.errors import IntegrityError
from daskab.joint.attacks import Attacks
from daskab.joint.midpoint.nodes import EXCLUDED
from daskab.joint.midpoint.search import can_search, root_node
from daskab.joint.sets.candidates import candidates
from daskab.joint.sets.nodes import FIRST, FOUND, SPLIT
from daskab.joint.sets.search import pair_in, root_nodes
from daskab.run import batches
from daskab.run.records import Record
from daskab.run.rounds import LEAST, NODES_A_ROUND
from daskab.run.workspace import Workspace

Array = NDArray[Any]

PAIRS_A_SECOND = 1024
"""Nodes of the search over pairs, with some hundred inputs."""

PAIRS = 0
"""In the place of a set's size: the search over pairs, of any number of inputs."""


class Scope(NamedTuple):
    """What the searches are to close: the gap between the sum and the attack."""

    upper: Array  #: (C,) one-input bounds, of groups too
    required: int  #: inputs that their sum certifies
    most: int  #: inputs an attack may change, one fewer than the best one known does
    whether_sets: bool  #: if they are asked for, and the bounds closed, else sets would go their way; not of groups


class Search(NamedTuple):
    """What a round is about."""

    size: int  #: inputs in a set; PAIRS for the search over pairs
    most: int  #: inputs an attack may change


class Joint(NamedTuple):
    """What the searches came to."""

    by_pairs: int = 0  #: no attack changes that many inputs or fewer; 0 where pairs were not searched
    by_sets: int = 0  #: the same of sets, and of what they set out from; 0 where none closed
    open_pairs: int = 0  #: nodes left open
    open_sets: int = 0  #: sets of by_sets + 1 inputs left open
    met: tuple[tuple[Array, Array], ...] = ()  #: attacks the search over sets met, as pairs of scaled points (D,)

    @property
    def excluded(self) -> int:
        """No attack changes that many inputs or fewer."""
        return max(self.by_pairs, self.by_sets)


def scope(
    space: Workspace, upper: Array, required: int | None, attack_inputs: int | None, *, closed: bool
) -> Scope | None:
    """What is left to close; None where the sum leaves no gap to the attack.

    ``required`` are the inputs that the sum of the bounds certifies; None where all there are do not suffice, or the
    model has no thresholds.
    """
    domain = space.model.domain
    most = len(domain.changes) if attack_inputs is None else attack_inputs - 1
    if required is None or most < required or space.plan.question.method != "adaptive":
        return None
    return Scope(upper, required, most, closed and space.plan.question.set_nodes > 0 and not domain.groups)


def prepare(space: Workspace, what: Scope, asked: Sequence[Search]) -> Search | None:
    """Write the templates of the next round, after those asked already; what it is about, None when none is needed."""
    if asked:
        nodes = open_nodes(space, len(asked) - 1)
        if lay_out(space, asked[-1], nodes, asked):
            return asked[-1]
        if asked[-1].size != PAIRS and nodes.size:
            return None  # not all sets of this size can be excluded
    elif space.plan.question.pair_nodes and can_search(space.model.n_centres, space.model.n_inputs):
        pairs = Search(PAIRS, what.most)
        if lay_out(space, pairs, root_node(Attacks.of(space.model, what.most)), asked):
            return pairs
    size = 1 + max(what.required - 1, *(excluded_by(space, number, s) for number, s in last_rounds(asked)), 0)
    if not what.whether_sets or size > what.most or space.model.delta is None:
        return None
    sets = candidates(what.upper, lower_side(space.model.delta), size)
    search = Search(size, size)
    if sets is None or not lay_out(space, search, root_nodes(sets, Attacks.of(space.model, size)), asked):
        return None
    return search


def lay_out(space: Workspace, search: Search, nodes: Array, asked: Sequence[Search]) -> bool:
    """Write the templates of a round that starts from ``nodes``; False where there is nothing left to do or spend."""
    pairs = search.size == PAIRS
    budget = space.plan.question.pair_nodes if pairs else space.plan.question.set_nodes
    used = [int(space.evidence.read(f"joint/{number}/used").sum()) for number in range(len(asked))]
    spent = sum(u for u, earlier in zip(used, asked, strict=True) if (earlier.size == PAIRS) == pairs)
    share = min((budget - spent) // max(1, nodes.shape[0]), NODES_A_ROUND)
    # A round that opened nothing has found nodes that cannot be split; neither can the next.
    stuck = bool(asked) and asked[-1] == search and used[-1] == 0
    met = not pairs and bool(np.any(nodes[:, SPLIT] == FOUND))
    if nodes.shape[0] == 0 or share < LEAST or stuck or met:
        return False
    opened = None
    if asked and asked[-1] == search:
        opened = float(space.evidence.read(f"joint/{len(asked) - 1}/used").mean())
    # A node of a set is dearer than one of a round, but there are fewer.
    batch = batches.nodes(nodes.shape[0], PAIRS_A_SECOND if pairs else space.plan.node_batch, share, opened)
    space.evidence.create_joint_round(len(asked), batch, nodes, (share, *search))
    return True


def last_rounds(asked: Sequence[Search]) -> Iterator[tuple[int, Search]]:
    """Number of the last round of every search, and the search, in order."""
    for search, rounds in groupby(enumerate(asked), key=lambda item: item[1]):
        yield list(rounds)[-1][0], search


def excluded_by(space: Workspace, number: int, search: Search) -> int:
    """What a finished search excludes, given its last round."""
    nodes = open_nodes(space, number)
    if search.size != PAIRS:
        return 0 if nodes.size else search.size
    return int(nodes[:, EXCLUDED].min(initial=search.most))


def open_nodes(space: Workspace, number: int, done: dict[str, Record] | None = None) -> Array:
    """Everything round ``number`` left open (n, width), in the order of its batches.

    Where a batch is not in ``done``, what it started from still is.
    """
    at = f"joint/{number}"
    return np.concatenate(
        [
            space.evidence.read_rows(f"{at}/frontier", task.index)
            if done is None or task.key in done
            else space.evidence.read(f"{at}/nodes", space.evidence.rows(f"{at}/used", task.index))
            for task in space.tasks("joint", number)
        ]
    )


def conclude(space: Workspace, asked: Sequence[Search], done: dict[str, Record]) -> Joint:
    """What is excluded after the last round."""
    joint = Joint()
    for number, search in last_rounds(asked):
        if any(space.evidence.joint_round(r)[1:] != tuple(s) for r, s in enumerate(asked)):
            raise IntegrityError(f"{space.folder}: a search was for other attacks than it should; run again")
        nodes = open_nodes(space, number, done)
        if search.size == PAIRS:
            excluded = nodes[:, EXCLUDED]
            if not np.all((excluded >= 0.0) & (excluded <= search.most)):
                raise IntegrityError(f"{space.folder}: an open node of the search over pairs is damaged; run again")
            joint = Joint(int(excluded.min(initial=search.most)), open_pairs=excluded.size)
        elif nodes.size:
            open_sets = np.unique(nodes[:, FIRST : FIRST + search.size], axis=0).shape[0]
            attacks = Attacks.of(space.model, search.most)
            met = tuple(pair_in(node, attacks) for node in nodes if node[SPLIT] == FOUND)
            joint = joint._replace(open_sets=open_sets, met=met)
        else:
            joint = joint._replace(by_sets=search.size)
    return joint
