"""Verifying a sealed run: nothing wrong with it passes, and nothing is written into it."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples import ADAPTIVE, ask, mixed_model, snapshot

from daskab.cli import main
from daskab.errors import IncompleteError
from daskab.run.executors.inline import Inline
from daskab.run.plan import canonical_json
from daskab.run.stages import Outcome
from daskab.run.store import Evidence
from daskab.verify.balls import Balls
from daskab.verify.checks import Check
from daskab.verify.run import verify_run
from daskab.verify.second import Tally, how_sure, met, second_path, sum_anew

MODEL = mixed_model()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return ask(MODEL, ADAPTIVE, tmp_path_factory.mktemp("whole"))


@pytest.fixture
def run(whole: Outcome, tmp_path: Path) -> Path:
    """A copy of the run, to be damaged."""
    return Path(shutil.copytree(whole.folder, tmp_path / whole.folder.name))


def verify(folder: Path, share: float = 0.2) -> dict[str, Check]:
    return {check.name: check for check in verify_run(folder, Inline(), share=share, seed=1)}


def failed(folder: Path) -> set[str]:
    return {name for name, check in verify(folder).items() if not check.held}


def forge(folder: Path, **changes: object) -> None:
    """Change the certificate and seal it again, as somebody who can write into the run may do."""
    path = folder / "certificate.json"
    text = canonical_json(json.loads(path.read_text()) | changes)
    path.write_text(text)
    Evidence(folder / "evidence.zarr").seal(hashlib.sha256(text.encode()).hexdigest())


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_sound_run_passes_and_is_left_as_it_is(share: float, run: Path) -> None:
    before = snapshot(run)
    checks = verify(run, share)
    assert list(checks) == [
        "plan",
        "seal",
        "records",
        "witnesses",
        "attack",
        "other attacks",
        "second path",
        "sum",
        "anew",
        "how sure",
    ]
    assert all(check.held for check in checks.values())
    n_tasks = len(list((run / "records").glob("*.json")))
    assert f"{int(np.ceil(share * n_tasks))} of {n_tasks} tasks done anew" in checks["anew"].said
    assert snapshot(run) == before


def test_inputs_that_cannot_change_are_no_failure(tmp_path: Path) -> None:
    """Their pair is a point and itself, of which ball arithmetic cannot tell that it is exactly 0 apart."""
    first, second, *_ = MODEL.input_names
    model = MODEL.restrict(frozen=[first], values={second: [MODEL.upper[1]]})
    outcome = ask(model, ADAPTIVE, tmp_path)
    assert outcome.certificate.upper_bound[:2].tolist() == [0.0, 0.0]
    assert failed(outcome.folder) == set()


def test_an_edited_certificate_fails(run: Path) -> None:
    path = run / "certificate.json"
    path.write_text(path.read_text().replace('"complete":', '"complete" :'))
    assert failed(run) == {"seal"}


def test_a_flipped_chunk_fails(run: Path) -> None:
    chunk = next(p for p in sorted((run / "evidence.zarr" / "rounds" / "0" / "closed" / "c").rglob("*")) if p.is_file())
    content = chunk.read_bytes()
    chunk.write_bytes(content[:-3] + bytes([content[-3] ^ 0x55]) + content[-2:])
    assert "records" in failed(run)


def test_a_lost_record_fails(run: Path) -> None:
    next(iter(sorted((run / "records").glob("round-*.json")))).unlink()
    assert "anew" in failed(run)


def test_a_file_that_is_no_record_is_said_and_is_no_failure(run: Path) -> None:
    for name in ("foo", "round-x-000000"):
        (run / "records" / f"{name}.json").write_text("{}")
    checks = verify(run)
    assert all(check.held for check in checks.values())
    assert checks["records"].said.endswith("; 2 other files there count for nothing, foo.json first")


def test_records_an_earlier_try_left_are_said_and_are_no_failure(tmp_path: Path) -> None:
    """Killed while it was laid out, a run is laid out anew, here into fewer tasks."""
    folder = ask(MODEL, ADAPTIVE, tmp_path, cut=(3, 1, 20)).folder
    (folder / "certificate.json").unlink()
    (folder / "plan.json").unlink()
    assert ask(MODEL, ADAPTIVE, tmp_path).sealed
    checks = verify(folder, 1.0)
    assert all(check.held for check in checks.values())
    assert "attack-000002 first, were left by an earlier try" in checks["records"].said
    # None of those that count may be lost among them.
    (folder / "records" / "round-0-000000.json").write_text("{}")
    assert failed(folder) == {"records", "anew"}


def test_a_forged_bound_fails(run: Path) -> None:
    certificate = json.loads((run / "certificate.json").read_text())
    forge(run, upper_bound=[0.5 * v for v in certificate["attained"]])
    assert failed(run) >= {"witnesses", "other attacks", "second path", "anew"}


def test_forged_witnesses_fail(run: Path) -> None:
    Evidence(run / "evidence.zarr").write("witness", ..., np.tile(MODEL.lower, (MODEL.n_inputs, 1)))
    assert "witnesses" in failed(run)


def test_a_forged_number_of_inputs_fails(run: Path) -> None:
    certificate = json.loads((run / "certificate.json").read_text())
    assert certificate["attack_inputs"] is not None
    forge(run, inputs_required=certificate["attack_inputs"] + 1)
    assert failed(run) >= {"other attacks", "sum", "anew"}


def test_a_forged_attack_fails(run: Path) -> None:
    certificate = json.loads((run / "certificate.json").read_text())
    attack = certificate["attack"] | {"x": MODEL.lower.tolist()}
    forge(run, attack=attack)
    assert failed(run) >= {"attack", "anew"}


def test_a_bound_a_little_too_low_is_refuted_and_one_alone_is_named(whole: Outcome) -> None:
    certificate = whole.certificate
    for lowered in range(MODEL.n_inputs):
        upper = certificate.upper_bound.copy()
        upper[lowered] = 0.999 * certificate.attained[lowered]
        wrong = replace(certificate, upper_bound=upper)
        tally = second_path(MODEL, wrong, Balls(MODEL), 1.0, np.random.default_rng(0))
        assert not tally.check.held
        assert f"input in{lowered} can change" in tally.check.said


def test_an_undecided_bound_is_said_and_is_no_failure(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "all 3 bounds are proved twice" in verify(run, 1.0)["how sure"].said
    monkeypatch.setattr("daskab.verify.second.MOST_NODES", 1)
    checks = verify(run, 1.0)
    assert all(check.held for check in checks.values())
    assert "0 of 3 bounds confirmed; 3 not decided in at most 1 nodes each, in0 first" in checks["second path"].said
    assert "probability 0.00 if one bound is wrong" in checks["how sure"].said


def test_bounds_sum_to_what_is_certified_exactly(whole: Outcome) -> None:
    certificate = whole.certificate
    upper = np.array([0.5, 0.25, 0.25])
    exact = replace(
        certificate,
        latent_low=0.0,
        latent_high=0.75,
        upper_bound=upper,
        inputs_required=2,
        inputs_required_by_sum=2,
        inputs_excluded_by_pairs=0,
        inputs_excluded_by_sets=0,
    )
    assert sum_anew(exact).held
    # 0.5 + 0.25 reaches 0.75 exactly: that three are needed does not follow, whatever rounding says.
    assert not sum_anew(replace(exact, inputs_required=3, inputs_required_by_sum=3)).held
    assert not sum_anew(replace(exact, inputs_required=3)).held
    joint = sum_anew(replace(exact, inputs_required=3, inputs_excluded_by_sets=2))
    assert joint.held
    assert "rests on the search over several inputs" in joint.said
    assert sum_anew(replace(exact, latent_high=1.5, inputs_required=None, inputs_required_by_sum=None)).held
    assert not sum_anew(replace(exact, inputs_required=None, inputs_required_by_sum=None)).held
    assert sum_anew(replace(exact, latent_high=None)).held
    for wrong in (np.nan, np.inf):
        assert not sum_anew(replace(exact, upper_bound=np.array([0.5, wrong, 0.25]))).held


def test_how_likely_wrong_bounds_are_met() -> None:
    assert met(100, 1, 5, 0) == pytest.approx(0.05)
    assert met(100, 1, 5, 1) == 0.0
    assert met(10, 2, 10, 0) == 1.0
    assert met(10, 2, 10, 1) == 1.0
    assert met(10, 2, 5, 0) == pytest.approx(1.0 - 10 / 45)
    rng = np.random.default_rng(0)
    seen = np.mean([np.sum(rng.permutation(40)[:12] < 5) > 1 for _ in range(20_000)])
    assert met(40, 5, 12, 1) == pytest.approx(seen, abs=0.01)
    assert "no bound was proved a second time" in how_sure(Tally(10, 0, 0, Check("", True, ""))).said
    assert "if one in 20 is (2 of 40)" in how_sure(Tally(40, 12, 1, Check("", True, ""))).said


def test_an_unsealed_run_is_refused(run: Path) -> None:
    (run / "certificate.json").unlink()
    with pytest.raises(IncompleteError, match="not sealed"):
        verify(run)


def test_another_versions_run_is_not_done_anew(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskab.verify.run.numerics", lambda: {"kernels": "others"})
    assert failed(run) == {"anew"}


def test_at_the_command_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as good:
        main(["verify", str(run), "--share", "0"])
    assert good.value.code == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{run}: verified"
    forge(run, upper_bound=[0.0] * MODEL.n_inputs)
    with pytest.raises(SystemExit) as bad:
        main(["verify", str(run), "--all"])
    assert bad.value.code == 4
    assert "FAILED  witnesses" in capsys.readouterr().out
    (run / "certificate.json").unlink()
    with pytest.raises(SystemExit) as early:
        main(["verify", str(run)])
    assert early.value.code == 3
