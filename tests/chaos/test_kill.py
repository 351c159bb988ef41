"""Chaos: runs that are killed, interrupted or damaged come to the same bytes, or to one line that says why not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from chaos.faults import DAMAGE
from examples import (
    ADAPTIVE,
    PATIENCE,
    Logged,
    ask,
    but_progress,
    mixed_model,
    run_folder,
    sealed,
    start,
    wait_for,
    wait_for_records,
)

from daskab import IntegrityError, save_model
from daskab.cli import main
from daskab.run.executors.processes import Processes
from daskab.run.stages import Outcome
from daskab.run.tasks import finished
from daskab.run.workspace import open_workspace

JOB = """\
name = "chaos"
[[model]]
name = "m"
file = "model.npz"
[bound]
method = "fixed"
slices = 12
[run]
batch = 36
"""


def processes_of(session: int) -> dict[int, str]:
    """Ids and command lines of the processes of a session that still run."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state != "Z":
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def workers_of(session: int) -> set[int]:
    """Ids of the workers of a session."""
    return {pid for pid, command in processes_of(session).items() if "spawn_main" in command}


def wait_for_end(session: int) -> None:
    """Until no process of a session runs any more."""
    deadline = time.monotonic() + 10.0
    while left := processes_of(session):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that runs for some seconds, in some fifty tasks."""
    folder = tmp_path_factory.mktemp("job")
    save_model(mixed_model(20, 12), folder / "model.npz")
    (folder / "chaos.toml").write_text(JOB)
    return folder


@pytest.fixture(scope="module")
def undisturbed(job: Path) -> bytes:
    """The certificate of the job, run once in peace."""
    assert finish(job, job / "undisturbed") == 0
    return (run_folder(job / "undisturbed") / "certificate.json").read_bytes()


def finish(job: Path, runs: Path) -> object:
    """Run the job to its end, in this process; its exit code."""
    with pytest.raises(SystemExit) as caught:
        main(["run", str(job / "chaos.toml"), "--runs", str(runs)])
    return caught.value.code


def interrupted(job: Path, runs: Path, signum: int, *options: str, least: int = 4) -> tuple[int, str, int]:
    """Send a signal in mid-run: exit code, standard error, batches that were finished."""
    running = start("run", job / "chaos.toml", "--runs", runs, *options, cwd=job, group=True)
    try:
        wait_for_records(running, runs, least)
        os.kill(running.pid, signum)
        _, err = running.communicate(timeout=PATIENCE)
        wait_for_end(running.pid)
    finally:
        running.kill()
    records = list(runs.glob("*/records/*.json"))
    assert not list(runs.glob("*/certificate.json"))
    return running.returncode, err, len(records)


@pytest.mark.parametrize(
    ("signum", "code", "line"),
    [
        (signal.SIGKILL, -signal.SIGKILL, ""),
        (signal.SIGINT, 130, "daskab: interrupted; the same command goes on from here"),
        (signal.SIGTERM, 143, "daskab: terminated; the same command goes on from here"),
    ],
    ids=["SIGKILL", "SIGINT", "SIGTERM"],
)
def test_killed_in_mid_run_it_goes_on(
    signum: int, code: int, line: str, job: Path, undisturbed: bytes, tmp_path: Path
) -> None:
    report, textfile, log, runs = (tmp_path / name for name in ("junit.xml", "chaos.prom", "log", "runs"))
    options = ("--junit", str(report), "--prometheus", str(textfile), "--log", str(log))
    exit_code, err, n_records = interrupted(job, runs, signum, *options)
    assert (exit_code, err.strip()) == (code, line)
    said = [json.loads(entry) for entry in log.read_text().splitlines()]
    if line:
        assert said[-1]["exit_code"] == code
        assert f"daskab: {said[-1]['message']}" == line
        assert f'<error message="{said[-1]["message"]}" />' in report.read_text()
        assert f'daskab_exit_code{{job="chaos"}} {code}.0\n' in textfile.read_text()
    else:
        assert said[-1]["event"] in ("stage", "task")
        assert sorted(tmp_path.iterdir()) == [log, runs]
    folder = run_folder(runs)
    before = {p: p.read_bytes() for p in (folder / "records").glob("*.json")}
    assert finish(job, runs) == 0
    assert (folder / "certificate.json").read_bytes() == undisturbed
    assert len(before) == n_records
    assert len(list((folder / "records").iterdir())) > n_records
    assert all(p.read_bytes() == content for p, content in before.items())


@pytest.mark.slow
@pytest.mark.long
def test_killed_again_and_again(job: Path, undisturbed: bytes, tmp_path: Path) -> None:
    """In mid-run each time, under one executor and then under the other; the workers die with their client."""
    finished = 0
    for executor in ("processes", "inline"):
        _, _, n_records = interrupted(job, tmp_path, signal.SIGKILL, "--cluster", executor, least=finished + 4)
        assert n_records > finished
        finished = n_records
    assert finish(job, tmp_path) == 0
    assert (run_folder(tmp_path) / "certificate.json").read_bytes() == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signum", "code", "whole_group"),
    [(signal.SIGINT, 130, True), (signal.SIGTERM, 143, False)],
)
@pytest.mark.long
def test_workers_end_with_their_client(
    signum: int, code: int, whole_group: bool, job: Path, undisturbed: bytes, tmp_path: Path
) -> None:
    """A terminal sends Ctrl-C to every process of the group, `kill` sends SIGTERM to one: both end quietly."""
    running = start("run", job / "chaos.toml", "--runs", tmp_path, "--cluster", "processes", cwd=job, group=True)
    try:
        wait_for_records(running, tmp_path, 4)
        assert len(processes_of(running.pid)) > 1
        (os.killpg if whole_group else os.kill)(running.pid, signum)
        _, err = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert running.returncode == code
    assert len(but_progress(err)) == 1, err
    wait_for_end(running.pid)
    assert finish(job, tmp_path) == 0
    assert (run_folder(tmp_path) / "certificate.json").read_bytes() == undisturbed


@pytest.mark.slow
def test_a_killed_worker_is_replaced(job: Path, undisturbed: bytes, tmp_path: Path) -> None:
    running = start("run", job / "chaos.toml", "--runs", tmp_path, "--cluster", "processes", cwd=job, group=True)
    try:
        wait_for_records(running, tmp_path, 4)
        workers = workers_of(running.pid)
        os.kill(min(workers), signal.SIGKILL)
        wait_for(lambda: not workers_of(running.pid) <= workers, running)
        _, err = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert running.returncode == 0, err
    assert "Traceback" not in err
    assert (run_folder(tmp_path) / "certificate.json").read_bytes() == undisturbed


@pytest.mark.slow
def test_when_no_worker_comes_back_the_cluster_is_begun_anew(tmp_path: Path) -> None:
    """The workers are taken away, as a cluster that scales down does, and none is sent in their place."""
    whole = ask(mixed_model(), ADAPTIVE, tmp_path / "whole")
    with Processes(patience=5.0) as processes:
        list(processes.begin())
        first = processes._client
        first.cluster.scale(0)
        wait_for(lambda: not first.nthreads())
        outcome = ask(mixed_model(), ADAPTIVE, tmp_path / "run", processes)
        assert processes._client is not first
    assert sealed(outcome) == sealed(whole)


POISON = """
import os
if os.environ.get("POISONED"):
    import signal
    from daskab.run import tasks
    perform = tasks.perform
    def deadly(space, task):
        if task.key == os.environ["POISONED"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return perform(space, task)
    tasks.perform = deadly
"""


@pytest.mark.slow
def test_a_poisoned_batch_is_left_out_and_the_others_finish(
    job: Path, undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is given the batch dies, every time; without the poison the same command finishes the run."""
    (tmp_path / "poison").mkdir()
    (tmp_path / "poison" / "sitecustomize.py").write_text(POISON)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "poison"))
    monkeypatch.setenv("POISONED", "round-0-000007")
    runs = tmp_path / "runs"
    running = start("run", job / "chaos.toml", "--runs", runs, "--cluster", "processes", cwd=job, group=True)
    try:
        said, err = running.communicate(timeout=3 * PATIENCE)  # four workers die, each has to be replaced
        wait_for_end(running.pid)
    finally:
        running.kill()
    assert running.returncode == 3, err
    assert "round-0-000007 killed every worker it was given to" in err
    assert "Traceback" not in err
    assert "not sealed" in said
    done = {path.stem for path in (run_folder(runs) / "records").glob("round-0-*.json")}
    wanted = {task.key for task in open_workspace(run_folder(runs)).tasks("round", 0)}
    assert wanted - done == {"round-0-000007"}
    assert json.loads((run_folder(runs) / "certificate.incomplete.json").read_text())["open_inputs"] > 0
    assert finish(job, runs) == 0
    assert (run_folder(runs) / "certificate.json").read_bytes() == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signum", "code", "seconds"),
    [(signal.SIGINT, 130, 1.0), pytest.param(signal.SIGTERM, 143, 3.0, marks=pytest.mark.long)],
)
def test_a_signal_while_the_workers_start(signum: int, code: int, seconds: float, job: Path, tmp_path: Path) -> None:
    running = start("run", job / "chaos.toml", "--runs", tmp_path, "--cluster", "processes", cwd=job, group=True)
    try:
        wait_for(lambda: len(processes_of(running.pid)) >= 2)
        time.sleep(seconds)
        os.killpg(running.pid, signum)
        _, err = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert running.returncode == code
    assert len(but_progress(err)) == 1, err


