"""What a run took, where, and how it was planned: for people and reports, nothing that is certified rests on it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from daskab.files import write_atomically
from daskab.run.plan import canonical_json
from daskab.run.records import Failure, Record

PROVENANCE = "provenance.json"
MOST = 1e15  #: seconds, nodes, tasks: no number beyond, and none that is not one, is believed


def provenance_of(
    run_id: str, executor: str, begun: datetime, records: Iterable[Record], failures: Iterable[Failure]
) -> dict[str, Any]:
    """What is said of a run that ends now, from the records of its tasks and those that could not be done."""
    done = list(records)
    return {
        "run_id": run_id,
        "executor": executor,
        "begun": begun.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "task_seconds": round(sum(r.seconds for r in done), 3),
        "nodes": sum(r.opened for r in done),
        "tasks": len(done),
        "failures": [asdict(failure) for failure in failures],
        "hosts": sorted({r.host for r in done}),
        "client": {"host": platform.node(), "python": platform.python_version(), "cpus": os.cpu_count()},
    }


def with_parts(own: dict[str, Any], parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What is said of a run that is made of others, whose own tasks are not all there was to do."""
    for said in parts:
        for name in ("task_seconds", "nodes", "tasks"):
            if isinstance(said.get(name), int | float) and abs(said[name]) <= MOST:
                own[name] += said[name]
        if isinstance(said.get("hosts"), list):
            own["hosts"] = sorted({*own["hosts"], *map(str, said["hosts"])})
    return own


def write_provenance(folder: Path, said: dict[str, Any]) -> None:
    """Keep it beside the run."""
    write_atomically(folder / PROVENANCE, canonical_json(said))


def read_provenance(folder: Path) -> dict[str, Any]:
    """What is said of a run; empty where that is not known."""
    try:
        said = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
