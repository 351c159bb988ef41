"""Runs on object storage come to the bytes that those on a disk do, and are held, mended and verified as they are."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from examples import (
    Call,
    Logged,
    ask,
    mixed_model,
    run_folder,
    sealed,
    start,
    wait_for,
    wait_for_records,
    write_job,
)
from object_storage import objects, s3_server

from daskab import certify
from daskab.errors import BusyError, JobError
from daskab.files import path_at, s3
from daskab.run import lease
from daskab.run.executors.handshake import greet, versions
from daskab.run.executors.inline import Inline
from daskab.run.executors.processes import Processes
from daskab.run.job import bound_options
from daskab.run.lease import Lease, held, one_writer
from daskab.run.records import Assignment, Record
from daskab.run.status import look_at
from daskab.verify.run import verify_run

pytest.importorskip("moto.server")

MODEL = mixed_model()
BOUND = bound_options(method="fixed", slices=3)
CUT = (36, 3, 60)  # one task a stage


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server that all tests here use, and where to find it."""
    with s3_server(tmp_path_factory.mktemp("s3")) as env, pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        bucket = path_at("s3://bucket")
        bucket.mkdir()
        yield
        with warnings.catch_warnings():  # s3fs leaves connections to the collector; no other test is to hear of them
            warnings.simplefilter("ignore", ResourceWarning)
            s3(bucket)[0].clear_instance_cache()
            gc.collect()


@pytest.fixture
def runs() -> Path:
    """An address that no other test uses."""
    return path_at(f"s3://bucket/{uuid4().hex}")