# Damage to a run at rest.


@pytest.fixture(scope="module")
def done(short_rounds: None, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A sealed run of several rounds, several batches each."""
    outcome = ask(mixed_model(), ADAPTIVE, tmp_path_factory.mktemp("done"))
    assert (outcome.folder / "records" / "round-2-000001.json").exists()
    return outcome


@pytest.fixture
def copy(done: Outcome, tmp_path: Path) -> Path:
    """The same run, not sealed."""
    folder = shutil.copytree(done.folder, tmp_path / done.folder.name)
    (folder / "certificate.json").unlink()
    return folder


def again(folder: Path) -> tuple[bytes, set[str]]:
    """Run on: the certificate, and which tasks were done for it."""
    workers = Logged()
    outcome = ask(mixed_model(), ADAPTIVE, folder.parent, workers)
    assert outcome.sealed
    return sealed(outcome), set(workers.did)


def test_an_intact_run_is_sealed_again_without_work(copy: Path, done: Outcome) -> None:
    assert again(copy) == (sealed(done), set())


CHUNKS = {
    "contributions/c/0/1/0/0/0": "contributions-000001",
    "search/attained/c/0": "attack-000000",
    "search/witness/c/1/0": "attack-000001",
    "search/witness_to/c/0": "attack-000000",
    "attack_pair/c/0/0": "several-000000",
    "attack_status/c/0": "several-000000",
    "rounds/0/closed/c/1": "round-0-000001",
    "rounds/0/used/c/2": "round-0-000002",
    "rounds/0/frontier/1/c/0/0": "round-0-000001",
    "rounds/1/closed/c/0": "round-1-000000",
    "rounds/2/frontier/1/c/0/0": "round-2-000001",
    "rounds/2/found/2/zarr.json": "round-2-000002",
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_chunks_are_found_and_their_batches_run_again(how: str, copy: Path, done: Outcome) -> None:
    for chunk in CHUNKS:
        DAMAGE[how](copy / "evidence.zarr" / chunk)
    assert again(copy) == (sealed(done), set(CHUNKS.values()))


@pytest.mark.parametrize("chunk", ["contributions/c/0/1/0/0/0", "rounds/0/frontier/1/c/0/0"])
def test_one_damaged_chunk_costs_one_batch(chunk: str, copy: Path, done: Outcome) -> None:
    DAMAGE["flipped"](copy / "evidence.zarr" / chunk)
    assert again(copy) == (sealed(done), {CHUNKS[chunk]})


@pytest.mark.parametrize("how", DAMAGE)
def test_what_the_client_lays_out_is_laid_out_again(how: str, copy: Path, done: Outcome) -> None:
    evidence = copy / "evidence.zarr"
    names = ["goal/c/0", "allowance/c/0", "attained/c/0", "nodes/c/0/0", "nodes/zarr.json", "closed/zarr.json"]
    laid_out = [evidence / "rounds" / "1" / name for name in names]
    names = ["bound/zarr.json", "status/c/0/0/0", "upper_bound/c/0", "slice_lower/zarr.json", "dimension/c/0"]
    names += ["attained/c/0", "witness/zarr.json", "witness_to/c/0"]
    laid_out += [evidence / name for name in (*names, "rounds/0/frontier/1/zarr.json")]
    for path in laid_out:
        DAMAGE[how](path)
    certificate, did = again(copy)
    assert certificate == sealed(done)
    # Without the metadata of its arrays, all of a round is done again.
    assert all(task == "round-0-000001" or task.startswith("round-1-") for task in did)
    assert all(path.exists() for path in laid_out)


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_records_are_found_and_their_batches_run_again(how: str, copy: Path, done: Outcome) -> None:
    tasks = {"contributions-000000", "attack-000001", "several-000000", "round-0-000001", "round-2-000000"}
    for task in tasks:
        DAMAGE[how](copy / "records" / f"{task}.json")
    certificate, did = again(copy)
    assert certificate == sealed(done)
    # A flipped byte may fall on the time or the host, which nothing depends on.
    assert did <= tasks if how == "flipped" else did == tasks


def test_records_of_other_nodes_than_those_there_count_for_nothing(copy: Path, done: Outcome) -> None:
    space = open_workspace(copy)
    nodes = space.evidence.read("rounds/1/nodes")
    space.evidence.write("rounds/1/nodes", ..., nodes[::-1])
    stale = {task.key for task in space.tasks("round", 1) if finished(space, task) is None}
    assert len(nodes) > 1
    assert stale
    assert again(copy)[0] == sealed(done)  # the nodes are laid out anew, from what round 0 left open


def test_lost_records_cost_their_work(copy: Path, done: Outcome) -> None:
    shutil.rmtree(copy / "records")
    assert again(copy)[0] == sealed(done)


def test_a_record_under_another_name_counts_for_nothing(copy: Path, done: Outcome) -> None:
    shutil.copy(copy / "records" / "round-0-000000.json", copy / "records" / "round-0-000001.json")
    assert again(copy) == (sealed(done), {"round-0-000001"})


@pytest.mark.filterwarnings("error")
def test_partial_files_are_ignored(copy: Path, done: Outcome) -> None:
    (copy / "records" / ".round-0-000000.json.123.partial").write_bytes(b'{"task"')
    (copy / ".plan.json.123.partial").write_bytes(b"{")
    (copy / ".model.npz.123.partial").write_bytes(b"PK")
    evidence = copy / "evidence.zarr"
    for folder in (evidence, evidence / "attained" / "c", evidence / "rounds" / "0" / "frontier" / "0"):
        (folder / "zarr.0123456789abcdef.partial").write_bytes(b"{")
    assert again(copy) == (sealed(done), set())


def test_what_changes_behind_a_running_run_is_refused_and_mended_by_the_next(copy: Path, done: Outcome) -> None:
    class Gremlin(Logged):
        def run(self, assignments):  # type: ignore[no-untyped-def]
            for ended in super().run(assignments):
                if self.did[-1:] == ["round-2-000001"]:
                    (copy / "evidence.zarr" / "contributions/c/0/1/0/0/0").unlink(missing_ok=True)
                yield ended

    (copy / "records" / "round-2-000001.json").unlink()
    with pytest.raises(IntegrityError, match="contributions-000001 wrote has changed since; run again"):
        ask(mixed_model(), ADAPTIVE, copy.parent, Gremlin())
    assert not (copy / "certificate.json").exists()
    assert again(copy) == (sealed(done), {"contributions-000001"})


SMALL = ["certify", "model.npz", "--method", "fixed", "--slices", "1", "--runs", "runs"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small model and its sealed run."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        save_model(mixed_model(3, 2), "model.npz")
        with pytest.raises(SystemExit, match="0"):
            main(SMALL)
    return folder


@pytest.mark.parametrize(
    ("how", "is_sealed"),
    [("flipped", True), ("deleted", True), ("flipped", False), ("empty", False), ("deleted", False)],
)
@pytest.mark.parametrize("name", ["plan.json", "model.npz", "evidence.zarr/zarr.json"])
def test_a_damaged_foundation_is_refused_in_one_line(
    name: str,
    how: str,
    is_sealed: bool,
    small: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(small, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    folder = run_folder(Path("runs"))
    certificate = (folder / "certificate.json").read_bytes()
    if not is_sealed:
        (folder / "certificate.json").unlink()
    DAMAGE[how](folder / name)
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(SMALL)
    out, err = capsys.readouterr()
    # Without a plan a run is not laid out yet; in the store's metadata a byte may fall where nothing depends on it.
    # Groups hold nothing that is not written again, but for the seal.
    mended = name == "evidence.zarr/zarr.json" and not is_sealed
    if (name, how, is_sealed) == ("plan.json", "deleted", False) or (
        caught.value.code == 0 and (mended or how == "flipped")
    ):
        assert name != "model.npz"
        assert (folder / "certificate.json").read_bytes() == certificate
        return
    assert (caught.value.code, out) == (4, "")
    assert err.startswith(f"daskab: {folder}")
    assert len(err.splitlines()) == 1
    if is_sealed:
        assert (folder / "certificate.json").read_bytes() == certificate
