"""Small models and helpers for tests of whole runs: asked in-process, in a subprocess, snapshotted, damaged."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

import daskab
from daskab import KernelExpansion, save_model
from daskab.run import workspace
from daskab.run.certify import make_question
from daskab.run.deadline import deadline_in
from daskab.run.driver import Drive
from daskab.run.executors import Executor
from daskab.run.executors.inline import Inline
from daskab.run.job import AttackOptions, BoundOptions, bound_options
from daskab.run.plan import Plan
from daskab.run.queue import answer
from daskab.run.records import Assignment, Record
from daskab.run.stages import Outcome
from daskab.run.tasks import execute

PATIENCE = 120.0
"""Seconds until a test gives up waiting for what always comes."""

ATTACK = AttackOptions(starts=4)

# The tolerance is out of reach, so every node budget is used up, in several rounds (see `short_rounds`).
ADAPTIVE = bound_options(slices=2, rtol=1e-9, node_budget=150)
FIXED = bound_options(method="fixed", slices=3, enhance=3)
GRID = bound_options(method="grid", slices=3, resolution=12, enhance=2, enhance_slices=5)
OPTIONS = {"adaptive": ADAPTIVE, "fixed": FIXED, "grid": GRID}


def mixed_model(m: int = 6, d: int = 3, seed: int = 1) -> KernelExpansion:
    """Weights of both signs, per-input units, a box away from zero, thresholds an attack can cross."""
    rng = np.random.default_rng(seed)
    lower = rng.uniform(-5.0, 5.0, d)
    size = rng.uniform(0.5, 4.0, d)
    model = KernelExpansion(
        lower + size * rng.random((m, d)), rng.normal(size=m), 0.5 * size, lower, lower + size, variance=1.5
    )
    low, high = np.percentile(model.latent(lower + size * rng.random((200, d))), [1, 99])
    return model.replace(latent_low=float(low), latent_high=float(high), input_names=[f"in{j}" for j in range(d)])


def wait_for(
    what: Callable[[], object],
    running: subprocess.Popen[str] | None = None,
    *,
    seconds: float = PATIENCE,
    logs: Path | None = None,
) -> None:
    """Until something is so; a process that ends before says why, and the logs in a folder why it never was."""
    deadline = time.monotonic() + seconds
    while not what():
        assert running is None or running.poll() is None, running.communicate()
        told = [] if logs is None else logs.glob("*.log")
        assert time.monotonic() < deadline, "\n".join(path.read_text(errors="replace") for path in told)
        time.sleep(0.02)


def wait_for_records(running: subprocess.Popen[str], runs: Path, least: int) -> None:
    """Until a run in progress has some batches of its long stage behind it."""
    wait_for(lambda: len(list(runs.glob("*/records/round*.json"))) >= least, running)


def but_progress(err: str) -> list[str]:
    """The lines of standard error, but for one of progress every half a minute."""
    return [line for line in err.splitlines() if line and " tasks" not in line]


SHORT = """\
[bound]
method = "fixed"
slices = 3
[attack]
starts = 4
[run]
batch = 6
"""


def write_job(folder: Path, *models: str, require_inputs: int | None = None) -> Path:
    """A job ``tiny`` of models that are bounded in a moment; of the first 2 inputs of 3 are certified, of others 1."""
    lines = ['name = "tiny"']
    for i, name in enumerate(models):
        save_model(mixed_model() if i == 0 else mixed_model(4, 2, seed=5), folder / f"{name}.npz")
        lines += ["[[model]]", f'name = "{name}"', f'file = "{name}.npz"']
    required = "" if require_inputs is None else f"require_inputs = {require_inputs}\n"
    (folder / "tiny.toml").write_text("\n".join(lines) + f"\n{SHORT}{required}")
    return folder / "tiny.toml"


WINE = """\
name = "wine"
[data]
source = "wine"
classes = ["class_1", "class_0"]
train_size = 60
[baseline]
kind = "logistic"
[[model]]
name = "m"
lengthscale = 4.0
inducing_points = 1
[bound]
method = "fixed"
slices = 2
[attack]
starts = 1
"""
"""A job whose one model is fitted, and certified, in a moment; with a baseline."""


class Said:
    """What a command printed, and its exit code."""

    def __init__(self, code: object, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Call = Callable[..., Said]
"""Of the fixture ``call``."""


class Logged(Inline):
    """The inline executor, noting what it did; it may stop after a number of tasks, or be interrupted there."""

    def __init__(self, most: int | None = None, *, interrupt: bool = False) -> None:
        self.most = most
        self.interrupt = interrupt
        self.did: list[str] = []

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[tuple[Assignment, Record]]:
        for given in assignments:
            assert given is not None
            if len(self.did) == self.most:
                if self.interrupt:
                    raise KeyboardInterrupt
                return
            record = execute(*given)
            self.did.append(given.task.key)
            yield given, record


def ask(
    model: KernelExpansion,
    bound: BoundOptions,
    runs: Path,
    executor: Executor | None = None,
    *,
    cut: tuple[int, int, int] = (5, 2, 60),
    time_limit: float | None = None,
) -> Outcome:
    """Answer a question in this process, cut into a few tasks of ``(batch, block, node_batch)``; see `Plan`."""
    question = make_question(model, bound, ATTACK)
    folder = runs / question.run_id
    if not workspace.exists(folder):
        workspace.create(folder, Plan(question, *cut), model)
    return answer(Drive(question, model, runs, deadline=deadline_in(time_limit)), executor or Inline())


def sealed(outcome: Outcome) -> bytes:
    """The bytes of a run's certificate."""
    return (outcome.folder / "certificate.json").read_bytes()


def run_folder(runs: Path) -> Path:
    """The one run directory in ``runs``."""
    (folder,) = (p for p in runs.iterdir() if p.name != "models")
    return folder


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time of change and content of every file under a folder but the lock."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != ".lock")
    return {str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes()) for p in files}


def environment() -> dict[str, str]:
    """Of a subprocess that shall import the same daskab as this process, from any working directory."""
    here = str(Path(daskab.__file__).parent.parent)
    path = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": here if not path else f"{here}{os.pathsep}{path}"}


def start(*args: str | Path, cwd: Path, group: bool = False) -> subprocess.Popen[str]:
    """Start daskab's command line, in a process group of its own if wanted."""
    return subprocess.Popen(
        [sys.executable, "-m", "daskab.cli", *map(str, args)],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=group,
    )
