"""Whole runs: any executor, any batching, any interruption, one certificate."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chaos.faults import FaultyStore
from examples import ADAPTIVE, ATTACK, FIXED, OPTIONS, Logged, ask, environment, mixed_model, sealed, snapshot

from daskab import BusyError, IntegrityError, JobError, certify, save_model
from daskab.run.certify import make_question
from daskab.run.driver import Drive
from daskab.run.executors.inline import Inline
from daskab.run.executors.processes import Processes
from daskab.run.job import BoundOptions
from daskab.run.lease import one_writer
from daskab.run.progress import Begun, Progress, SoFar, Watchers
from daskab.run.queue import answer
from daskab.run.records import Assignment, Record
from daskab.run.stages import Outcome
from daskab.run.workspace import open_workspace

MODEL = mixed_model()

pytestmark = pytest.mark.usefixtures("short_rounds")


@pytest.fixture(scope="module")
def whole(short_rounds: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """An undisturbed run of each method."""
    return {name: ask(MODEL, bound, tmp_path_factory.mktemp(name)) for name, bound in OPTIONS.items()}


@pytest.fixture
def fixed(whole: dict[str, Outcome], tmp_path: Path) -> Outcome:
    """The undisturbed run of fixed slices, copied to where a test may ask again."""
    return replace(whole["fixed"], folder=shutil.copytree(whole["fixed"].folder, tmp_path / whole["fixed"].folder.name))


def n_rounds(outcome: Outcome) -> int:
    return len(list((outcome.folder / "evidence.zarr" / "rounds").glob("[0-9]*")))


def n_enhancements(outcome: Outcome) -> int:
    return len(list((outcome.folder / "evidence.zarr" / "enhancements").glob("[0-9]*")))


def n_tasks(outcome: Outcome) -> int:
    return len(list((outcome.folder / "records").glob("*.json")))


def test_the_examples_are_worth_testing(whole: dict[str, Outcome]) -> None:
    adaptive, fixed, grid = whole.values()
    assert n_rounds(adaptive) >= 3
    assert n_tasks(adaptive) >= 15
    assert n_rounds(fixed) == 1
    assert n_tasks(fixed) >= 20
    assert n_enhancements(fixed) == FIXED.enhance
    assert n_enhancements(grid) == 2
    assert fixed.certificate.complete
    assert adaptive.certificate.attack is not None
    for outcome in whole.values():
        assert (outcome.sealed, outcome.found) == (True, False)
        assert outcome.folder.name == outcome.certificate.run_id


@pytest.mark.parametrize("method", OPTIONS)
def test_processes_give_the_same_bytes(
    method: str, processes: Processes, whole: dict[str, Outcome], tmp_path: Path
) -> None:
    spread = ask(MODEL, OPTIONS[method], tmp_path, processes, cut=(3, 1, 40))
    assert spread.sealed
    assert spread.certificate.evidence_sha256 == whole[method].certificate.evidence_sha256
    assert sealed(spread) == sealed(whole[method])


@pytest.mark.parametrize(
    ("method", "cut"),
    [("adaptive", (2, 1, 20)), ("adaptive", (7, 3, 10**6)), ("fixed", (2, 1, 60)), ("grid", (7, 2, 60))],
)
def test_batching_leaves_no_trace(
    method: str, cut: tuple[int, int, int], whole: dict[str, Outcome], tmp_path: Path
) -> None:
    outcome = ask(MODEL, OPTIONS[method], tmp_path, cut=cut)
    assert n_tasks(outcome) != n_tasks(whole[method])
    assert outcome.certificate.upper_bound.tobytes() == whole[method].certificate.upper_bound.tobytes()
    assert sealed(outcome) == sealed(whole[method])


@pytest.mark.parametrize("batch", [None, 12])
def test_a_plan_sized_by_timing_leaves_no_trace(batch: int | None, whole: dict[str, Outcome], tmp_path: Path) -> None:
    question = make_question(MODEL, FIXED, ATTACK)
    outcome = answer(Drive(question, MODEL, tmp_path, batch=batch), Inline())
    plan = open_workspace(outcome.folder).plan
    assert batch in (None, plan.batch)
    assert sealed(outcome) == sealed(whole["fixed"])


def test_asked_again_it_is_found(fixed: Outcome, tmp_path: Path) -> None:
    before = snapshot(fixed.folder)
    workers = Logged()
    again = ask(MODEL, FIXED, tmp_path, workers)
    assert again.found
    assert again.sealed
    assert workers.did == []
    assert snapshot(fixed.folder) == before
    assert again.certificate.to_json() == fixed.certificate.to_json()
    assert again.certificate.witnesses is not None
    assert fixed.certificate.witnesses is not None
    assert np.array_equal(again.certificate.witnesses.x, fixed.certificate.witnesses.x)
    assert np.array_equal(again.certificate.witnesses.moved_to, fixed.certificate.witnesses.moved_to)


def test_another_question_is_another_run(fixed: Outcome, tmp_path: Path) -> None:
    before = snapshot(fixed.folder)
    folders = {fixed.folder}
    folders.add(ask(MODEL, FIXED.model_copy(update={"slices": 2}), tmp_path).folder)
    folders.add(ask(MODEL.replace(weights=2 * MODEL.weights), FIXED, tmp_path).folder)
    assert len(folders) == 3
    assert snapshot(fixed.folder) == before


def test_a_model_differing_in_accuracy_alone_is_the_same_question(fixed: Outcome, tmp_path: Path) -> None:
    assert ask(MODEL.replace(accuracy=0.9), FIXED, tmp_path).found


def test_the_run_id_is_the_same_in_another_process(tmp_path: Path) -> None:
    save_model(MODEL, tmp_path / "model.npz")
    code = (
        "from daskab import load_model\n"
        "from daskab.run.certify import make_question\n"
        "from daskab.run.job import AttackOptions, bound_options\n"
        f"bound = bound_options(**{ADAPTIVE.model_dump(exclude_unset=True)})\n"
        f"attack = AttackOptions(**{ATTACK.model_dump()})\n"
        "print(make_question(load_model('model.npz'), bound, attack).run_id)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == make_question(MODEL, ADAPTIVE, ATTACK).run_id


@pytest.mark.parametrize(
    ("method", "most", "interrupt"),
    [
        ("adaptive", 3, False),
        ("adaptive", 12, True),
        ("fixed", 0, True),
        ("fixed", 8, True),
        ("fixed", 20, True),  # in an enhancement
        ("fixed", 23, False),
        ("grid", 21, True),
    ],
)
def test_an_interrupted_run_goes_on_with_what_is_missing(
    method: str, most: int, interrupt: bool, whole: dict[str, Outcome], tmp_path: Path
) -> None:
    first, second = Logged(most, interrupt=interrupt), Logged()
    if interrupt:
        with pytest.raises(KeyboardInterrupt):
            ask(MODEL, OPTIONS[method], tmp_path, first)
    else:
        stopped = ask(MODEL, OPTIONS[method], tmp_path, first)
        assert not stopped.sealed
        assert not (stopped.folder / "certificate.json").exists()
    outcome = ask(MODEL, OPTIONS[method], tmp_path, second)
    assert sealed(outcome) == sealed(whole[method])
    assert len(first.did) == most
    assert not set(first.did) & set(second.did)
    assert {f"{key}.json" for key in first.did + second.did} == {p.name for p in (outcome.folder / "records").iterdir()}


@pytest.mark.parametrize("method", OPTIONS)
def test_what_is_proved_so_far_holds(method: str, whole: dict[str, Outcome], tmp_path: Path) -> None:
    full = whole[method].certificate
    for most in (1, n_tasks(whole[method]) - 4):
        outcome = ask(MODEL, OPTIONS[method], tmp_path / str(most), Logged(most))
        partial = outcome.certificate
        assert not outcome.sealed
        assert not partial.complete
        assert np.all(np.isfinite(partial.upper_bound))
        assert np.all(partial.upper_bound >= partial.attained)
        assert np.all(partial.upper_bound >= full.attained)
        assert partial.no_attack_exists is False
        assert partial.inputs_required is not None
        assert full.inputs_required is not None
        assert partial.inputs_required <= full.inputs_required


def test_a_time_limit_leaves_a_sound_certificate_and_a_run_that_goes_on(
    whole: dict[str, Outcome], tmp_path: Path
) -> None:
    late = ask(MODEL, ADAPTIVE, tmp_path, time_limit=1e-9)
    assert (late.sealed, late.found, late.certificate.complete) == (False, False, False)
    assert late.certificate.open_inputs == MODEL.n_inputs
    assert late.certificate.witnesses is not None
    for d in range(MODEL.n_inputs):
        x, x_prime = late.certificate.witnesses.pair(d)
        assert np.array_equal(x, x_prime)
    assert np.all(np.isfinite(late.certificate.upper_bound))
    assert np.all(late.certificate.upper_bound >= late.certificate.attained)
    assert np.all(late.certificate.upper_bound >= whole["adaptive"].certificate.attained)
    incomplete = late.folder / "certificate.incomplete.json"
    assert incomplete.read_text() == late.certificate.to_json()
    assert not (late.folder / "certificate.json").exists()
    on_time = ask(MODEL, ADAPTIVE, tmp_path)
    assert on_time.sealed
    assert not on_time.found
    assert not incomplete.exists()
    assert sealed(on_time) == sealed(whole["adaptive"])


def test_one_writer_a_run(tmp_path: Path) -> None:
    question = make_question(MODEL, FIXED, ATTACK)
    with one_writer(tmp_path / question.run_id):
        with pytest.raises(BusyError, match=question.run_id) as caught:
            answer(Drive(question, MODEL, tmp_path), Inline())
        assert caught.value.exit_code == 75
        assert not (tmp_path / question.run_id / "plan.json").exists()
    assert ask(MODEL, FIXED, tmp_path).sealed


class Listener(Progress):
    """Remembers all it is told."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, str]] = []
        self.stages: list[tuple[str, int, int]] = []
        self.tasks: list[str] = []
        self.so_far: list[SoFar] = []

    def begin(self, run_id: str, how: Begun) -> None:
        self.begun.append((run_id, how))

    def stage(self, name: str, total: int, done: int) -> None:
        self.stages.append((name, total, done))

    def advance(self, record: Record) -> None:
        self.tasks.append(record.task)

    def known(self, so_far: SoFar) -> None:
        self.so_far.append(so_far)


