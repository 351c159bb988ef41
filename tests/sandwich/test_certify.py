"""Models of other kernels certified: sound against brute force and attacks, resumed, verified, refused when damaged."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from examples import Call
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models, pairs_of, restricted_models

from daskab import Certificate, IntegrityError, KernelExpansion, ModelError, certify, save_model
from daskab.attack.attained import attained_change, latent_range
from daskab.bound.scaled import Scaled
from daskab.errors import IncompleteError
from daskab.model.kernels import KernelName
from daskab.run.certify import make_question
from daskab.run.executors.inline import Inline
from daskab.run.job import AttackOptions, bound_options
from daskab.run.plan import canonical_json
from daskab.run.provenance import read_provenance
from daskab.run.queue import answer
from daskab.run.reading import read_run
from daskab.run.sandwich.drive import SandwichDrive
from daskab.run.status import look_at
from daskab.sandwich.parts import parts_of
from daskab.verify.balls import Balls
from daskab.verify.sandwich import verify_sandwich

OTHERS: list[KernelName] = ["exponential", "matern32", "matern52"]


def small(kernel: KernelName, m: int = 6, d: int = 2, seed: int = 3, lengthscale: float = 0.6) -> KernelExpansion:
    rng = np.random.default_rng(seed)
    model = KernelExpansion(
        rng.random((m, d)), rng.normal(size=m), lengthscale, np.zeros(d), np.ones(d), constant=0.1, kernel=kernel
    )
    low, high = np.percentile(model.latent(rng.random((400, d))), [10, 90])
    return model.replace(latent_low=float(low), latent_high=float(high))


def largest_changes(model: KernelExpansion, steps: int) -> np.ndarray:
    """Largest one-input change (D,) between points of a grid, which the centres are on."""
    axes = [np.union1d(np.linspace(0.0, 1.0, steps), model.centres[:, j]) for j in range(model.n_inputs)]
    latent = model.latent(np.array(list(itertools.product(*axes)))).reshape([axis.size for axis in axes])
    return np.array([np.ptp(latent, axis=j).max() for j in range(model.n_inputs)])


@pytest.mark.parametrize("kernel", OTHERS)
def test_bounds_are_above_brute_force_and_near(kernel: KernelName) -> None:
    model = small(kernel)
    certificate = certify(model)
    exact = largest_changes(model, 60)
    assert np.all(certificate.upper_bound >= exact)
    top = int(np.argmax(exact))
    assert certificate.upper_bound[top] <= exact[top] * (1.4 if kernel == "exponential" else 1.12)
    assert certificate.attained[top] >= 0.97 * exact[top]
    assert certificate.complete or kernel == "exponential"
    assert certificate.proved_by == "sum"
    assert certificate.model_digest == model.digest


@settings(max_examples=3)
@given(
    model=st.one_of(
        models(max_centres=6, max_inputs=5, lengthscales=(0.2, 5.0), thresholds=True),
        restricted_models(max_centres=6, max_inputs=5, lengthscales=(0.2, 5.0), thresholds=True),
    ),
    kernel=st.sampled_from(OTHERS),
    seed=st.integers(0, 2**32 - 1),
)
def test_nothing_an_attacker_can_do_exceeds_its_bound(model: KernelExpansion, kernel: KernelName, seed: int) -> None:
    model = model.replace(kernel=kernel)
    certificate = certify(model, node_budget=200)
    rng = np.random.default_rng(seed)
    assert certificate.witnesses is not None
    for c, inputs in enumerate(model.domain.changes):
        x, x_prime = certificate.witnesses.pair(c)
        assert model.domain.allows(x, x_prime)
        assert set(np.flatnonzero(x != x_prime)) <= set(inputs)
        for a, b in pairs_of(model, inputs, rng, 60):
            assert certificate.upper_bound[c] >= max(attained_change(model, a, b), attained_change(model, b, a))
    if certificate.attack is not None:
        assert certificate.attack.n_inputs >= (certificate.inputs_required or 99)


@settings(max_examples=4)
@given(model=models(max_centres=8, max_inputs=6), kernel=st.sampled_from(OTHERS), seed=st.integers(0, 2**32 - 1))
def test_parts_add_up_to_the_model(model: KernelExpansion, kernel: KernelName, seed: int) -> None:
    model = model.replace(kernel=kernel)
    parts = parts_of(model)
    at = model.lower + (model.upper - model.lower) * np.random.default_rng(seed).random((200, model.n_inputs))
    at = np.concatenate([at, np.clip(model.centres, model.lower, model.upper)])
    off = model.latent(at) - model.constant - sum(part.latent(at) for part in parts.models)
    assert np.max(np.abs(off)) <= parts.error + 1e-13 * model.largest_latent
    assert all(part.kernel == "eq" for part in parts.models)


@settings(max_examples=30)
@given(model=models(max_centres=8, max_inputs=6), kernel=st.sampled_from(OTHERS), seed=st.integers(0, 2**32 - 1))
def test_latents_are_where_they_are_said_to_be(model: KernelExpansion, kernel: KernelName, seed: int) -> None:
    model = model.replace(kernel=kernel)
    balls = Balls(model)
    for x in model.lower + (model.upper - model.lower) * np.random.default_rng(seed).random((10, model.n_inputs)):
        low, high = latent_range(model, x)
        ball = balls.latent(x)
        assert balls.at_least(ball, low)
        assert balls.at_most(ball, high)


def test_what_cannot_change_has_no_bound_but_0() -> None:
    certificate = certify(small("matern52", d=3).restrict(frozen=[1], groups={"pair": [0, 2]}))
    assert certificate.input_names == ("pair", "x1")
    assert certificate.upper_bound[1] == 0.0
    assert certificate.upper_bound[0] > 0.0


def test_boxes_of_no_width_or_of_another_scale() -> None:
    model = KernelExpansion([[0.2, 0.4], [0.9, 0.1]], [1.0, -2.0], 1e9, [0, 0], [1, 1], kernel="matern32")
    at_a_point = model.replace(centres=[[0.5, 0.5]], weights=[1.0], lower=[0.5, 0.5], upper=[0.5, 0.5])
    for asked in (model, at_a_point):
        certificate = certify(asked, node_budget=50)
        assert np.all(certificate.upper_bound >= certificate.attained)


def test_eq_is_all_that_the_rest_takes() -> None:
    with pytest.raises(ModelError, match="kernel: matern32, where only models with the EQ kernel are handled"):
        Scaled.of(small("matern32"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed run, to be copied."""
    runs = tmp_path_factory.mktemp("sandwich")
    certify(small("matern52"), runs=runs)
    (folder,) = runs.iterdir()
    return folder


