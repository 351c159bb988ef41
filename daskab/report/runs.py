"""Runs as tables: a directory of them, and one in detail."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group
from rich.table import Table
from rich.text import Text

from daskab.run.status import RunStatus

DOING = {
    "sealed": "its certificate is final",
    "running": "a process is working on it",
    "stopped": "no process is working on it; the command that began it goes on from here",
    "damaged": "its plan cannot be read; move it away and start again",
}


def describe_runs(runs: Iterable[RunStatus]) -> Table:
    """One line a run."""
    table = Table(box=None)
    for column in ("run", "state", "size", "certified", "attack", "tasks", "last task, UTC"):
        table.add_column(column, no_wrap=True)
    for run in runs:
        question = run.question
        size = "" if question is None else f"{question.n_centres} x {question.n_inputs}"
        table.add_row(
            run.folder.name,
            run.state,
            size,
            certified(run),
            "" if run.certificate is None else str(run.certificate.get("attack_inputs") or "none found"),
            str(run.tasks),
            (run.last or "")[:16].replace("T", " "),
        )
    return table


def certified(run: RunStatus) -> str:
    """The number of inputs a run certifies, so far."""
    said = run.certificate
    if said is None:
        return ""
    if said.get("no_attack_exists"):
        return "no attack exists"
    number = said.get("inputs_required")
    if number is None:
        return "no thresholds"
    return f"{number}" if run.state == "sealed" and said.get("complete") else f"{number} so far"


def describe_run(run: RunStatus) -> Group:
    """The stages of one run."""
    title = f"{run.folder}: {run.state}, {DOING[run.state]}"
    if certified(run):
        title += f"\nCertified: {certified(run)}"
    table = Table()
    table.add_column("stage")
    for column in ("tasks", "items", "nodes", "left open", "seconds"):
        table.add_column(column, justify="right")
    for stage in run.stages:
        counts = (stage.tasks, stage.items, stage.opened, stage.left_open)
        table.add_row(stage.stage, *(f"{n:,}" for n in counts), f"{stage.seconds:,.1f}")
    # Beside the table, not of it, so that they are not broken to its width.
    last = [] if run.last is None else [Text(f"Last task finished {run.last} on {', '.join(run.hosts)}")]
    return Group(Text(title), table, *last)
