"""Certificates of models whose inputs are frozen, limited, listed, or count together: sound, and tight where small."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import Said
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import pairs_of, restricted_models

from daskab import KernelExpansion, attack_points, certify
from daskab.attack.within import Within
from daskab.bound.scaled import Scaled


def random_model(m: int, d: int, lengthscale: float, seed: int, **told: Any) -> KernelExpansion:
    rng = np.random.default_rng(seed)
    plain = KernelExpansion(rng.random((m, d)), rng.normal(size=m), lengthscale, np.zeros(d), np.ones(d))
    low, high = np.percentile(plain.latent(rng.random((400, d))), [20, 80])
    return plain.replace(latent_low=float(low), latent_high=float(high)).restrict(**told)


@settings(max_examples=10)
@given(
    model=restricted_models(max_centres=8, max_inputs=7, lengthscales=(0.2, 5.0), thresholds=True),
    method=st.sampled_from([{"node_budget": 200}, {"node_budget": 200}, {"method": "fixed", "slices": 3}]),
    seed=st.integers(0, 2**32 - 1),
)
def test_nothing_an_attacker_can_do_exceeds_its_bound(
    model: KernelExpansion, method: dict[str, Any], seed: int
) -> None:
    certificate = (
        certify(model, pair_nodes=300, set_nodes=300, **method) if "slices" not in method else certify(model, **method)
    )
    rng = np.random.default_rng(seed)
    slack = 1e-13 * np.abs(model.weights).sum() * (1 + model.n_inputs)
    domain = model.domain
    assert certificate.input_names == domain.change_names(model.input_names)
    assert certificate.witnesses is not None
    for c, inputs in enumerate(domain.changes):
        x, x_prime = certificate.witnesses.pair(c)
        assert domain.allows(x, x_prime)
        assert set(np.flatnonzero(x != x_prime)) <= set(inputs)
        tried = [pair for pair in pairs_of(model, inputs, rng, 200)]
        change = max((np.ptp(model.latent(pair)) for pair in tried), default=0.0)
        assert certificate.upper_bound[c] >= max(change, certificate.attained[c]) - slack
    if certificate.attack is not None:
        x, x_prime = np.array(certificate.attack.x), np.array(certificate.attack.x_prime)
        assert domain.allows(x, x_prime)
        assert domain.n_changes(x, x_prime) == certificate.attack.n_inputs >= (certificate.inputs_required or 99)


def exact_change(model: KernelExpansion, inputs: tuple[int, ...], values: dict[int, np.ndarray]) -> float:
    """Largest change over all points there are, where every input is listed."""
    points = np.array(list(itertools.product(*(values[j] for j in range(model.n_inputs)))))
    points = points[[model.domain.holds(point) for point in points]]
    latent = model.latent(points)
    others = [j for j in range(model.n_inputs) if j not in inputs]
    best = 0.0
    for key in np.unique(points[:, others], axis=0):
        same = latent[np.all(points[:, others] == key, axis=1)]
        best = max(best, float(np.ptp(same)))
    return best


def test_listed_values_are_bounded_as_such() -> None:
    """Inputs on and off, as many centres as make the box be cut across them: bounds within the tolerance."""
    model = random_model(12, 5, 0.4, 0)
    values = {j: np.array([0.0, 1.0]) for j in range(5)} | {4: np.array([0.0, 0.25, 0.5])}
    listed = model.restrict(values=values)
    certificate, plain = certify(listed, set_nodes=0), certify(model, set_nodes=0)
    for d in range(5):
        exact = exact_change(listed, (d,), values)
        assert exact <= certificate.upper_bound[d] <= max(exact, certificate.upper_bound.max()) * 1.01
        assert certificate.attained[d] == pytest.approx(exact, rel=1e-9)
    assert certificate.complete
    assert certificate.upper_bound.max() < 0.95 * plain.upper_bound.max()


def test_a_category_is_bounded_from_state_to_state() -> None:
    values = {j: np.array([0.0, 1.0]) for j in range(5)}
    told = {"values": {j: values[j] for j in (3, 4)}, "categories": {"kind": [0, 1, 2]}}
    for at_most_one in (False, True):
        model = random_model(8, 5, 0.7, 1, **told, at_most_one=at_most_one)
        certificate = certify(model, set_nodes=0)
        exact = exact_change(model, (0, 1, 2), values)
        assert certificate.input_names[0] == "kind"
        assert certificate.attained[0] == pytest.approx(exact, rel=1e-9)
        assert exact <= certificate.upper_bound[0] <= exact * 1.02


def test_a_group_is_bounded_as_one_change() -> None:
    """Three inputs of four at once: no more than the sum of the three, and near what is attained."""
    model = random_model(6, 4, 0.8, 2)
    alone, together = certify(model), certify(model.restrict(groups={"colour": [0, 1, 2]}))
    assert together.input_names == ("colour", "x3")
    assert together.upper_bound[0] < 0.9 * alone.upper_bound[:3].sum()
    assert together.attained[0] <= together.upper_bound[0] <= together.attained[0] * 1.02
    assert together.upper_bound[1] == pytest.approx(alone.upper_bound[3], rel=1e-6)
    assert together.inputs_required is not None
    assert alone.inputs_required is not None
    assert together.inputs_required <= alone.inputs_required


def test_a_large_group_is_no_more_than_its_parts() -> None:
    model = random_model(4, 8, 2.0, 3, groups={"patch": list(range(7))})
    certificate = certify(model)
    assert certificate.attained[0] <= certificate.upper_bound[0] <= 1.5 * certificate.attained[0]
    assert certificate.attack is None or certificate.attack.n_inputs <= 2


def test_what_is_frozen_does_not_count() -> None:
    model = random_model(4, 5, 1.0, 4)
    frozen = certify(model.restrict(frozen=[0, 1, 2]))
    assert frozen.upper_bound[:3].tolist() == [0.0, 0.0, 0.0]
    assert frozen.attained[:3].tolist() == [0.0, 0.0, 0.0]
    assert np.all(frozen.upper_bound[3:] > 0.0)
    assert frozen.attack is None or frozen.attack.n_inputs <= 2
    everything = certify(model.restrict(frozen=range(5)))
    assert everything.no_attack_exists


def test_no_bound_of_a_category_is_taken_for_proved_where_no_level_is() -> None:
    """Among subnormal numbers the steps from level to level vanish."""
    model = KernelExpansion([[0.2, 0.2], [0.8, 0.7]], [1e-321, -1e-321], 0.3, [0, 0], [1, 1])
    certificate = certify(model.restrict(categories={"kind": [0, 1]}))
    assert certificate.upper_bound[0] >= np.ptp(model.latent(np.eye(2))) > 0.0


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_limit_is_bounded_to_the_tolerance(share: float) -> None:
    model = random_model(5, 4, 0.6, 5)
    limited = certify(model.restrict(max_change=dict.fromkeys(range(4), share)))
    assert limited.complete
    at = limited.attained.argmax()
    assert limited.upper_bound[at] <= limited.attained[at] * 1.0021
    x, x_prime = limited.witnesses.pair(int(at))  # type: ignore[union-attr]
    assert np.abs(x_prime - x).max() <= share
    grid = np.linspace(0.0, 1.0, 201)
    line = np.tile(x, (201, 1))
    line[:, at] = grid
    latent = model.latent(line)
    steps = int(share * 200)
    assert max(np.ptp(latent[k : k + steps + 1]) for k in range(201 - steps)) <= limited.upper_bound[at]


def test_joint_searches_know_of_limits_and_groups() -> None:
    """Few centres: pairs of points are searched, with groups as one change and moves cut short."""
    rng = np.random.default_rng(0)
    model = KernelExpansion(rng.random((3, 30)), [2.0, -1.5, 1.0], 4.0, np.zeros(30), np.ones(30))
    latent = model.latent(np.round(rng.random((2000, 30))))
    model = model.replace(latent_low=float(latent.min()), latent_high=float(latent.max()))
    plain = certify(model)
    limited = certify(model.restrict(max_change=dict.fromkeys(range(30), 0.6)))
    grouped = certify(model.restrict(groups={f"g{k}": [3 * k, 3 * k + 1, 3 * k + 2] for k in range(10)}))
    for certificate in (plain, limited, grouped):
        required = certificate.inputs_required or len(certificate.input_names) + 1
        assert certificate.attack is None or required <= certificate.attack.n_inputs
        assert certificate.inputs_excluded_by_pairs > 0
    assert plain.inputs_required is not None
    assert (limited.inputs_required or 31) > plain.inputs_required
    assert grouped.inputs_required is not None
    assert grouped.inputs_required < plain.inputs_required


def test_points_are_moved_no_farther_than_they_may() -> None:
    """To the bit: what is clipped to a limit may lie beyond it once it is added."""
    rng = np.random.default_rng(5)
    model = random_model(5, 6, 0.8, 8, max_change=dict.fromkeys(range(4), 0.3), values={4: [0.0, 0.4, 1.0]})
    given_points = model.domain.nearest(rng.random((60, 6)))
    attacked = attack_points(model, given_points)
    assert np.count_nonzero(attacked.n_inputs) > 5
    for x, x_prime in zip(given_points, attacked.points, strict=True):
        assert model.domain.allows(x, x_prime)


@settings(max_examples=15)
@given(model=restricted_models(max_centres=6, max_inputs=6), seed=st.integers(0, 99))
def test_attacks_stay_in_the_domain(model: KernelExpansion, seed: int) -> None:
    within = Within(model, 4, seed) if not model.domain.whole else None
    for inputs in model.domain.changes if within else ():
        assert within is not None
        x, x_prime = within.best_pair(inputs)
        assert model.domain.allows(x, x_prime)
        assert set(np.flatnonzero(x != x_prime)) <= set(inputs)


def test_limits_and_values_are_scaled_outward() -> None:
    model = random_model(3, 3, 0.3, 7, max_change={0: 0.1}, values={1: [0.0, 0.3, 1.0]})
    reach, width = Scaled.of(model).reach, Scaled.of(model).width
    assert reach.limit[0] > 0.1 / 0.3
    assert np.isinf(reach.limit[1:]).all()
    assert reach.values[0] == 0.0
    assert reach.values[-1] == width[1]


DOMAIN_JOB = """\
name = "limits"
[data]
source = "{source}"
train_size = 60
test_size = 50
[[model]]
name = "m"
lengthscale = {lengthscale}
{more}
[bound]
node_budget = 500
set_nodes = 0
[domain]
{domain}
"""


@pytest.fixture
def job(tmp_path: Path) -> Any:
    def write(domain: str, source: str = "digits", lengthscale: float = 3.0, data: str = "", more: str = "") -> Path:
        path = tmp_path / "job.toml"
        text = DOMAIN_JOB.format(source=source, lengthscale=lengthscale, domain=domain, more=more)
        path.write_text(text.replace("[[model]]", f"{data}\n[[model]]"))
        return path

    return write


@pytest.mark.parametrize(
    ("domain", "said"),
    [
        ('frozen = ["r9c9"]', "domain: there is no input 'r9c9'"),
        ("patch = 0", "domain.patch: 0 is not greater than or equal to 1"),
        ("at_most_one = true", "domain.at_most_one: true is given, but there are no categories"),
        ("max_change = {r0c2 = -1.0}", "domain.max_change.r0c2: -1.0 is not greater than or equal to 0"),
    ],
)
def test_a_wrong_domain_is_one_line(job: Any, domain: str, said: str, call: Any, tmp_path: Path) -> None:
    data = 'classes = ["3", "5"]\npool = 4'
    result: Said = call("run", job(domain, data=data), "--runs", tmp_path / "runs")
    assert result.code == 2
    assert said in result.err
    assert "Traceback" not in result.err


def test_pixels_in_a_square_count_as_one_change(job: Any, call: Any, tmp_path: Path) -> None:
    """Digits averaged to 4 x 4, squares of 2 x 2: four changes; verified by everything there is."""
    data = 'classes = ["3", "5"]\npool = 4'
    path = job("patch = 2", data=data, lengthscale=2.0, more="inducing_points = 4")
    runs = tmp_path / "runs"
    result: Said = call("run", path, "--runs", runs)
    assert result.code == 0, result.err
    run = next(found for found in runs.iterdir() if (found / "certificate.json").exists())
    assert "Attacker: 4 groups" in result.out
    assert "groups." in result.out
    assert "patch-1-0" in (run / "certificate.json").read_text()
    verified: Said = call("verify", run, "--all")
    assert verified.code == 0, verified.err
    explained: Said = call("explain", run, "patch-0-0")
    assert explained.code == 0, explained.err
    assert "a search over its inputs together" in explained.out
    reported: Said = call("report", run, "-o", tmp_path / "page")
    assert reported.code == 0, reported.err
    assert "patch-1-0" in (tmp_path / "page" / "index.html").read_text()


def test_values_are_in_the_units_of_the_data(job: Any, call: Any, tmp_path: Path) -> None:
    """A pixel of the digits is one of 17 numbers of dots, and may change by 4 of them."""
    data = 'classes = ["3", "5"]'
    domain = 'integers = ["r2c2", "r3c3"]\nmax_change = {r2c2 = 4.0}'
    runs = tmp_path / "runs"
    result: Said = call("run", job(domain, data=data, more="inducing_points = 3"), "--runs", runs)
    assert result.code == 0, result.err
    run = next(found for found in runs.iterdir() if (found / "certificate.json").exists())
    with np.load(run / "model.npz") as stored:
        assert np.unique(stored["listed_value"]).tolist() == [k / 16 for k in range(17)]
        assert stored["max_change"][np.isfinite(stored["max_change"])].tolist() == [0.25]
    assert call("explain", run, "r2c2").code == 0
