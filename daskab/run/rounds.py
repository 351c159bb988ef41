"""Rounds of refinement: which nodes the next one takes and how much each may cost, from what is stored alone.

Round 0 bounds every logical unit; round r + 1 takes what round r left open of inputs that have some of their budget
left. What it does not take stays open for good. All of it is a pure function of the evidence, so a run that was
interrupted plans the same rounds when it goes on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab.bound.nodes import BOUND, UNIT
from daskab.run import batches
from daskab.run.plan import Plan
from daskab.run.store import Evidence

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NODES_A_ROUND = 256
"""Most nodes opened below one node of a round: enough to finish an easy one, few enough to spread a hard one."""

LEAST = 4
"""An allowance below this opens nothing."""


def prepare(evidence: Evidence, plan: Plan, goal: Array, attained: Array, number: int) -> int:
    """Write the templates of a round and what its tasks share; the number of its nodes, 0 when none is needed."""
    if number == 0:
        nodes, units = None, np.arange(plan.n_units)
    else:
        nodes = open_nodes(evidence, number - 1)
        units = nodes[:, UNIT].astype(np.int64)
    share = allowance(evidence, plan, units, number)
    if number > 0 and not share.any():
        return 0
    batch = plan.batch
    if nodes is not None:
        taken = share[plan.input_of(units)] > 0
        nodes, units = nodes[taken], units[taken]
        opened = float(evidence.column(f"rounds/{number - 1}/used").mean())
        batch = batches.nodes(units.size, plan.node_batch, int(share.max()), opened)
    refines = plan.question.method == "adaptive"
    evidence.create_round(number, batch, units.size, nodes, goal, share, attained, refines=refines)
    return units.size


def open_nodes(evidence: Evidence, number: int) -> Array:
    """Everything round ``number`` left open (n, width), in the order of its batches."""
    n_batches = evidence.n_batches(f"rounds/{number}/closed")
    nodes = np.concatenate([evidence.read_rows(f"rounds/{number}/frontier", b) for b in range(n_batches)])
    evidence.kept(f"rounds/{number}/open", lambda: nodes[:, [UNIT, BOUND]])
    return nodes


def open_bounds(evidence: Evidence, number: int) -> Array:
    """Unit and bound (n, 2) of everything round ``number`` left open."""
    return evidence.kept(f"rounds/{number}/open", lambda: open_nodes(evidence, number)[:, [UNIT, BOUND]])


def is_taken(evidence: Evidence, plan: Plan, units: Ints, number: int) -> Flags:
    """Which of the units (n,) that the round before left open round ``number`` takes."""
    return np.asarray(evidence.column(f"rounds/{number}/allowance")[plan.input_of(units)] > 0.0)


def round_units(evidence: Evidence, plan: Plan, number: int) -> Ints:
    """Logical unit (n,) of every node of a round."""
    if number == 0:
        return np.arange(plan.n_units)
    at = f"rounds/{number}/nodes"
    return evidence.kept(f"{at}/unit", lambda: evidence.read(at)[:, UNIT].astype(np.int64))


def allowance(evidence: Evidence, plan: Plan, units: Ints, number: int) -> Ints:
    """Most nodes (D,) one node of a round may open: an even share of what its input has left."""
    spent = np.zeros(plan.question.n_inputs)
    for earlier in range(number):
        inputs = plan.input_of(round_units(evidence, plan, earlier))
        np.add.at(spent, inputs, evidence.column(f"rounds/{earlier}/used"))
    waiting = np.bincount(plan.input_of(units), minlength=plan.question.n_inputs)
    left = np.maximum(plan.question.node_budget - spent.astype(np.int64), 0)
    share = np.minimum(left // np.maximum(waiting, 1), NODES_A_ROUND)
    return np.where((share >= LEAST) & (waiting > 0), share, 0).astype(np.int64)