@contextmanager
def elsewhere(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> Iterator[None]:
    """As if this process had found something else in its environment."""
    fs, _ = s3(path_at("s3://bucket"))
    with monkeypatch.context() as patch:
        patch.setenv(name, value)
        fs.clear_instance_cache()
        yield
    fs.clear_instance_cache()


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The certificate of the same question, answered on a disk."""
    return sealed(ask(MODEL, BOUND, tmp_path_factory.mktemp("runs"), cut=CUT))


@pytest.mark.slow
def test_the_bytes_of_a_run_on_a_disk(runs: Path, on_disk: bytes) -> None:
    outcome = ask(MODEL, BOUND, runs, cut=CUT)
    assert str(outcome.folder).startswith("s3://bucket/")
    assert sealed(outcome) == on_disk
    again = Logged()
    assert ask(MODEL, BOUND, runs, again, cut=CUT).found
    assert not again.did
    there = objects(runs)
    assert all(check.held for check in verify_run(outcome.folder, Inline(), share=0.2, seed=0))
    assert look_at(outcome.folder).state == "sealed"
    assert objects(runs) == there  # neither wrote


class Frozen(Logged):
    """Wakes up after some tasks when the lease has run out."""

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[tuple[Assignment, Record]]:
        for ended in super().run(assignments):
            with pytest.MonkeyPatch.context() as patch:
                if len(self.did) == self.most:
                    patch.setattr(lease, "EXPIRY", -1.0)
                yield ended


@pytest.mark.slow
def test_a_client_without_its_lease_stops_and_what_is_damaged_is_done_again(runs: Path, on_disk: bytes) -> None:
    frozen = Frozen(4)
    with pytest.raises(BusyError):
        ask(MODEL, BOUND, runs, frozen, cut=(18, 3, 60))
    assert frozen.did[-1] == "round-0-000000"
    evidence = run_folder(runs) / "evidence.zarr"
    (evidence / "contributions" / "c" / "0" / "0" / "0" / "0" / "0").unlink()
    bound = evidence / "rounds" / "0" / "closed" / "c" / "0"
    bound.write_bytes(bound.read_bytes()[:-3])
    resumed = Logged()
    assert sealed(ask(MODEL, BOUND, runs, resumed)) == on_disk
    assert resumed.did == ["contributions-000000", "round-0-000000", "round-0-000001"]


@pytest.mark.slow
def test_a_killed_client_is_succeeded_when_its_lease_runs_out(
    call: Call, tmp_path: Path, runs: Path, on_disk: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = write_job(tmp_path, "m")
    first = start("run", job, "--runs", str(runs), cwd=tmp_path)
    wait_for_records(first, runs, 2)
    first.kill()
    first.communicate()
    run = run_folder(runs)
    assert not (run / "certificate.json").exists()
    assert look_at(run).state == "running"  # for all anybody can tell
    second = call("run", job, "--runs", str(runs))
    assert second.code == 75
    assert f"process {first.pid} on " in second.err
    with monkeypatch.context() as patch:
        patch.setattr(lease, "EXPIRY", 0.0)
        with one_writer(run):
            pass
    assert look_at(run).state == "stopped"
    there = {name: what for name, what in objects(runs).items() if "/records/" in name}
    assert call("run", job, "--runs", str(runs)).code == 0
    assert there.items() <= objects(runs).items()
    assert (run / "certificate.json").read_bytes() == on_disk
    assert run.name in call("ls", str(runs)).out
    assert call("status", str(run)).code == 0
    assert call("verify", str(run), "--share", "0").out.endswith(f"{run}: verified\n")


@pytest.mark.recipe
def test_local_processes_come_to_the_same_bytes(runs: Path, on_disk: bytes) -> None:
    with Processes(1) as workers:
        assert sealed(ask(MODEL, BOUND, runs, workers, cut=CUT)) == on_disk
    assert not list(runs.glob("*/.probe*"))


def test_a_worker_without_credentials_sees_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = runs / "probe"
    probe.write_text("token")
    assert greet(str(probe)) == (versions(), "token")
    with elsewhere(monkeypatch, "AWS_ACCESS_KEY_ID", ""):
        assert greet(str(probe)) == (versions(), "")


def test_one_writer_a_run(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = runs / "run"
    assert not held(folder)
    with one_writer(folder) as check:
        check()
        assert held(folder)
        with pytest.raises(BusyError, match="is working on this run"), one_writer(folder):
            pass
    assert not held(folder)
    monkeypatch.setattr(lease, "RENEWAL", 0.01)
    with one_writer(folder):
        seen = Lease(folder).look()
        wait_for(lambda: Lease(folder).look() != seen)


def test_a_lease_that_was_taken_is_lost(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (Lease(runs) for _ in range(3))
    first.take()
    with monkeypatch.context() as patch:
        patch.setattr(lease, "EXPIRY", 0.0)
        seen = first.look()
        second.take()
        patch.setattr(Lease, "look", lambda _: seen)
        with pytest.raises(BusyError, match="just now"):  # it saw what the second saw, and comes too late
            third.take()
    first.check()
    first.renew()
    with pytest.raises(BusyError, match="the same command goes on"):
        first.check()
    first.release()
    second.check()
    assert held(runs)
    second.release()
    assert not held(runs)


def test_storage_that_heeds_no_conditions_is_refused(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "NEVER", ({},))
    with pytest.raises(OSError, match="ignores If-None-Match"), one_writer(runs):
        pass


def test_mistakes_are_told_in_a_line(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write_job(tmp_path, "m")
    said = call("run", job, "--runs", "s3://absent/runs")
    assert said.code == 2
    assert said.err.splitlines()[-1].endswith("The specified bucket does not exist")
    assert call("ls", "s3://absent/runs").code == 2
    assert call("status", "s3://bucket/no/run").code == 4
    for address in ("gs://bucket/runs", "s3://"):
        assert "expected a path or s3://bucket/prefix" in call("run", job, "--runs", address).err
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(JobError, match=r"pip install 'daskab\[s3\]'"):
        certify(MODEL, runs="s3://bucket/runs")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1", "Could not connect"),
        ("AWS_ENDPOINT_URL", "127.0.0.1:1", "Invalid endpoint"),
        ("AWS_ACCESS_KEY_ID", "", "Unable to locate credentials"),
    ],
)
def test_what_keeps_it_out_of_reach_is_told_in_a_line(
    call: Call, tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    with elsewhere(monkeypatch, name, value):
        said = call("run", write_job(tmp_path, "m"), "--runs", str(runs))
    assert said.code == 2
    assert told in said.err.splitlines()[-1]
    assert "Traceback" not in said.err