def test_progress_hears_of_every_task(tmp_path: Path) -> None:
    one, another = Listener(), Listener()
    question = make_question(MODEL, ADAPTIVE, ATTACK)
    ask(MODEL, ADAPTIVE, tmp_path, Logged(3))
    outcome = answer(Drive(question, MODEL, tmp_path, progress=Watchers(one, another)), Inline())
    assert vars(one) == vars(another)
    assert one.begun == [(question.run_id, "resumed")]
    assert sum(total for _, total, _ in one.stages) == n_tasks(outcome)
    assert sum(done for _, _, done in one.stages) == 3
    assert len(one.tasks) == n_tasks(outcome) - 3
    assert [name for name, _, _ in one.stages][:3] == ["contributions", "attack", "joint attack"]
    found = Listener()
    answer(Drive(question, MODEL, tmp_path, progress=found), Inline())
    assert vars(found) == vars(Listener()) | {"begun": [(question.run_id, "found")]}


@pytest.mark.parametrize("bound", [ADAPTIVE, FIXED], ids=["adaptive", "fixed"])
def test_progress_hears_what_is_certified_so_far(bound: BoundOptions, tmp_path: Path) -> None:
    told = Listener()
    question = make_question(MODEL, bound, ATTACK)
    certificate = answer(Drive(question, MODEL, tmp_path, progress=told), Inline()).certificate
    assert told.begun == [(question.run_id, "begun")]
    assert told.so_far[0] == (1, certificate.attack_inputs, MODEL.n_inputs)
    assert told.so_far[-1] == (certificate.inputs_required, certificate.attack_inputs, certificate.open_inputs)
    required = [so_far.inputs_required or 0 for so_far in told.so_far]
    assert required == sorted(required)


