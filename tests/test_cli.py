"""The command line: what it prints, its exit codes, and the one line a person's mistake is answered with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import SHORT, Call, Said, environment, mixed_model, run_folder, snapshot

import daskab
from daskab import KernelExpansion, load_model, save_model
from daskab.run.certify import make_question
from daskab.run.job import AttackOptions, bound_options
from daskab.run.lease import one_writer

# Whatever is said to a person is said by daskab: no warning of a library may stand beside it.
pytestmark = pytest.mark.filterwarnings("error")

FIXED = ["--method", "fixed", "--slices", "3"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model file ``m.npz``; its certificate with three fixed slices is 2 inputs of 3."""
    save_model(mixed_model(), tmp_path / "m.npz")
    return tmp_path / "m.npz"


# What is printed.


def test_json_is_one_object_and_nothing_else(call: Call, model: Path) -> None:
    said = call("certify", model, "--json", *FIXED)
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith("}\n")
    assert said.out.count("\n") == 1
    certificate = json.loads(said.out)
    trained = load_model(model)
    assert certificate["model_digest"] == trained.digest
    assert certificate["daskab_version"] == daskab.__version__
    assert certificate["latent_low"] == trained.latent_low
    assert certificate["latent_high"] == trained.latent_high
    assert certificate["delta"] == trained.delta
    assert certificate["complete"] is True
    assert certificate["input_names"] == list(trained.input_names)
    assert len(certificate["upper_bound"]) == len(certificate["attained"]) == trained.n_inputs
    assert 1 <= certificate["inputs_required"] <= certificate["inputs_required_at_best"] <= trained.n_inputs
    assert certificate["attack_inputs"] >= certificate["inputs_required"]
    assert certificate["attack_inputs"] == certificate["attack"]["n_inputs"]


def test_json_is_the_sealed_certificate(call: Call, model: Path) -> None:
    said = call("certify", model, "--json", "--runs", "runs", *FIXED)
    assert (run_folder(Path("runs")) / "certificate.json").read_text() == said.out.rstrip("\n")
    assert call("certify", model, "--json", "--runs", "runs", *FIXED).out == said.out
    assert call("certify", model, "--json", *FIXED).out == said.out


def test_the_verdict_in_words(call: Call, model: Path) -> None:
    said = call("certify", model, *FIXED)
    certificate = daskab.certify(load_model(model), method="fixed", slices=3)
    k, attack = certificate.inputs_required, certificate.attack
    assert (said.code, said.err) == (0, "")
    assert attack is not None
    assert k == 2
    first, *verdict, ratio = said.out.splitlines()
    assert first == "m.npz (6 centres, 3 inputs)"
    assert verdict[0] == (
        f"  Proved: no point can be moved from confidently one class to confidently the other by changing fewer "
        f"than {k} inputs."
    )
    assert verdict[1].startswith(f"  Attack: changing {attack.n_inputs} inputs does it (latent ")
    assert not certificate.exact
    assert verdict[2].startswith(
        f"  Alone, the sum of the one-input bounds proves {certificate.inputs_required_by_sum}, with perfect bounds "
        f"{certificate.inputs_required_at_best}; ours are "
    )
    assert len(verdict) == 3
    assert ratio.startswith("  R = 1.")


def verdict_of(call: Call, **changes: Any) -> tuple[object, str]:
    save_model(mixed_model().replace(**changes), "changed.npz")
    said = call("certify", "changed.npz", *FIXED)
    return said.code, said.out


def test_verdicts_of_other_kinds(call: Call) -> None:
    code, out = verdict_of(call, latent_low=-100.0, latent_high=100.0)
    assert "Proved: no attack exists. Changing every input at once cannot move any point" in out
    assert "Attack:" not in out
    assert code == 0
    code, out = verdict_of(call, latent_low=-1e-3, latent_high=1e-3)
    assert "Nothing is proved beyond the obvious: changing 1 input may move a point" in out
    assert code == 0
    code, out = verdict_of(call, latent_low=None, latent_high=None)
    assert "The model has no thresholds, so its one-input bounds say nothing about a number of inputs." in out
    assert code == 0


@pytest.mark.parametrize(("required", "code"), [(1, 0), (2, 0), (3, 1), (100, 1)])
def test_requirements(required: int, code: int, call: Call, model: Path) -> None:
    assert call("certify", model, "--require-inputs", required, *FIXED).code == code


