"""The searches over several inputs as stages of a run: they close the gap the sum leaves, whatever happens to them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from examples import ATTACK, Logged, ask, sealed

from daskab import IntegrityError, KernelExpansion, certify
from daskab.run import joint
from daskab.run.certify import make_question
from daskab.run.executors.processes import Processes
from daskab.run.job import bound_options
from daskab.run.records import Task
from daskab.run.stages import Outcome
from daskab.run.tasks import finished
from daskab.run.workspace import open_workspace

BOUND = bound_options(pair_nodes=3000)
SETS = bound_options(pair_nodes=0, rtol=0.01)


def few_centres(d: int = 6, seed: int = 1) -> KernelExpansion:
    """Four centres, so that the search has three directions; the thresholds lie far apart."""
    rng = np.random.default_rng(seed)
    centres, weights = rng.random((4, d)), np.array([3.0, -2.5, 2.0, -3.0])
    bare = KernelExpansion(centres, weights, 0.9, np.zeros(d), np.ones(d))
    low, high = np.percentile(bare.latent(rng.random((400, d))), [2, 98])
    return bare.replace(latent_low=float(low), latent_high=float(high))


MODEL = few_centres()


@pytest.fixture(scope="module", autouse=True)
def short_searches() -> Iterator[None]:
    """Rounds and tasks of so few nodes that there are several of each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daskab.run.joint.NODES_A_ROUND", 8)
        patch.setattr("daskab.run.joint.PAIRS_A_SECOND", 16)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return ask(MODEL, BOUND, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def nearly(whole: Outcome, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The same run, stopped before its last task."""
    stopped = ask(MODEL, BOUND, tmp_path_factory.mktemp("nearly"), Logged(n_tasks(whole) - 1))
    assert not stopped.sealed
    return stopped


@pytest.fixture
def copy(nearly: Outcome, tmp_path: Path) -> Path:
    """A copy of the stopped run, to be damaged."""
    return shutil.copytree(nearly.folder, tmp_path / nearly.folder.name)


def n_tasks(outcome: Outcome) -> int:
    return len(list((outcome.folder / "records").glob("*.json")))


def searches(outcome: Outcome) -> list[str]:
    return sorted(p.stem for p in (outcome.folder / "records").glob("joint-*.json"))


def test_the_search_closes_the_gap_the_sum_leaves(whole: Outcome) -> None:
    c = whole.certificate
    assert len({key.split("-")[1] for key in searches(whole)}) >= 3
    assert len(searches(whole)) >= 6
    assert c.inputs_required_by_sum is not None
    assert c.inputs_required is not None
    assert c.inputs_required > c.inputs_required_by_sum
    assert c.exact
    assert c.inputs_excluded_by_pairs == c.inputs_required - 1
    assert c.open_pairs == 0


def test_without_it_the_sum_stands(whole: Outcome, tmp_path: Path) -> None:
    c = ask(MODEL, bound_options(pair_nodes=0, set_nodes=0), tmp_path).certificate
    assert c.inputs_required == c.inputs_required_by_sum == whole.certificate.inputs_required_by_sum
    assert (c.inputs_excluded_by_pairs, c.open_pairs) == (0, 0)
    assert c.upper_bound.tobytes() == whole.certificate.upper_bound.tobytes()
    assert c.run_id != whole.certificate.run_id


def test_a_short_budget_proves_no_more_than_a_long_one(whole: Outcome, tmp_path: Path) -> None:
    proved = []
    for nodes in (8, 200):
        c = ask(MODEL, bound_options(pair_nodes=nodes, set_nodes=0), tmp_path).certificate
        assert c.inputs_required is not None
        assert c.open_pairs > 0
        assert c.inputs_required <= (c.attack_inputs or 0)
        proved.append(c.inputs_excluded_by_pairs)
    assert proved == sorted(proved)
    enough = ask(MODEL, bound_options(pair_nodes=400, set_nodes=0), tmp_path).certificate
    assert enough.open_pairs == 0
    assert proved[-1] < enough.inputs_excluded_by_pairs == whole.certificate.inputs_excluded_by_pairs


def test_processes_and_batches_give_the_same_bytes(processes: Processes, whole: Outcome, tmp_path: Path) -> None:
    spread = ask(MODEL, BOUND, tmp_path / "processes", processes)
    assert sealed(spread) == sealed(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daskab.run.joint.PAIRS_A_SECOND", 4096)
        larger = ask(MODEL, BOUND, tmp_path / "larger")
    assert len(searches(larger)) < len(searches(whole))
    assert sealed(larger) == sealed(whole)


def test_stopped_again_and_again_it_goes_on_to_the_same_bytes(whole: Outcome, tmp_path: Path) -> None:
    first, done = n_tasks(whole) - len(searches(whole)), 0
    for most in (first, first + 1, first + 4, n_tasks(whole) - 1):
        workers = Logged(most - done)
        stopped = ask(MODEL, BOUND, tmp_path, workers)
        assert len(workers.did) == most - done
        assert not stopped.sealed
        c = stopped.certificate
        assert not c.complete
        assert c.inputs_excluded_by_pairs <= whole.certificate.inputs_excluded_by_pairs
        done = most
    workers = Logged()
    again = ask(MODEL, BOUND, tmp_path, workers)
    assert len(workers.did) == 1
    assert sealed(again) == sealed(whole)


DAMAGED = ("1/used/zarr.json", "2/used/c/0", "2/frontier/1/c/0/0", "3/nodes/c/0/0")


@pytest.mark.parametrize("how", ["delete", "flip", "empty"])
def test_damage_is_mended(how: str, whole: Outcome, copy: Path) -> None:
    paths = [copy / "evidence.zarr" / "joint" / what for what in DAMAGED]
    before = [path.read_bytes() for path in paths]
    for path, content in zip(paths, before, strict=True):
        if how == "delete":
            path.unlink()
        else:
            path.write_bytes(b"" if how == "empty" else content[:-3] + bytes([content[-3] ^ 0x55]) + content[-2:])
    workers = Logged()
    assert sealed(ask(MODEL, BOUND, copy.parent, workers)) == sealed(whole)
    # Without the metadata of its arrays, all of a round is done again.
    all_of_round = [key for key in searches(whole) if key.startswith("joint-1-")]
    assert workers.did == [*all_of_round, "joint-2-000000", "joint-2-000001", searches(whole)[-1]]
    assert [path.read_bytes() for path in paths] == before


def test_a_damaged_node_is_refused(whole: Outcome, copy: Path) -> None:
    space = open_workspace(copy, make_question(MODEL, BOUND, ATTACK))
    last = max(int(key.split("-")[1]) for key in searches(whole))
    nodes = space.evidence.read(f"joint/{last}/nodes")
    nodes[:, 0] = 10.0 * MODEL.n_inputs
    space.evidence.write(f"joint/{last}/nodes", ..., nodes)
    search = joint.Search(*space.evidence.joint_round(last)[1:])
    with pytest.raises(IntegrityError, match="damaged"):
        joint.conclude(space, [search] * (last + 1), {})


def test_another_question_in_the_store_is_refused(whole: Outcome, copy: Path) -> None:
    """Attributes carry no checksum; a search for smaller attacks must not pass for one for all."""
    path = copy / "evidence.zarr" / "joint" / "0" / "zarr.json"
    most = (whole.certificate.attack_inputs or 0) - 1
    text = path.read_text()
    assert f'"most": {most}' in text
    path.write_text(text.replace(f'"most": {most}', f'"most": {most - 1}'))
    space = open_workspace(copy, make_question(MODEL, BOUND, ATTACK))
    with pytest.raises(IntegrityError, match="other attacks"):
        joint.conclude(space, [joint.Search(joint.PAIRS, most)], {})
    records = sorted((copy / "records").glob("joint-0-*.json"))
    task = Task.from_key(records[0].stem)
    assert finished(space, task) is None
    assert sealed(ask(MODEL, BOUND, copy.parent)) == sealed(whole)


def many_centres(d: int = 4, seed: int = 2) -> KernelExpansion:
    """So many directions between the centres that pairs are not searched by midpoint, but few inputs."""
    rng = np.random.default_rng(seed)
    bare = KernelExpansion(rng.random((14, d)), rng.normal(size=14), 0.9, np.zeros(d), np.ones(d))
    low, high = np.percentile(bare.latent(rng.random((400, d))), [4, 96])
    return bare.replace(latent_low=float(low), latent_high=float(high))


DENSE = many_centres()


@pytest.fixture(scope="module")
def by_sets(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return ask(DENSE, SETS, tmp_path_factory.mktemp("sets"), cut=(5, 2, 16))


def test_sets_close_what_pairs_do_not(by_sets: Outcome) -> None:
    c = by_sets.certificate
    assert len({key.split("-")[1] for key in searches(by_sets)}) >= 2
    assert c.inputs_required_by_sum == 1
    assert c.exact
    assert c.proved_by == "sets"
    assert c.inputs_required == c.inputs_excluded_by_sets + 1 == 2
    assert (c.inputs_excluded_by_pairs, c.open_pairs, c.open_sets) == (0, 0, 0)


def test_a_short_budget_leaves_sets_open(tmp_path: Path) -> None:
    for nodes in (8, 40):
        c = ask(DENSE, SETS.model_copy(update={"set_nodes": nodes}), tmp_path).certificate
        assert c.inputs_required == c.inputs_required_by_sum == 1
        assert c.inputs_excluded_by_sets == 0
    assert c.open_sets > 0


def test_sets_stopped_anywhere_and_batched_otherwise_give_the_same_bytes(by_sets: Outcome, tmp_path: Path) -> None:
    first, done = n_tasks(by_sets) - len(searches(by_sets)), 0
    for most in (first, n_tasks(by_sets) - 1):
        stopped = ask(DENSE, SETS, tmp_path / "stopped", Logged(most - done), cut=(5, 2, 16))
        assert not stopped.sealed
        assert stopped.certificate.inputs_required == 1
        assert stopped.certificate.open_sets > 0 or most == first
        done = most
    assert sealed(ask(DENSE, SETS, tmp_path / "stopped")) == sealed(by_sets)
    larger = ask(DENSE, SETS, tmp_path / "larger", cut=(5, 2, 10_000))
    assert len(searches(larger)) < len(searches(by_sets))
    assert sealed(larger) == sealed(by_sets)


def test_an_attack_that_sets_meet_is_the_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskab.attack.attacker.fewest_inputs", lambda *_, **__: None)
    c = ask(DENSE, SETS, tmp_path).certificate
    assert c.attack is not None
    assert c.attack.latent_x <= (DENSE.latent_low or 0.0)
    assert c.attack.latent_x_prime >= (DENSE.latent_high or 0.0)
    assert c.exact
    assert c.inputs_required == 2


def test_a_model_no_attack_can_reach() -> None:
    model = KernelExpansion(
        [[0.2, 0.4, 0.1], [0.7, 0.6, 0.9]], [1.0, -1.0], 1.0, [0] * 3, [1] * 3, latent_low=-0.5, latent_high=0.5
    )
    c = certify(model)
    assert c.attack is None
    assert c.inputs_required_by_sum is not None
    assert c.no_attack_exists
    assert c.inputs_required is None
    assert c.exact