def test_of_a_model_without_thresholds_nothing_is_certified_so_far(tmp_path: Path) -> None:
    model, told = MODEL.replace(latent_low=None, latent_high=None), Listener()
    answer(Drive(make_question(model, FIXED, ATTACK), model, tmp_path, progress=told), Inline())
    assert told.tasks
    assert not told.so_far


def test_a_run_removed_and_asked_for_again_in_one_process(whole: dict[str, Outcome], tmp_path: Path) -> None:
    for cut in ((3, 1, 100), (7, 3, 200)):
        outcome = ask(MODEL, FIXED, tmp_path, cut=cut)
        assert not outcome.found
        assert sealed(outcome) == sealed(whole["fixed"])
        shutil.rmtree(outcome.folder)


@pytest.mark.parametrize("left", ["everything", "templates"])
def test_a_run_killed_while_it_was_laid_out(
    left: str, fixed: Outcome, whole: dict[str, Outcome], tmp_path: Path
) -> None:
    """The plan is written last; without one, whatever else is there is laid out again, for another plan."""
    folder = fixed.folder
    (folder / "plan.json").unlink()
    (folder / "certificate.json").unlink()
    if left == "templates":
        shutil.rmtree(folder / "records")
    outcome = ask(MODEL, FIXED, tmp_path, cut=(7, 3, 200))
    assert not outcome.found
    assert sealed(outcome) == sealed(whole["fixed"])