def test_a_model_no_attack_exists_on_meets_every_requirement(call: Call) -> None:
    save_model(mixed_model().replace(latent_low=-100.0, latent_high=100.0), "m.npz")
    assert call("certify", "m.npz", "--require-inputs", 100, *FIXED).code == 0


def test_time_that_runs_out_is_incomplete(call: Call, model: Path) -> None:
    said = call("certify", model, "--time-limit", "1e-9", "--require-inputs", 3, "--runs", "runs", *FIXED)
    assert said.code == 3
    assert "Incomplete: 3 of 3 inputs are not closed to the tolerance. What is proved holds;" in said.out
    folder = run_folder(Path("runs"))
    assert not (folder / "certificate.json").exists()
    assert (folder / "certificate.incomplete.json").exists()
    assert call("certify", model, "--require-inputs", 2, "--runs", "runs", *FIXED).code == 0
    assert not (folder / "certificate.incomplete.json").exists()


def test_a_node_budget_that_runs_out_is_incomplete(call: Call, model: Path) -> None:
    said = call("certify", model, "--node-budget", 1, "--rtol", "1e-9", "--json")
    assert said.code == 3
    certificate = json.loads(said.out)
    assert certificate["complete"] is False
    assert certificate["open_inputs"] > 0


def test_a_busy_run(call: Call, model: Path) -> None:
    question = make_question(load_model(model), bound_options(method="fixed", slices=3), AttackOptions())
    with one_writer(Path("runs") / question.run_id):
        said = call("certify", model, "--runs", "runs", *FIXED)
    assert (said.code, said.out) == (75, "")
    assert said.err.startswith(f"daskab: {Path('runs') / question.run_id}: another process is working on this run")
    assert len(said.err.splitlines()) == 1


# Job files.

JOB = (
    """\
name = "two"
[[model]]
name = "a"
file = "m.npz"
[[model]]
name = "b"
file = "sub/n.npz"
"""
    + SHORT
)


@pytest.fixture
def job(tmp_path: Path, model: Path) -> Path:
    (tmp_path / "sub").mkdir()
    save_model(mixed_model(4, 2, seed=5).replace(accuracy=0.912), tmp_path / "sub" / "n.npz")
    path = tmp_path / "two.toml"
    path.write_text(JOB)
    return path