def verified(folder: Path) -> dict[str, str]:
    """What did not hold, by name."""
    with Inline() as workers:
        return {c.name: c.said for c in verify_sandwich(folder, workers, share=0.2, seed=1) if not c.held}


def copied(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / run.name))


def test_a_run_is_found_again_and_mended(run: Path, tmp_path: Path) -> None:
    folder = copied(run, tmp_path)
    text = (folder / "certificate.json").read_bytes()
    before = {path: path.stat().st_mtime_ns for path in (folder / "parts").rglob("*.json")}
    certify(small("matern52"), runs=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    shutil.rmtree(next((folder / "parts").iterdir()))
    (folder / "attacks" / "pairs-000000.npy").write_bytes(b"no array")
    (folder / "records" / "pairs-000001.json").unlink()
    shutil.copy(folder / "attacks" / "pairs-000000.npy", folder / "attacks" / "fewest-000000.npy")
    (folder / "certificate.json").unlink()
    certify(small("matern52"), runs=tmp_path)
    assert (folder / "certificate.json").read_bytes() == text


def test_a_limited_run_is_sound_and_goes_on(tmp_path: Path) -> None:
    model = small("matern32", m=8, d=2, lengthscale=0.4)
    early = certify(model, runs=tmp_path, time_limit=1e-3)
    assert not early.complete
    (folder,) = tmp_path.iterdir()
    assert (folder / "certificate.incomplete.json").exists()
    assert not (folder / "certificate.json").exists()
    late = certify(model, runs=tmp_path)
    assert np.all(early.upper_bound >= late.attained)
    assert (folder / "certificate.json").exists()
    assert not (folder / "certificate.incomplete.json").exists()


def test_what_was_attacked_in_time_is_not_attacked_again(tmp_path: Path) -> None:
    model, options, attack = small("matern32", d=3), bound_options(), AttackOptions()
    question = make_question(model, options, attack)

    class Late(SandwichDrive):
        """Runs out of time once one of its attacks is done."""

        def late(self) -> bool:
            return bool(self.done)

    outcome = answer(Late(question, model, tmp_path), Inline())
    assert not outcome.sealed
    assert np.all(outcome.certificate.upper_bound >= np.abs(model.weights).sum() * model.variance)
    first = (outcome.folder / "records" / "pairs-000000.json").read_bytes()
    assert len(list((outcome.folder / "records").iterdir())) == 1
    assert look_at(outcome.folder).state == "stopped"
    with pytest.raises(IncompleteError, match="not all of its parts are begun"):
        read_run(outcome.folder)
    late = answer(SandwichDrive(question, model, tmp_path), Inline())
    assert late.sealed
    assert (outcome.folder / "records" / "pairs-000000.json").read_bytes() == first


def test_what_it_took_is_told_of_the_whole(run: Path) -> None:
    records = [json.loads(path.read_text()) for path in run.rglob("records/*.json")]
    said = read_provenance(run)
    assert said["tasks"] == len(records)
    assert said["task_seconds"] == pytest.approx(sum(record["seconds"] for record in records), abs=0.01)
    assert {"pairs", "fewest"} <= {stage.stage for stage in look_at(run).stages}


@pytest.mark.slow
def test_a_cluster_comes_to_the_same_bytes(run: Path, tmp_path: Path) -> None:
    certify(small("matern52"), runs=tmp_path, cluster="processes")
    (folder,) = tmp_path.iterdir()
    assert (folder / "certificate.json").read_bytes() == (run / "certificate.json").read_bytes()


def test_without_what_attacks_found_nothing_is_verified(run: Path, tmp_path: Path) -> None:
    folder = copied(run, tmp_path)
    (folder / "attacks" / "pairs-000000.npy").unlink()
    for look in (verified, read_run):
        with pytest.raises(IntegrityError, match="run again, which mends it"):
            look(folder)
    assert not (folder / "attacks" / "pairs-000000.npy").exists()


def test_what_another_run_found_is_not_taken(run: Path, tmp_path: Path) -> None:
    certify(small("matern52", seed=4), runs=tmp_path)
    (other,) = tmp_path.iterdir()
    folder = copied(run, tmp_path)
    for name in ("attacks/pairs-000000.npy", "records/pairs-000000.json"):
        shutil.copy(other / name, folder / name)
    (folder / "certificate.json").unlink()
    certify(small("matern52"), runs=tmp_path)
    assert (folder / "certificate.json").read_bytes() == (run / "certificate.json").read_bytes()


def test_a_sealed_run_is_verified(run: Path) -> None:
    assert verified(run) == {}


def test_a_certificate_that_says_more_is_not_verified(run: Path, tmp_path: Path) -> None:
    folder = copied(run, tmp_path)
    said = json.loads((folder / "certificate.json").read_text())
    said["upper_bound"][0] *= 0.9
    told = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    for content in (told, told.replace(b"complete", b"\xffomplete")):
        (folder / "certificate.json").write_bytes(content)
        assert "sums" in verified(folder)
        with pytest.raises(IntegrityError, match="is not what its parts come to"):
            certify(small("matern52"), runs=tmp_path)
        with pytest.raises(IntegrityError, match="is not what its parts come to"):
            read_run(folder)


def test_a_kernel_said_to_be_nearer_is_refused(run: Path, tmp_path: Path) -> None:
    folder = copied(run, tmp_path)
    said = json.loads((folder / "sum.json").read_text())
    wrong = [1.5 * s for s in said["scales"]]
    huge = [1e200, *said["scales"][1:]]
    for name, value in (("error", said["error"] * 0.9), ("scales", wrong), ("scales", huge), ("error", "x")):
        told = {key: said[key] for key in said if key != "sha256"} | {name: value}
        whole = hashlib.sha256(canonical_json(told).encode()).hexdigest()
        (folder / "sum.json").write_text(json.dumps(told | {"sha256": whole}))
        with pytest.raises(IntegrityError, match=r"not readable|proved|makes no parts"):
            verified(folder)
    (folder / "sum.json").write_text(json.dumps(said | {"error": said["error"] * 9}))
    with pytest.raises(IntegrityError, match="its checksum is another"):
        verified(folder)


def test_a_part_that_is_damaged_is_told(run: Path, tmp_path: Path) -> None:
    folder = copied(run, tmp_path)
    part = next((folder / "parts").iterdir())
    said = (part / "certificate.json").read_text()
    (part / "certificate.json").write_text(said.replace('"complete":true', '"complete":false'))
    failed = verified(folder)
    assert any(name.startswith("part ") for name in failed)


def test_the_command_line_knows_such_runs(call: Call, tmp_path: Path) -> None:
    save_model(small("matern32"), tmp_path / "m.npz")
    (tmp_path / "job.toml").write_text('name = "other"\n[[model]]\nname = "m"\nfile = "m.npz"\n')
    told = call("run", "job.toml")
    assert told.code == 0, told.err
    assert "other/m (6 centres, 2 inputs)" in told.out
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if (path / "sum.json").exists())
    certificate = Certificate.from_json((folder / "certificate.json").read_text(), "certificate.json")
    assert certificate.inputs_required is not None
    assert folder.name in call("ls").out
    assert "sealed" in call("status", folder).out
    assert call("verify", folder).code == 0
    assert "part 1 of" in call("plan", "job.toml").out
    assert call("report", folder, "-o", "report").code == 0
    assert "matern32, as a sum of EQ kernels" in Path("report/index.html").read_text()
    assert "The kernel is replaced by a sum" in call("explain", folder, "x0").out
    assert call("run", "job.toml").out.count("(found)") == 1
    (folder / "sum.json").write_text("{}")
    assert "damaged" in call("ls").out
