"""What a job would do, as a table: logical units, tasks, memory, time."""

from __future__ import annotations

import os

from rich.table import Table

from daskab.bound.scaled import Scaled
from daskab.joint.midpoint.search import can_search
from daskab.model.expansion import KernelExpansion
from daskab.run.plan import Question
from daskab.run.sizing import Sizes, sized_plan, sizes


def describe_method(question: Question) -> str:
    """Method and slices, the grid's size, enhancements."""
    text = f"{question.method}, {question.slices} slices"
    if question.method == "grid":
        text += f", {question.resolution} lines along each of {question.components} directions"
    if question.enhance:
        text += f", {question.enhance} enhancements from {question.enhance_slices} slices"
    return text


def describe_searches(question: Question) -> str:
    """Which searches over several inputs would run, and for how long."""
    searches = []
    if question.pair_nodes and can_search(question.n_centres, question.n_inputs):
        searches.append(f"pairs, at most {question.pair_nodes:,} nodes")
    if question.set_nodes:
        searches.append(f"sets, at most {question.set_nodes:,} nodes")
    return "; ".join(searches) + ", if the sum leaves a gap to the attack" if searches else "none"


def describe_plan(label: str, question: Question, model: KernelExpansion, batch: int | None) -> Table:
    """Size up a question by timing a few of its units; nothing is stored."""
    scaled = Scaled.of(model)
    plan = sized_plan(question, scaled, batch)
    found: Sizes = sizes(plan, scaled)
    table = Table(title=label, title_justify="left", show_header=False)
    table.add_column("what", overflow="fold")
    table.add_column("value", justify="right", overflow="fold")
    workers = os.cpu_count() or 1
    rows = [
        ("run id", question.run_id),
        ("centres x inputs", f"{question.n_centres} x {question.n_inputs}"),
        ("method", describe_method(question)),
        (
            "logical units",
            f"{plan.n_units:,} (2 directions x {question.n_inputs} inputs x {plan.n_sequences} sequences)",
        ),
        ("tasks", f"{2 * plan.n_blocks + -(-plan.n_units // plan.batch):,} before any further round"),
        ("units a task", f"{plan.batch:,}"),
        ("memory a task", f"about {found.task_bytes / 2**20:,.1f} MiB beside the interpreter"),
        (
            "evidence on disk",
            f"at most {found.store_bytes / 2**20:,.1f} MiB before compression and further rounds",
        ),
        ("time, first round", f"about {found.first_round_seconds / workers:,.1f} s on {workers} processes"),
    ]
    if question.method == "adaptive":
        rows.append(
            (
                "time, whole node budget",
                f"at most {found.budget_seconds / workers:,.0f} s on {workers} processes",
            )
        )
        rows.append(("several inputs", describe_searches(question)))
    for row in rows:
        table.add_row(*row)
    return table
