"""What the service costs beside the bounds themselves, and how it spreads: each measure by its name.

    python tests/benchmarks/service.py [overhead] [spread] [hard] [resume] [units] [scheduler]

overhead: a job of about two minutes inline, then on one worker process; and the share of it that is not kernels
spread: a job of many inputs on one worker and on two, and the share of the time the two are busy
hard: the same of a job that is one hard input
resume: a run of 10,000 batches, stopped half-way, is looked through and goes on; bytes a unit
units: a plan of a million logical units; memory of the client
scheduler: memory of client and scheduler (one process) for 20,000 tasks

Numbers are only worth something on a machine with nothing else to do. Models are random, of fixed seeds.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

import numpy as np

from daskab import KernelExpansion
from daskab.bound.scaled import Scaled
from daskab.run.certify import make_question
from daskab.run.driver import Drive
from daskab.run.executors import Executor
from daskab.run.executors.inline import Inline
from daskab.run.executors.processes import Processes
from daskab.run.job import AttackOptions, BoundOptions, bound_options
from daskab.run.queue import answer
from daskab.run.records import Assignment, Failure, Record
from daskab.run.sizing import sample_bounds
from daskab.run.stages import Outcome

ATTACK = AttackOptions(starts=4)


def random_model(centres: int, inputs: int, lengthscale: float, seed: int = 0) -> KernelExpansion:
    """In the unit box, weights of both signs."""
    rng = np.random.default_rng(seed)
    model = KernelExpansion(
        rng.random((centres, inputs)), rng.normal(size=centres), lengthscale, np.zeros(inputs), np.ones(inputs)
    )
    low, high = np.percentile(model.latent(rng.random((1000, inputs))), [5, 95])
    return model.replace(latent_low=float(low), latent_high=float(high))


class Timed:
    """An executor that knows for how long it had tasks, and what they took."""

    def __init__(self, inner: Executor) -> None:
        self.inner = inner
        self.name = inner.name
        self.seconds = self.busy = 0.0
        self.tasks = 0

    def __enter__(self) -> Timed:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[tuple[Assignment, Record | Failure] | None]:
        """As the executor does."""
        running = 0
        begun = 0.0

        def counted() -> Iterator[Assignment | None]:
            nonlocal running, begun
            for given in assignments:
                if given is not None:
                    begun = begun if running else time.perf_counter()
                    running += 1
                yield given

        for ended in self.inner.run(counted()):
            if ended is not None:
                assert isinstance(ended[1], Record)
                self.busy += ended[1].seconds
                self.tasks += 1
                running -= 1
                if not running:
                    self.seconds += time.perf_counter() - begun
            yield ended


def ask(
    model: KernelExpansion, bound: BoundOptions, executor: Executor, runs: Path, batch: int | None = None
) -> tuple[float, Outcome]:
    """Seconds of a whole run, and its outcome."""
    begun = time.perf_counter()
    outcome = answer(Drive(make_question(model, bound, ATTACK), model, runs, batch=batch), executor)
    return time.perf_counter() - begun, outcome


@contextmanager
def folder() -> Iterator[Path]:
    """For the runs of one measure."""
    with tempfile.TemporaryDirectory(prefix="daskab-bench-") as name:
        yield Path(name)


def warm(executor: Executor) -> None:
    """Compile, or load what is compiled, everywhere."""
    with folder() as runs:
        ask(random_model(5, 6, 0.8), bound_options(set_nodes=100), executor, runs)
        ask(random_model(5, 6, 0.8), bound_options(method="fixed", slices=2), executor, runs)


LONG = random_model(100, 24, 0.9), bound_options(method="fixed", slices=45)
MANY = random_model(100, 30, 1.0), bound_options(node_budget=1200, pair_nodes=0, set_nodes=0)
HARD = random_model(60, 40, 1.5), bound_options(rtol=2e-5, node_budget=200_000, pair_nodes=0, set_nodes=0)
"""All but one of its inputs close at once."""


def overhead() -> None:
    """One worker process against this one."""
    inline = Timed(Inline())
    warm(inline)
    with folder() as runs:
        inline.busy = inline.seconds = 0.0
        alone, outcome = ask(*LONG, inline, runs)
        print(f"inline: {alone:.1f} s, of which tasks {inline.busy:.1f} s, {inline.tasks} tasks")
    with folder() as runs, Processes(1) as processes:
        warm(processes)
        timed = Timed(processes)
        seconds, other = ask(*LONG, timed, runs)
        print(
            f"one worker: {seconds:.1f} s, of which tasks {timed.busy:.1f} s; "
            f"overhead {100 * (seconds / alone - 1):.1f} % of inline, {100 * (seconds / timed.busy - 1):.1f} % of tasks"
        )
        assert other.certificate.to_json() == outcome.certificate.to_json()


def spread(what: tuple[KernelExpansion, BoundOptions] = MANY) -> None:
    """Two workers against one."""
    seconds = {}
    for workers in (1, 2):
        with folder() as runs, Processes(workers) as processes:
            warm(processes)
            timed = Timed(processes)
            seconds[workers], outcome = ask(*what, timed, runs)
            c = outcome.certificate
            print(
                f"{workers} workers: {seconds[workers]:.1f} s, stages {timed.seconds:.1f} s, tasks {timed.busy:.1f} s "
                f"in {timed.tasks}: busy {100 * timed.busy / workers / timed.seconds:.0f} % of stages, "
                f"{100 * timed.busy / workers / seconds[workers]:.0f} % of all; {c.open_inputs} inputs open"
            )
    print(f"two workers against one: {seconds[1] / seconds[2]:.2f} x; {ceiling():.2f} x if nothing were shared")


def ceiling() -> float:
    """How much more two processes get done on this machine than one, with nothing between them."""
    code = "import sys, service; service.kernels(); sys.stdin.readline(); print(service.kernels())"

    def together(count: int) -> float:
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True, cwd=Path(__file__).parent
            )
            for _ in range(count)
        ]
        time.sleep(10.0)  # until all have compiled
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        return max(float(worker.communicate()[0]) for worker in workers)

    return 2.0 * together(1) / together(2)


def kernels() -> float:
    """Seconds of some bounds, without any service."""
    model, scaled = LONG[0], Scaled.of(LONG[0])
    question = make_question(model, LONG[1], ATTACK)
    begun = time.perf_counter()
    for d in range(40):
        sample_bounds(question, scaled, d % model.n_inputs, 0.0, np.full(model.n_inputs, 0.5))
    return time.perf_counter() - begun


def hard() -> None:
    """The same of one hard input."""
    spread(HARD)


def resume() -> None:
    """A run of 10,000 batches that is stopped half-way."""
    model, bound = random_model(4, 25, 1.0), bound_options(method="fixed", slices=20)
    n_units = 2 * 25 * 210

    class Stops(Inline):
        def run(self, assignments: Iterable[Assignment | None]) -> Iterator[tuple[Assignment, Record]]:
            for number, ended in enumerate(super().run(assignments)):
                if number == n_units // 2:
                    raise KeyboardInterrupt
                yield ended

    warm(Inline())
    with folder() as runs:
        begun = time.perf_counter()
        try:
            ask(model, bound, Stops(), runs, batch=1)
        except KeyboardInterrupt:
            print(f"{n_units // 2} of {n_units} batches of one unit: {time.perf_counter() - begun:.1f} s")
        timed = Timed(Inline())
        seconds, outcome = ask(model, bound, timed, runs, batch=1)
        print(
            f"goes on: {seconds:.1f} s, {seconds - timed.seconds:.1f} s of it looking through what is there and sealing"
        )
        stored = sum(path.stat().st_size for path in outcome.folder.rglob("*") if path.is_file())
        files = sum(path.is_file() for path in outcome.folder.rglob("*"))
        blocks = sum(path.stat().st_blocks * 512 for path in outcome.folder.rglob("*"))
        print(
            f"batches of one unit: {stored / n_units:.0f} bytes a unit, {blocks / n_units:.0f} on disk, {files} files"
        )
    with folder() as runs:
        _, outcome = ask(model, bound, Inline(), runs)
        stored = sum(path.stat().st_size for path in outcome.folder.rglob("*") if path.is_file())
        print(f"batches as planned: {stored / n_units:.0f} bytes a unit")


def units() -> None:
    """A million units."""
    model, bound = random_model(4, 100, 1.0), bound_options(method="fixed", slices=100)
    warm(Inline())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with folder() as runs, Processes(os.cpu_count()) as processes:
        timed = Timed(processes)
        seconds, outcome = ask(model, bound, timed, runs)
        n_units = 2 * 100 * 5050
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        stored = sum(path.stat().st_size for path in outcome.folder.rglob("*") if path.is_file())
        print(
            f"{n_units} units in {timed.tasks} tasks: {seconds:.1f} s, tasks {timed.busy:.1f} s; "
            f"client {before:.0f} to {after:.0f} MiB, {stored / n_units:.1f} bytes a unit"
        )


def scheduler() -> None:
    """Twenty thousand tasks."""
    model, bound = random_model(3, 100, 1.0), bound_options(method="fixed", slices=14)
    with folder() as runs, Processes(os.cpu_count()) as processes:
        warm(processes)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        timed = Timed(processes)
        seconds, _ = ask(model, bound, timed, runs, batch=1)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{timed.tasks} tasks: {seconds:.1f} s, {1000 * timed.seconds / timed.tasks:.1f} ms each; "
            f"client and scheduler {before:.0f} to {after:.0f} MiB"
        )


MEASURES = {m.__name__: m for m in (overhead, spread, hard, resume, units, scheduler)}

if __name__ == "__main__":
    for name in sys.argv[1:] or MEASURES:
        print(f"# {name}", flush=True)
        MEASURES[name]()
