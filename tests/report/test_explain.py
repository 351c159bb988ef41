"""One input explained: what is said is what the certificate and the evidence hold, in the units of the data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from examples import FIXED, OPTIONS, Call, Logged, ask, mixed_model, snapshot

from daskab import KernelExpansion, certify
from daskab.attack.attained import attained_change
from daskab.errors import IntegrityError, JobError
from daskab.report.explain import change_of, explain
from daskab.report.facts import facts_of
from daskab.run.job import BoundOptions, bound_options
from daskab.run.reading import read_run

pytestmark = pytest.mark.usefixtures("short_rounds")
SPAN = {"zero_and_one": [[10.0, 0.0, -5.0], [30.0, 1.0, 5.0]]}


@pytest.fixture(params=OPTIONS, scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ask(mixed_model(), OPTIONS[request.param], tmp_path_factory.mktemp("runs")).folder


def test_every_input_is_explained_by_its_numbers(folder: Path) -> None:
    before = snapshot(folder)
    reading = read_run(folder)
    certificate, model = reading.certificate, reading.model
    for d, name in enumerate(model.input_names):
        it = explain(reading, d)
        x, x_prime = reading.witnesses.pair(d)
        assert (it.change, it.number, it.upper_bound) == (name, d, certificate.upper_bound[d])
        assert it.attained == certificate.attained[d] == attained_change(model, x, x_prime)
        assert it.ratio == it.upper_bound / it.attained >= 1.0
        assert [(m.input, m.number, m.start, m.end) for m in it.moves] == [(name, d, x[d], x_prime[d])]
        assert it.others == {other: x[j] for j, other in enumerate(model.input_names) if j != d}
        assert it.latent_to - it.latent_from == pytest.approx(it.attained)
        # Six centres, of which the five that add most are told.
        assert len(it.centres) == 5
        left = abs(sum(one.adds for one in it.centres) - it.attained)
        assert left <= abs(it.centres[-1].adds) + 1e-9
    ranks = sorted(explain(reading, d).rank for d in range(model.n_inputs))
    assert ranks == [1, 2, 3]
    assert snapshot(folder) == before


def one_bump() -> KernelExpansion:
    """Highest at 0.9 along the first input: what raises it most is going up from the lower edge."""
    return KernelExpansion([[0.9, 0.5]], [1.0], [0.3, 3.0], [0.0, 0.0], [1.0, 1.0], input_names=["a", "b"])


@pytest.mark.parametrize("options", [bound_options(method="fixed", slices=4), bound_options(slices=4)])
@pytest.mark.parametrize("falls", [False, True])
def test_the_path_is_the_one_that_raises_the_latent(options: BoundOptions, falls: bool, tmp_path: Path) -> None:
    model = one_bump()
    if falls:
        model = model.replace(centres=[[0.1, 0.5]])
    reading = read_run(ask(model, options, tmp_path).folder)
    sequence = explain(reading, 0).sequence
    assert sequence is not None
    assert sequence.direction == (-1 if falls else 1)
    assert (sequence.from_slice, sequence.to_slice) == ((3, 0) if falls else (0, 3))
    assert sequence.from_range == pytest.approx((0.75, 1.0) if falls else (0.0, 0.25))
    assert sequence.to_range == pytest.approx((0.0, 0.25) if falls else (0.75, 1.0))


def test_values_are_in_the_units_of_the_data(tmp_path: Path) -> None:
    model = mixed_model().replace(lower=[0.0] * 3, upper=[1.0] * 3, provenance=json.dumps(SPAN))
    reading = read_run(ask(model, FIXED, tmp_path).folder)
    x, x_prime = reading.witnesses.pair(0)
    it = explain(reading, 0)
    (move,) = it.moves
    assert move.range == (10.0, 30.0)
    assert (move.start, move.end) == pytest.approx((10 + 20 * x[0], 10 + 20 * x_prime[0]))
    assert it.others["in2"] == pytest.approx(10 * x[2] - 5)
    assert it.sequence is not None
    assert 10.0 <= it.sequence.from_range[0] < it.sequence.from_range[1] <= 30.0
    assert it.centres[0].values[0] == pytest.approx(10 + 20 * model.centres[it.centres[0].centre, 0])


@pytest.mark.parametrize(
    "text", ["", "words", "[1]", '{"zero_and_one": [[1], [2]]}', '{"data": 3, "zero_and_one": {}}']
)
def test_what_others_wrote_as_provenance_counts_for_nothing(text: str) -> None:
    facts = facts_of(mixed_model().replace(provenance=text))
    assert (facts.zero_and_one, facts.classes, facts.noun, facts.pixels) == (None, None, "input", None)


@pytest.mark.parametrize("tasks", [2, 7])
def test_a_run_that_was_killed_is_read_as_far_as_it_got(
    tasks: int, request: pytest.FixtureRequest, folder: Path, tmp_path: Path
) -> None:
    options = OPTIONS[request.node.callspec.params["folder"]]
    with pytest.raises(KeyboardInterrupt):
        ask(mixed_model(), options, tmp_path, Logged(tasks, interrupt=True))
    (killed,) = tmp_path.iterdir()
    before = snapshot(killed)
    reading, final = read_run(killed), read_run(folder).certificate
    assert not reading.sealed
    assert not reading.certificate.complete
    assert np.all(reading.certificate.upper_bound >= final.upper_bound)
    assert (reading.certificate.inputs_required or 0) <= (final.inputs_required or 0)
    for d in range(3):
        it = explain(reading, d)
        assert not it.sealed
        assert it.upper_bound == reading.certificate.upper_bound[d]
    assert snapshot(killed) == before


def test_a_damaged_run_is_not_read(folder: Path, tmp_path: Path) -> None:
    for part in ("certificate.json", "evidence.zarr/bound/c/0/0/0", "evidence.zarr/status/c/0/0/0", "model.npz"):
        copy = Path(shutil.copytree(folder, tmp_path / part.replace("/", "-")))
        content = bytearray((copy / part).read_bytes())
        content[len(content) // 2] ^= 1
        (copy / part).write_bytes(content)
        with pytest.raises(IntegrityError):
            read_run(copy)
    with pytest.raises(IntegrityError, match="is not a run"):
        read_run(tmp_path)


def test_changes_are_called_by_name_or_number() -> None:
    model = mixed_model().replace(input_names=["age", "7", "income"])
    assert [change_of(model, wanted) for wanted in ("age", "7", "2", "income")] == [0, 1, 2, 2]
    for wanted in ("3", "-1", "incom", ""):
        with pytest.raises(JobError, match=r"neither the name of an input nor a number from 0 to 2"):
            change_of(model, wanted)
    with pytest.raises(JobError, match="did you mean 'income'"):
        change_of(model, "incom")
    grouped = model.restrict(groups={"means": ["age", "income"]})
    assert [change_of(grouped, wanted) for wanted in ("means", "7", "0")] == [0, 1, 0]
    with pytest.raises(JobError, match="'income' counts as one change with others; ask for 'means'"):
        change_of(grouped, "income")
    with pytest.raises(JobError, match=r"neither the name of an input or a group nor a number from 0 to 1"):
        change_of(grouped, "2")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_group_is_explained(options: BoundOptions, tmp_path: Path, call: Call) -> None:
    model = mixed_model(4, 3).restrict(groups={"two": [0, 2]})
    folder = ask(model, options, tmp_path).folder
    reading = read_run(folder)
    it = explain(reading, 0)
    x, x_prime = reading.witnesses.pair(0)
    assert (it.change, it.sequence, it.closed, it.n_changes) == ("two", None, None, 2)
    assert it.searched == int(reading.space.evidence.read("groups/used")[0])
    assert [(m.start, m.end) for m in it.moves] == [(x[j], x_prime[j]) for j in (0, 2) if x[j] != x_prime[j]]
    assert it.others == {"in1": x[1]}
    said = call("explain", folder, "two")
    assert said.code == 0, said.err
    assert "two (change 0 of run " in said.out
    assert f"Bound: {it.upper_bound:.6g}; changing two alone" in said.out
    assert explain(reading, 1).sequence is not None


def test_the_bound_of_another_kernel_is_that_of_its_parts(tmp_path: Path, call: Call) -> None:
    model = mixed_model(4, 2).replace(kernel="matern52").restrict(frozen=[1])
    certify(model, runs=tmp_path)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    it = explain(read_run(folder), 0)
    assert it.upper_bound == pytest.approx(sum(part.upper_bound for part in it.parts) + it.replaced, rel=1e-12)
    assert [part.times for part in it.parts] == sorted(part.times for part in it.parts)
    assert (it.sequence, it.closed, it.searched) == (None, None, None)
    said = call("explain", folder, "in0")
    assert said.code == 0, said.err
    for part in it.parts:
        assert f"{part.upper_bound:.6g} of {part.run}, of " in said.out
        assert call("explain", folder / "parts" / part.run, "in0").code == 0
    stays = call("explain", folder, "in1")
    assert stays.code == 0, stays.err
    assert stays.out.endswith("  It is frozen: an attacker cannot change it, so its bound is 0.\n")


def test_the_command(folder: Path, call: Call) -> None:
    reading = read_run(folder)
    said = call("explain", folder, "in1")
    assert (said.code, said.err) == (0, "")
    assert f"Bound: {reading.certificate.upper_bound[1]:.6g}; changing in1 alone" in said.out
    assert f"Attained: {reading.certificate.attained[1]:.6g}, " in said.out
    told = call("explain", folder, "1", "--json")
    assert json.loads(told.out) == json.loads(json.dumps(explain(reading, 1).to_dict()))
    assert call("explain", folder, "nothing").code == 2
    (folder.parent / "empty").mkdir(exist_ok=True)
    assert call("explain", folder.parent / "empty", "in1").code == 4
