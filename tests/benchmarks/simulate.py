"""How a job would spread over more workers than there are here: its sealed runs, gone through again on paper.

    python tests/benchmarks/simulate.py RUNS [WORKERS ...]

RUNS is the directory of a job's sealed runs. All that the client does is done for real, by the queue and the drives of
daskab, in copies of them: opening, looking through, laying out rounds, concluding, sealing. Tasks are not done: each
takes the seconds its record says, on one of so many workers (default: 1 2 10 100 1000), and its record is put back.
What Dask's scheduler and daskab's client take for a task is measured first, with tasks that do nothing on workers that
are threads of this process. The client's clock goes on while it works, and waits while it waits; no file is written
late, and no worker starts late or dies.

Said for each number of workers: seconds in all, how much faster than one worker without any service, what share of the
time workers and client are busy, and seconds where the client took nothing at all: what is left is waiting for the
last tasks of stages. Then the longest chain: the seconds of the longest task of each stage, run after run side by side.
"""

from __future__ import annotations

import heapq
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import Client, LocalCluster

from daskab.run.driver import Drive
from daskab.run.executors import cluster
from daskab.run.executors.cluster import IN_FLIGHT, Cluster
from daskab.run.lease import LOCK
from daskab.run.queue import Queue
from daskab.run.records import Assignment, Record, Task, read_record, recorded, write_record
from daskab.run.workspace import open_workspace

NO_OPS = 2000


class Threads(Cluster):
    """Workers that are threads of this process."""

    name = "threads"

    @contextmanager
    def client(self) -> Iterator[Client]:
        with LocalCluster(n_workers=4, threads_per_worker=1, processes=False, dashboard_address=None) as workers:
            with Client(workers, set_as_default=False) as client:
                yield client


def seconds_a_task() -> float:
    """What a task costs that does nothing: of Dask's scheduler and client, and of daskab's."""

    def nothing(folder: str, run_id: str, task: Task) -> Record:
        return Record.of(task, "", 0, 0, 0, 0.0)

    real, cluster.execute = cluster.execute, nothing
    try:
        with tempfile.TemporaryDirectory() as folder, Threads(60.0) as threads:
            for count in (100, NO_OPS):  # the first time is not that of a task
                begun = time.perf_counter()
                for _ in threads.run(Assignment(folder, f"no-op-{count}", Task("round", i)) for i in range(count)):
                    pass
        return (time.perf_counter() - begun) / NO_OPS
    finally:
        cluster.execute = real


class OnPaper:
    """So many workers that are not there, and a clock of their own."""

    name = "on paper"

    def __init__(self, workers: int, records: dict[str, dict[str, Record]], cost: float, *, free: bool = False) -> None:
        self.workers = workers
        self.records = records
        self.cost = 0.0 if free else cost  #: seconds of the client for each task
        self.free = free  #: whether the client takes no time at all
        self.clock = self.client = self.busy = 0.0
        self.seen = time.perf_counter()

    def __enter__(self) -> OnPaper:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def worked(self) -> None:
        """What the client did since the last look goes onto its clock."""
        now = time.perf_counter()
        if not self.free:
            self.clock += now - self.seen
            self.client += now - self.seen
        self.seen = now

    def handled(self) -> None:
        """The client handed a task over and took its result."""
        self.clock += self.cost
        self.client += self.cost

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[tuple[Assignment, Record]]:
        """Each task ends when its worker would be through with it."""
        stream = iter(assignments)
        idle_from = [0.0] * self.workers
        running: list[tuple[float, int, Assignment]] = []
        number = 0
        while True:
            while len(running) < IN_FLIGHT * self.workers:
                given = next(stream, None)
                self.worked()
                if given is None:
                    break
                self.handled()
                seconds = self.records[given.run_id][given.task.key].seconds
                end = max(self.clock, heapq.heappop(idle_from)) + seconds
                heapq.heappush(idle_from, end)
                self.busy += seconds
                heapq.heappush(running, (end, number, given))
                number += 1
            if not running:
                return
            end, _, given = heapq.heappop(running)
            self.clock = max(self.clock, end)
            self.seen = time.perf_counter()
            record = self.records[given.run_id][given.task.key]
            write_record(Path(given.folder) / "records", record)
            self.seen = time.perf_counter()  # workers write records
            yield given, record
            self.worked()


def drives(runs: Path) -> Iterator[Drive]:
    """Of all runs in a directory, in the order they were made."""
    for folder in sorted(runs.glob("*/plan.json"), key=lambda path: path.stat().st_mtime):
        space = open_workspace(folder.parent)
        yield Drive(space.plan.question, space.model, runs)


def main(runs: Path, counts: list[int]) -> None:
    """Go through the runs once for each number of workers, and once more with a client that takes no time."""
    cost = seconds_a_task()
    print(f"a task that does nothing: {1000 * cost:.1f} ms")
    records: dict[str, dict[str, Record]] = {}
    chain = 0.0
    for path in runs.glob("*/certificate.json"):
        kept = path.parent / "records"
        found = [read_record(kept, task) for task in recorded(kept)]
        records[path.parent.name] = {record.task: record for record in found if record is not None}
        longest: dict[str, float] = {}
        for key, record in records[path.parent.name].items():
            stage = key.rpartition("-")[0]
            longest[stage] = max(longest.get(stage, 0.0), record.seconds)
        chain = max(chain, sum(longest.values()))
    total = sum(record.seconds for run in records.values() for record in run.values())
    n_tasks = sum(map(len, records.values()))
    print(f"{len(records)} runs, {n_tasks} tasks of {total:.1f} s together; longest chain of stages {chain:.1f} s")
    for count in counts:
        said = {}
        for free in (False, True):
            with tempfile.TemporaryDirectory() as scratch:
                copy = Path(scratch) / "runs"
                left_out = shutil.ignore_patterns(LOCK, "certificate*.json", "records", "models", "sweeps")
                shutil.copytree(runs, copy, ignore=left_out)
                paper = OnPaper(count, records, cost, free=free)
                paper.seen = time.perf_counter()
                for drive, outcome in Queue(drives(copy), paper).outcomes():
                    assert outcome.certificate.to_json() == (runs / drive.folder.name / "certificate.json").read_text()
                paper.worked()
                said[free] = paper
        with_client, without = said[False], said[True]
        print(
            f"{count} workers: {with_client.clock:.1f} s, {total / with_client.clock:.1f} x; workers busy "
            f"{100 * with_client.busy / count / with_client.clock:.0f} %, client "
            f"{100 * with_client.client / with_client.clock:.0f} %; {without.clock:.1f} s if the client took no time"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(one) for one in sys.argv[2:]] or [1, 2, 10, 100, 1000])
