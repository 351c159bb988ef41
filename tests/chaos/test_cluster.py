"""Chaos on a running cluster: its scheduler is killed, workers freeze, or are not what they should be."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from clusters import PATIENCE, RunningCluster, freeze, other_daskab, running_cluster, thaw
from examples import ask, mixed_model, sealed

from daskab.errors import ClusterError, IncompleteError
from daskab.run.cluster import ClusterOptions
from daskab.run.driver import Outcome
from daskab.run.executors.address import Address
from daskab.run.job import bound_options
from daskab.run.records import Failure, Record, Task

pytestmark = pytest.mark.slow

MODEL = mixed_model(20, 8)
OPTIONS = bound_options(method="fixed", slices=12)
CUT = (36, 6, 60)
"""Some fifty tasks that take some seconds."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The certificate, made in peace and inline."""
    return sealed(ask(MODEL, OPTIONS, tmp_path_factory.mktemp("whole"), cut=CUT))


class During(Address):
    """Does something once, when a number of records of the long stage have come."""

    def __init__(self, cluster: RunningCluster, what: object, after: int = 4) -> None:
        super().__init__(ClusterOptions(kind="address", address=cluster.address))
        self.what = what
        self.after = after

    def run(self, folder: str, run_id: str, tasks: Iterable[Task]) -> Iterator[Record | Failure]:
        for record in super().run(folder, run_id, tasks):
            if isinstance(record, Record) and record.task.startswith("round"):
                self.after -= 1
                if self.after == 0:
                    self.what()  # type: ignore[operator]
            yield record


def answer(executor: Address, runs: Path) -> Outcome:
    with executor:
        return ask(MODEL, OPTIONS, runs, executor, cut=CUT)


def test_a_killed_scheduler_and_its_workers_are_replaced(undisturbed: bytes, tmp_path: Path) -> None:
    with running_cluster(tmp_path, workers=1) as cluster:

        def replace() -> None:
            cluster.scheduler.kill()
            cluster.scheduler.wait()
            cluster.begin_scheduler()
            cluster.begin_worker()

        executor = During(cluster, replace)
        assert sealed(answer(executor, tmp_path / "runs")) == undisturbed
        assert executor.after <= 0


def test_a_killed_scheduler_that_is_not_replaced(
    undisturbed: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line and a run that goes on, under another executor here."""
    with running_cluster(tmp_path, workers=1) as cluster:
        executor = During(cluster, cluster.scheduler.kill)
        executor.patience = 3.0
        with pytest.raises(
            (ClusterError, IncompleteError), match=r"no scheduler can be reached|goes on from here"
        ) as e:
            answer(executor, tmp_path / "runs")
        assert "\n" not in str(e.value)
    assert capfd.readouterr().err == ""
    assert list((tmp_path / "runs").glob("*/records/round-*.json"))
    assert sealed(ask(MODEL, OPTIONS, tmp_path / "runs", cut=CUT)) == undisturbed


def test_no_worker_ever_comes(tmp_path: Path) -> None:
    with running_cluster(tmp_path, workers=0) as cluster:
        wait_for_workers(cluster, 0)  # until the scheduler answers
        executor = cluster.executor()
        executor.patience = 5.0
        with pytest.raises(IncompleteError, match="no worker came in 5 s, 3 times; the same command goes on from here"):
            answer(executor, tmp_path / "runs")


def test_the_last_worker_dies_and_another_comes(undisturbed: bytes, tmp_path: Path) -> None:
    with running_cluster(tmp_path, workers=1) as cluster:

        def replace() -> None:
            cluster.processes[-1].kill()
            threading.Timer(3.0, cluster.begin_worker).start()

        executor = During(cluster, replace)
        assert sealed(answer(executor, tmp_path / "runs")) == undisturbed


def test_a_frozen_worker_is_given_up_and_thaws_again(
    undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks are done elsewhere; when it wakes up it finishes its own, to the same bytes."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "8s")
    with running_cluster(tmp_path, workers=1) as cluster:
        sleeper = cluster.processes[-1]

        def strike() -> None:
            freeze(sleeper)
            cluster.begin_worker()

        assert sealed(answer(During(cluster, strike), tmp_path / "runs")) == undisturbed
        log = (tmp_path / "scheduler-0.log").read_text()
        assert "failed to heartbeat" in log
        before = {
            path: path.read_bytes() for path in (tmp_path / "runs").glob("*/evidence.zarr/**/c/**") if path.is_file()
        }
        thaw(sleeper)
        time.sleep(2.0)
        assert {path: path.read_bytes() for path in before} == before


# Workers that must not be given tasks.


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """A cluster of one good worker that nobody kills."""
    with running_cluster(tmp_path_factory.mktemp("common"), workers=1) as cluster:
        wait_for_workers(cluster, 1)
        yield cluster


def refused(cluster: RunningCluster, runs: Path, match: str, *, path: Path | None = None, before: tuple = ()) -> None:
    """Whether a run is refused before any work because of one more worker."""
    worker = cluster.begin_worker(path, before)
    wait_for_workers(cluster, 2)
    with pytest.raises(ClusterError, match=match) as caught:
        answer(cluster.executor(), runs)
    worker.kill()
    assert "\n" not in str(caught.value)
    assert not list(runs.glob("*/records/*.json"))
    assert not list(runs.glob("*/.probe*"))
    wait_for_workers(cluster, 1)


def wait_for_workers(cluster: RunningCluster, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    with cluster.executor().client() as client:
        while len(client.nthreads()) != count:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_running_cluster_gives_the_same_bytes_and_is_left_running(
    common: RunningCluster, undisturbed: bytes, tmp_path: Path
) -> None:
    assert sealed(answer(common.executor(), tmp_path / "runs")) == undisturbed
    assert all(process.poll() is None for process in common.processes)


def test_a_worker_of_another_version_is_refused(common: RunningCluster, tmp_path: Path) -> None:
    other = other_daskab(tmp_path / "other", "0.0.1")
    refused(common, tmp_path / "runs", r"worker tcp://\S+: has daskab 0.0.1, here it is .*; install", path=other)


def test_a_worker_without_daskab_is_refused(common: RunningCluster, tmp_path: Path) -> None:
    (tmp_path / "none" / "daskab").mkdir(parents=True)
    (tmp_path / "none" / "daskab" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'daskab'\")")
    match = r"worker tcp://\S+: (cannot run daskab|gave no answer).*; install .*there"
    refused(common, tmp_path / "runs", match, path=tmp_path / "none")


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare to hide files")
def test_a_worker_that_does_not_see_the_run_is_refused(common: RunningCluster, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    hide = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs none "{tmp_path}/runs" && exec "$@"', "sh")
    match = r"worker tcp://\S+: does not see .*; put runs where all workers can"
    refused(common, tmp_path / "runs", match, before=hide)


def test_a_worker_of_another_version_that_comes_late_is_refused(undisturbed: bytes, tmp_path: Path) -> None:
    with running_cluster(tmp_path, workers=1) as cluster:
        other = other_daskab(tmp_path / "other", "0.0.1")

        def replace() -> None:
            cluster.processes[-1].kill()
            cluster.begin_worker(other)

        with pytest.raises(ClusterError, match="computes with other versions than the run was begun with"):
            answer(During(cluster, replace), tmp_path / "runs")
    assert sealed(ask(MODEL, OPTIONS, tmp_path / "runs", cut=CUT)) == undisturbed