@pytest.mark.parametrize("how", ["digit", "truncated", "empty", "other run"])
def test_a_certificate_that_is_not_what_was_sealed_is_refused(
    how: str, whole: dict[str, Outcome], tmp_path: Path
) -> None:
    folder = shutil.copytree(whole["fixed"].folder, tmp_path / whole["fixed"].folder.name)
    path = folder / "certificate.json"
    text = path.read_text()
    if how == "digit":
        required = whole["fixed"].certificate.inputs_required
        other = text.replace(f'"inputs_required":{required},', f'"inputs_required":{(required or 0) + 1},')
        assert other != text
    elif how == "other run":
        other = sealed(whole["adaptive"]).decode()
    else:
        other = text[: len(text) // 2] if how == "truncated" else ""
    path.write_text(other)
    with pytest.raises(IntegrityError, match=r"certificate\.json: .*remove it and run again"):
        ask(MODEL, FIXED, tmp_path)
    path.unlink()
    workers = Logged()
    assert sealed(ask(MODEL, FIXED, tmp_path, workers)) == text.encode()
    assert workers.did == []


def groups(folder: Path) -> list[Path]:
    """The metadata of every group of a run's evidence, its root last."""
    found = sorted((folder / "evidence.zarr").rglob("zarr.json"))
    return [path for path in found if json.loads(path.read_text())["node_type"] == "group"]


@pytest.mark.parametrize("method", ["adaptive", "fixed"])
@pytest.mark.parametrize("content", ["", "[]", None])
def test_groups_that_are_damaged_are_made_anew(
    content: str | None, method: str, whole: dict[str, Outcome], tmp_path: Path
) -> None:
    folder = shutil.copytree(whole[method].folder, tmp_path / whole[method].folder.name)
    (folder / "certificate.json").unlink()
    before = groups(folder)
    assert len(before) > 5
    for path in before:
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
    workers = Logged()
    assert sealed(ask(MODEL, OPTIONS[method], tmp_path, workers)) == sealed(whole[method])
    assert workers.did == []
    assert groups(folder) == before


def test_a_root_that_the_disk_tears_is_an_integrity_error_and_made_anew(
    whole: dict[str, Outcome], tmp_path: Path
) -> None:
    with FaultyStore(1, "torn").at_work(), pytest.raises(IntegrityError, match=r"evidence.zarr: .*run again$"):
        ask(MODEL, FIXED, tmp_path)
    assert sealed(ask(MODEL, FIXED, tmp_path)) == sealed(whole["fixed"])


@pytest.mark.parametrize("name", ["goal", "allowance", "attained"])
def test_what_a_round_shares_is_never_taken_for_zero(name: str, tmp_path: Path) -> None:
    class Lossy(Logged):
        def run(self, assignments):  # type: ignore[no-untyped-def]
            return super().run(map(self.lose, assignments))

        def lose(self, given: Assignment) -> Assignment:
            if given.task.stage == "round" and given.task.round == 1:
                (Path(given.folder) / f"evidence.zarr/rounds/1/{name}/c/0").unlink(missing_ok=True)
            return given

    with pytest.raises(IntegrityError, match=f"rounds/1/{name}: a part is missing; run again"):
        ask(MODEL, ADAPTIVE, tmp_path, Lossy())


@pytest.mark.parametrize("content", ["", "[]", None, '{"zarr_format": 3, "node_type": "group", "attributes": {}}'])
def test_a_seal_that_is_damaged_is_refused_and_left(content: str | None, fixed: Outcome, tmp_path: Path) -> None:
    root = fixed.folder / "evidence.zarr" / "zarr.json"
    if content is None:
        root.unlink()
    else:
        root.write_text(content)
    before = snapshot(fixed.folder)
    with pytest.raises(IntegrityError, match=r"remove .*and run again"):
        ask(MODEL, FIXED, tmp_path)
    assert snapshot(fixed.folder) == before
    (fixed.folder / "certificate.json").unlink()
    assert sealed(ask(MODEL, FIXED, tmp_path)) == before["certificate.json"][1]


def test_certify_keeps_nothing_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    certificate = certify(MODEL, method="fixed", slices=3)
    assert list(tmp_path.iterdir()) == [tmp_path / "tmp"]
    assert list((tmp_path / "tmp").iterdir()) == []
    kept = certify(MODEL, method="fixed", slices=3, runs="kept")
    assert kept.to_json() == certificate.to_json()
    assert (tmp_path / "kept" / kept.run_id / "certificate.json").exists()


def test_an_unknown_cluster_is_named() -> None:
    with pytest.raises(ValueError, match="slurm: no such file or directory"):
        certify(MODEL, cluster="slurm")


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_limit_is_a_positive_number(limit: float) -> None:
    with pytest.raises(JobError, match=r"time_limit: \S+ is not a positive, finite number of seconds"):
        certify(MODEL, time_limit=limit)
