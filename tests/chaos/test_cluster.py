"""Chaos on a running cluster: its scheduler is killed, workers freeze, or are not what they should be."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusters import CUT, MODEL, OPTIONS, During, RunningCluster, answer, freeze, other_daskab, running_cluster, thaw
from distributed import Client
from examples import PATIENCE, ask, but_progress, mixed_model, sealed, start, wait_for

from daskab import save_model
from daskab.errors import ClusterError, IncompleteError

pytestmark = pytest.mark.slow


def test_a_killed_scheduler_and_its_workers_are_replaced(undisturbed: bytes, tmp_path: Path) -> None:
    with running_cluster(tmp_path, workers=1) as cluster:

        def replace() -> None:
            cluster.scheduler.kill()
            cluster.scheduler.wait()
            cluster.begin_scheduler()
            cluster.begin_worker()

        executor = During(cluster.executor(), {4: replace})
        assert sealed(answer(executor, tmp_path / "runs")) == undisturbed
        assert executor.came >= 4


@pytest.mark.long
def test_a_killed_scheduler_that_is_not_replaced(
    undisturbed: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line and a run that goes on, under another executor here."""
    with running_cluster(tmp_path, workers=1) as cluster:
        inner = cluster.executor()

        def kill() -> None:
            inner.patience = 3.0  # before, a busy machine may need a while to begin a worker
            cluster.scheduler.kill()

        executor = During(inner, {4: kill})
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
        with pytest.raises(
            IncompleteError, match="no worker came or answered in 5 s, 3 times; the same command goes on from here"
        ):
            answer(executor, tmp_path / "runs")


@pytest.mark.long
def test_the_last_worker_dies_and_another_comes(undisturbed: bytes, tmp_path: Path) -> None:
    with running_cluster(tmp_path, workers=1) as cluster:

        def replace() -> None:
            cluster.processes[-1].kill()
            threading.Timer(3.0, cluster.begin_worker).start()

        executor = During(cluster.executor(), {4: replace})
        assert sealed(answer(executor, tmp_path / "runs")) == undisturbed


def test_a_frozen_worker_is_given_up_and_thaws_again(
    undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks are done elsewhere; when it wakes up it finishes its own, to the same bytes."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "15s")
    with running_cluster(tmp_path, workers=1) as cluster:
        sleeper = cluster.processes[-1]

        def strike() -> None:
            freeze(sleeper)
            cluster.begin_worker()

        assert sealed(answer(During(cluster.executor(), {4: strike}), tmp_path / "runs")) == undisturbed
        log = (tmp_path / "scheduler-0.log").read_text()
        assert "failed to heartbeat" in log
        before = {
            path: path.read_bytes() for path in (tmp_path / "runs").glob("*/evidence.zarr/**/c/**") if path.is_file()
        }
        thaw(sleeper)
        time.sleep(2.0)
        assert {path: path.read_bytes() for path in before} == before


@pytest.mark.long
def test_a_scheduler_frozen_for_a_while_goes_on(undisturbed: bytes, tmp_path: Path) -> None:
    with running_cluster(tmp_path, workers=1) as cluster:

        def strike() -> None:
            freeze(cluster.scheduler)
            threading.Timer(4.0, thaw, [cluster.scheduler]).start()

        assert sealed(answer(During(cluster.executor(), {4: strike}), tmp_path / "runs")) == undisturbed


def test_a_scheduler_frozen_for_good_is_given_up(undisturbed: bytes, tmp_path: Path) -> None:
    with running_cluster(tmp_path, workers=1) as cluster:
        inner = cluster.executor()

        def strike() -> None:
            inner.patience = 3.0
            freeze(cluster.scheduler)

        executor = During(inner, {4: strike})
        with pytest.raises(
            IncompleteError, match=r"no scheduler can be reached there \(.+\); the same command goes on"
        ):
            answer(executor, tmp_path / "runs")
    assert sealed(ask(MODEL, OPTIONS, tmp_path / "runs", cut=CUT)) == undisturbed


# Whoever waits for a cluster can be stopped.


def no_scheduler(cluster: RunningCluster) -> None:
    cluster.scheduler.kill()
    cluster.scheduler.wait()


def no_worker(cluster: RunningCluster) -> None:
    wait_for_workers(cluster, 0)


def frozen_scheduler(cluster: RunningCluster) -> None:
    wait_for_workers(cluster, 0)
    freeze(cluster.scheduler)


@pytest.mark.parametrize(
    ("lacking", "signum", "code"),
    [
        (no_scheduler, signal.SIGINT, 130),
        (no_worker, None, 3),
        (frozen_scheduler, signal.SIGTERM, 143),
        pytest.param(no_worker, signal.SIGTERM, 143, marks=pytest.mark.long),
        pytest.param(frozen_scheduler, None, 3, marks=pytest.mark.long),
    ],
)
def test_who_waits_for_a_cluster_heeds_one_signal_and_the_time(
    lacking: Callable[[RunningCluster], None], signum: int | None, code: int, tmp_path: Path
) -> None:
    """Not only at the end of the patience, here ten minutes."""
    save_model(mixed_model(), tmp_path / "model.npz")
    with running_cluster(tmp_path, workers=0) as cluster:
        (tmp_path / "cluster.toml").write_text(
            f'[cluster]\nkind = "address"\naddress = "{cluster.address}"\npatience = 600\n'
        )
        lacking(cluster)
        limit = () if signum is not None else ("--time-limit", "5")
        where = ("--cluster", "cluster.toml", "--runs", "runs")
        running = start("certify", "model.npz", *where, *limit, cwd=tmp_path)
        try:
            if signum is not None:
                wait_for(lambda: list((tmp_path / "runs").glob("*/plan.json")), running)
                time.sleep(1.0)
                running.send_signal(signum)
            _, err = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
    assert running.returncode == code, err
    assert "Traceback" not in err
    assert len(but_progress(err)) <= 1, err
    assert not list((tmp_path / "runs").glob("*/certificate.json"))


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
    with Client(cluster.address, timeout=PATIENCE, set_as_default=False) as client:
        wait_for(lambda: len(client.nthreads()) == count)


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

        with pytest.raises(ClusterError, match=r"has daskab 0\.0\.1, here|other versions than the run was begun with"):
            answer(During(cluster.executor(), {4: replace}), tmp_path / "runs")
    assert sealed(ask(MODEL, OPTIONS, tmp_path / "runs", cut=CUT)) == undisturbed