def test_run_a_job_twice(call: Call, job: Path) -> None:
    first = call("run", job)
    assert (first.code, first.err) == (0, "")
    assert "two/a (6 centres, 3 inputs)\n" in first.out
    assert "two/b (4 centres, 2 inputs, accuracy 0.912)\n" in first.out
    assert first.out.count("(sealed)") == 2
    folders = sorted(Path("runs").iterdir())
    assert len(folders) == 2
    for folder in folders:
        assert f"  Run: {folder} (sealed)\n" in first.out
        assert (folder / "certificate.json").exists()
    before = snapshot(Path("runs"))
    second = call("run", job)
    assert second.code == 0
    assert second.out == first.out.replace("(sealed)", "(found)")
    assert snapshot(Path("runs")) == before


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("how", ["closed", "broken"])
def test_a_stream_nobody_reads_does_not_end_a_job(
    stream: str, how: str, call: Call, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in ``daskab run two.toml | head -1``: what is printed is lost, the rest is not."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as broken, monkeypatch.context() as patch:
        patch.setattr(sys, stream, broken if how == "broken" else None)
        said = call("run", job, "--log", "-", "--junit", "report.xml")
    assert said.code == 0
    assert said.out.count("(sealed)") == (0 if stream == "stdout" else 2)
    assert said.err.count('"event": "sealed"') == (0 if stream == "stderr" else 2)
    assert len(list(Path("runs").glob("*/certificate.json"))) == 2
    assert 'failures="0" errors="0" skipped="0"' in Path("report.xml").read_text()


def test_a_sealed_run_is_found_without_the_cluster(call: Call, job: Path) -> None:
    sealed = call("run", job)
    Path("nobody.toml").write_text('[cluster]\nkind = "address"\naddress = "tcp://127.0.0.1:1"\npatience = 0.1\n')
    found = call("run", job, "--cluster", "nobody.toml")
    assert (found.code, found.out) == (0, sealed.out.replace("(sealed)", "(found)"))
    one_line(call("run", job, "--cluster", "nobody.toml", "--runs", "new"), "no scheduler can be reached there")


def test_run_on_other_terms(call: Call, job: Path) -> None:
    late = call("run", job, "--time-limit", "1e-9", "--runs", "elsewhere")
    assert late.code == 3
    assert late.out.count("(not sealed)") == 2
    assert not Path("runs").exists()
    assert call("run", job, "--runs", "elsewhere").code == 0
    job.write_text(JOB + "require_inputs = 3\n")
    unmet = call("run", job, "--runs", "elsewhere")
    assert unmet.code == 1
    assert unmet.out.count("(found)") == 2


def test_plan_says_what_a_job_would_do(call: Call, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    before = snapshot(Path())
    said = call("plan", job)
    assert (said.code, said.err) == (0, "")
    for label in ("two/a", "two/b"):
        assert label in said.out
    words = " ".join(said.out.split())
    assert "36 (2 directions x 3 inputs x 6 sequences)" in words
    for what in ("run id", "logical units", "tasks", "units a task", "memory a task", "evidence on disk", "time"):
        assert what in words
    assert snapshot(Path()) == before
    assert not Path("runs").exists()


def test_the_planned_run_id_is_that_of_the_run(call: Call, job: Path) -> None:
    planned = call("plan", job).out
    call("run", job)
    for folder in Path("runs").iterdir():
        assert folder.name in planned


FIT = """\
name = "fit"
[data]
source = "digits"
classes = [3, 5]
train_size = 60
[[model]]
name = "sparse"
lengthscale = 2.0
inducing_points = 3
[bound]
method = "fixed"
slices = 1
"""


def test_a_fitted_model_is_kept_and_found(call: Call, tmp_path: Path) -> None:
    (tmp_path / "fit.toml").write_text(FIT)
    planned = call("plan", "fit.toml")
    assert (planned.code, planned.err) == (0, "")
    (kept,) = Path("runs").rglob("*.npz")
    assert kept.parent == Path("runs/models")
    before = kept.stat().st_mtime_ns
    said = call("run", "fit.toml")
    assert said.code == 0
    assert "between confidently 3 and confidently 5" in said.out
    assert kept.stat().st_mtime_ns == before
    assert run_folder(Path("runs")).name in planned.out


# Bad input: one line, exit code 2, nothing written.


def arrays(**changes: object) -> dict[str, Any]:
    """A good model's arrays, some replaced, those set to None left out."""
    good: dict[str, Any] = {
        "centres": np.array([[0.2, 0.5], [0.8, 0.5], [0.4, 0.1]]),
        "weights": np.array([-1.0, 1.0, 0.5]),
        "lengthscale": np.array(0.5),
        "lower": np.zeros(2),
        "upper": np.ones(2),
        "latent_low": np.array(-0.5),
        "latent_high": np.array(0.5),
        "input_names": np.array(["age", "income"]),
    }
    return {k: v for k, v in (good | changes).items() if v is not None}


def with_nan() -> np.ndarray:
    centres = np.array(arrays()["centres"])
    centres[1, 0] = np.nan
    return centres


BAD_ARRAYS: dict[str, tuple[dict[str, object], str]] = {
    "NaN centres": ({"centres": with_nan()}, "centres: nan at index (1, 0) is not a finite number"),
    "infinite weights": ({"weights": np.array([1.0, np.inf, 0.0])}, "weights: inf at index (1,) is not a finite"),
    "huge weights": ({"weights": np.full(3, 1e308)}, "weights: their absolute sum"),
    "long double weights": ({"weights": np.full(3, np.longdouble("1e400"))}, "weights: "),
    "too few weights": ({"weights": np.ones(2)}, "weights: has shape (2,), expected (3,)"),
    "weights in a column": ({"weights": np.ones((3, 1))}, "weights: has shape (3, 1), expected (3,)"),
    "flat centres": ({"centres": np.ones(3)}, "centres: has shape (3,), expected 2 dimensions"),
    "no centres": ({"centres": np.ones((0, 2)), "weights": np.ones(0)}, "centres: shape (0, 2) has no rows"),
    "no inputs": ({"centres": np.ones((3, 0))}, "centres: shape (3, 0) has no columns"),
    "short lower": ({"lower": np.zeros(1)}, "lower: has shape (1,), expected (2,)"),
    "scalar upper": ({"upper": np.array(1.0)}, "upper: has shape (), expected (2,)"),
    "long lengthscale": ({"lengthscale": np.ones(3)}, "lengthscale: has shape (3,), expected (2,)"),
    "complex centres": ({"centres": np.ones((3, 2), dtype=complex)}, "centres: holds complex128 values"),
    "strings": ({"weights": np.array(["1", "2", "3"])}, "weights: holds <U1 values, expected real numbers"),
    "dates": ({"upper": np.array(["2020-01-01"] * 2, dtype="datetime64[D]")}, "upper: holds datetime64[D] values"),
    "inverted box": ({"upper": np.array([1.0, -1.0])}, "lower: input income (index 1) has lower 0 above upper -1"),
    "zero lengthscale": ({"lengthscale": np.array(0.0)}, "lengthscale: 0 is not positive"),
    "one negative lengthscale": ({"lengthscale": np.array([1.0, -2.0])}, "lengthscale: -2 is not positive"),
    "tiny lengthscale": ({"lengthscale": np.array([1e-310, 1.0])}, "lengthscale: input age (index 0) has 1e-310"),
    "far centres": ({"centres": np.full((3, 2), 1e200)}, "lengthscale: input age (index 0) has 0.5, but its box"),
    "huge box": ({"lower": np.full(2, -1e308), "upper": np.full(2, 1e308)}, "lengthscale: input age"),
    "negative variance": ({"variance": np.array(-1.0)}, "variance: -1 is not positive"),
    "two variances": ({"variance": np.ones(2)}, "variance: has shape (2,), expected ()"),
    "NaN constant": ({"constant": np.array(np.nan)}, "constant: nan is not a finite number"),
    "thresholds reversed": (
        {"latent_low": np.array(0.5), "latent_high": np.array(-0.5)},
        "latent_low: 0.5 is not below latent_high -0.5",
    ),
    "thresholds equal": ({"latent_low": np.array(0.5)}, "latent_low: 0.5 is not below latent_high 0.5"),
    "thresholds too far apart": (
        {"latent_low": np.array(-1e308), "latent_high": np.array(1e308)},
        "latent_low, latent_high: -1e+308 and 1e+308 are too far apart",
    ),
    "only one threshold": ({"latent_high": None}, "latent_low, latent_high: one is given without the other"),
    "duplicate names": ({"input_names": np.array(["a", "a"])}, "input_names: 'a' stands for more than one input"),
    "too few names": ({"input_names": np.array(["a"])}, "input_names: 1 names for 2 inputs"),
    "a single name": ({"input_names": np.array("a")}, "input_names: has shape (), expected one dimension"),
    "a name of two lines": ({"input_names": np.array(["a\nb", "c"])}, "input_names: 'a\\nb' has characters"),
    "lacks weights": ({"weights": None, "lower": None}, "lacks weights, lower"),
}


def one_line(said: Said, message: str, *, code: int = 2) -> None:
    assert (said.code, said.out) == (code, "")
    assert len(said.err.splitlines()) == 1, said.err
    assert said.err.startswith("daskab: ")
    assert message in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_a_bad_model(case: str, call: Call) -> None:
    changes, message = BAD_ARRAYS[case]
    np.savez("bad.npz", **arrays(**changes))
    before = snapshot(Path())
    one_line(call("certify", "bad.npz", "--runs", "runs"), f"bad.npz: {message}")
    assert snapshot(Path()) == before
    assert not Path("runs").exists()


def truncated(path: Path) -> None:
    np.savez(path, **arrays())
    path.write_bytes(path.read_bytes()[:-200])


def compressed_and_damaged(path: Path) -> None:
    np.savez_compressed(path, **arrays(centres=np.random.default_rng(0).random((300, 2)), weights=np.ones(300)))
    content = bytearray(path.read_bytes())
    content[200:204] = b"\xff\xff\xff\xff"
    path.write_bytes(content)


def encrypted(path: Path) -> None:
    np.savez(path, **arrays())
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def single(path: Path) -> None:
    with open(path, "wb") as handle:
        np.save(handle, np.ones(3))


BAD_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "no such file"),
    "directory": (lambda path: path.mkdir(), "is a directory, expected an .npz model"),
    "empty": (lambda path: path.touch(), "not a readable .npz model"),
    "text": (lambda path: path.write_text("centres = 1\n"), "not a readable .npz model"),
    "truncated": (truncated, "not a readable .npz model"),
    "damaged": (compressed_and_damaged, "not a readable .npz model"),
    "encrypted": (encrypted, "not a readable .npz model"),
    "npy": (single, "is a single .npy array, expected an .npz model"),
    "pickled": (
        lambda path: np.savez(path, **arrays(weights=np.array([1, "a", None], dtype=object))),
        "not a readable .npz model (Object arrays cannot be loaded when allow_pickle=False)",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_is_no_model(case: str, call: Call, tmp_path: Path) -> None:
    make, message = BAD_FILES[case]
    make(tmp_path / "bad.npz")
    before = snapshot(tmp_path)
    one_line(call("certify", "bad.npz", "--runs", "runs", "--json"), f"bad.npz: {message}")
    assert snapshot(tmp_path) == before
    assert not Path("runs").exists()


BAD_OPTIONS: dict[str, tuple[list[str], str]] = {
    "rtol negative": (["--rtol", "-1"], "rtol: -1.0 is not greater than 0"),
    "rtol NaN": (["--rtol", "nan"], "rtol: nan is not"),
    "rtol infinite": (["--rtol", "inf"], "rtol: inf is not"),
    "slices 0": (["--slices", "0"], "slices: 0 is not greater than or equal to 1"),
    "node budget 0": (["--node-budget", "0"], "node_budget: 0 is not"),
    "unknown method": (["--method", "magic"], "method: 'magic' is not 'adaptive', 'fixed' or 'grid'"),
    "rtol for fixed slices": (["--method", "fixed", "--rtol", "0.1"], "rtol: 0.1 is given, but method 'fixed' has no"),
    "no such cluster": (["--cluster", "cloud"], "cloud: no such file or directory"),
    "no time": (["--time-limit", "0"], "Invalid value for '--time-limit'"),
    "NaN of time": (["--time-limit", "nan"], "Invalid value for '--time-limit': nan is not a finite number"),
    "infinite time": (["--time-limit", "inf"], "Invalid value for '--time-limit': inf is not a finite number"),
    "empty runs": (["--runs", ""], "Invalid value for '--runs': it is empty"),
    "empty cluster": (["--cluster", ""], "Invalid value for '--cluster': it is empty"),
    "empty log": (["--log", ""], "Invalid value for '--log': it is empty"),
    "words for numbers": (["--slices", "many"], "Invalid value for '--slices': 'many' is not a valid integer"),
    "nothing required": (["--require-inputs", "0"], "Invalid value for '--require-inputs'"),
    "unknown option": (["--speed", "9"], "No such option"),
    "one file too many": (["n.npz"], "Got unexpected extra argument (n.npz)"),
    "runs is a file": (["--runs", "m.npz"], "Invalid value for '--runs': Directory 'm.npz' is a file"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_a_bad_option(case: str, call: Call, model: Path) -> None:
    options, message = BAD_OPTIONS[case]
    before = snapshot(Path())
    one_line(call("certify", "m.npz", *options), message)
    assert snapshot(Path()) == before


@pytest.mark.parametrize("command", ["run", "plan", "certify", "fly"])
def test_a_command_without_its_file(command: str, call: Call) -> None:
    one_line(call(command), "No such command 'fly'" if command == "fly" else "Missing argument")


@pytest.mark.parametrize("option", ["--junit", "--prometheus"])
def test_a_report_without_a_name(option: str, call: Call, job: Path) -> None:
    one_line(call("run", job, option, ""), f"Invalid value for '{option}': it is empty")
    assert not Path("runs").exists()


def test_a_share_that_is_no_number(call: Call) -> None:
    one_line(call("verify", ".", "--share", "nan"), "Invalid value for '--share': nan is not a finite number")


BAD_JOBS: dict[str, tuple[str, str]] = {
    "unknown key": (
        JOB + 'executor = "slurm"\n',
        "two.toml:15: run.executor: unknown key; known: batch, require_inputs",
    ),
    "misspelt key": (
        JOB.replace("slices = 3", "slice = 3"),
        "two.toml:10: bound.slice: unknown key; did you mean slices?",
    ),
    "unknown section": (JOB + "[clusters]\nn = 1\n", "two.toml:15: clusters: unknown key; did you mean cluster?"),
    "unknown cluster": (
        JOB + '[cluster]\nkind = "cloud"\n',
        "two.toml:16: cluster.kind: 'cloud' is not 'inline', 'pro",
    ),
    "workers inline": (JOB + "[cluster]\nworkers = 2\n", "two.toml:16: cluster.workers: given, but kind 'inline' has"),
    "no address": (JOB + '[cluster]\nkind = "address"\n', "two.toml:15: cluster.address: missing"),
    "no certificate": (
        JOB + '[cluster]\nkind = "address"\naddress = "tls://h:1"\nca = "ca.pem"\n',
        "two.toml:15: cluster.certificate: missing",
    ),
    "not an address": (
        JOB + '[cluster]\nkind = "address"\naddress = "h:1"\n',
        "two.toml:17: cluster.address: 'h:1' is not an address such as tls://host:8786",
    ),
    "slices 0": (
        JOB.replace("slices = 3", "slices = 0"),
        "two.toml:10: bound.slices: 0 is not greater than or equal to 1",
    ),
    "unknown method": (JOB.replace('"fixed"', '"magic"'), "two.toml:9: bound.method: 'magic' is not"),
    "rtol negative": (
        JOB.replace('method = "fixed"', "rtol = -0.1"),
        "two.toml:9: bound.rtol: -0.1 is not greater than 0",
    ),
    "no models": ('name = "two"\n', "two.toml:1: model: missing"),
    "not TOML": (JOB.replace("[[model]]", "[[model]", 1), "two.toml:2: not TOML"),
    "no such model": (JOB.replace('"m.npz"', '"absent.npz"'), "absent.npz: no such file"),
    "empty": ("", "two.toml: empty; a job has at least a name and a [[model]]"),
}


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize("case", BAD_JOBS)
def test_a_bad_job(case: str, command: str, call: Call, job: Path) -> None:
    text, message = BAD_JOBS[case]
    job.write_text(text)
    before = snapshot(Path())
    one_line(call(command, "two.toml"), message)
    assert snapshot(Path()) == before
    assert not Path("runs").exists()


def test_a_job_file_that_is_not_there(call: Call) -> None:
    one_line(call("run", "absent.toml"), "absent.toml: no such file or directory")
    Path("folder").mkdir()
    one_line(call("run", "folder"), "folder: is a directory")


def test_a_folder_that_cannot_be_written(call: Call, model: Path) -> None:
    Path("runs").write_text("a file where a folder belongs")
    one_line(call("run", "absent.toml", "--runs", "runs"), "Directory 'runs' is a file")
    Path("runs").unlink()
    Path("half").write_text("")
    one_line(call("certify", "m.npz", "--runs", "half/runs", *FIXED), "half/runs")


# The same in a process of its own.


def shell(*args: str, cwd: Path) -> Said:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-m", "daskab.cli", *args],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def test_in_a_shell(tmp_path: Path, model: Path) -> None:
    said = shell("certify", "m.npz", "--json", "--require-inputs", "3", *FIXED, cwd=tmp_path)
    assert (said.code, said.err) == (1, "")
    assert json.loads(said.out)["inputs_required"] == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.npz"]


def test_bad_input_in_a_shell(tmp_path: Path) -> None:
    np.savez(tmp_path / "bad.npz", **arrays(weights=np.full(3, 1e308)))
    one_line(shell("certify", "bad.npz", cwd=tmp_path), "weights: their absolute sum")


def test_a_model_without_thresholds_as_json(call: Call) -> None:
    save_model(KernelExpansion([[0.5]], [1.0], 1.0, [0.0], [1.0]), "m.npz")
    said = call("certify", "m.npz", "--json")
    assert said.code == 0
    certificate = json.loads(said.out)
    assert certificate["delta"] is None
    assert certificate["inputs_required"] is None
    assert certificate["no_attack_exists"] is False


def test_a_fault_of_ours_never_reads_as_a_requirement_that_is_not_met(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("of ours")

    save_model(mixed_model(), tmp_path / "model.npz")
    monkeypatch.setattr("daskab.cli.commands.certify_model", faulty)
    said = call("certify", "model.npz", "--require-inputs", "1")
    assert said.code == 3
    assert "Traceback" in said.err
    assert said.err.endswith("daskab: ZeroDivisionError: of ours; this is a fault in daskab, please report it\n")
