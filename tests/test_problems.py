"""The problem suite: no bound below what is attained there, and no more certified than an attack allows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskab import Certificate, certify, load_model

FOLDER = Path(os.environ.get("DASKAB_PROBLEMS", ""))
NAMES = sorted(json.loads((FOLDER / "attained.json").read_text())) if FOLDER.name else ["none"]
TRAPS = sorted(p.stem for p in (FOLDER / "traps").glob("*.npz")) if FOLDER.name else ["none"]

METHODS: dict[str, dict[str, Any]] = {
    "adaptive": {"node_budget": 400, "pair_nodes": 8000, "set_nodes": 6000},
    "fixed": {"method": "fixed", "slices": 4, "enhance": 2},
    "grid": {"method": "grid", "slices": 2, "resolution": 20, "enhance": 1},
}

# Many inputs, or hard ones.
SLOW = {(name, "adaptive") for name in NAMES if name.startswith("mnist28")}
SLOW |= {("mnist28_0v1_l2.154_m4", method) for method in METHODS} | {("mnist28_0v1_l10_m4", "fixed")}
SLOW |= {("few_90067", "adaptive"), ("few_90153", "adaptive")}

# Tell no more than the others of their method.
LONG = {("mnist28_0v1_l2.154_m4", "fixed"), ("mnist28_0v1_l2.154_m4", "adaptive")}
LONG |= {("credit_l2_dense400", "adaptive"), ("bank_l0.3", "adaptive")}
LONG |= {(name, method) for name in NAMES for method in ("fixed", "grid") if name.startswith("mnist")}
LONG |= {("few_90067", "adaptive"), ("few_90153", "adaptive"), ("mnist28_0v1_l21.544_m4", "adaptive")}
LONG |= {("bank_l0.3", "fixed"), ("bank_l0.3", "grid"), ("bank_l1", "adaptive"), ("credit_l2_m10", "adaptive")}
LONG |= {("bank_l1", "fixed"), ("mnist8_3v5_l1_m5", "adaptive")}

# With so few nodes something is left between certificate and attack; everywhere else they meet.
OPEN = {"mnist8_3v5_l1_m5", "synthetic8"}

# The attained values of the suite are not rounded down.
ROUNDING = 1.0 - 1e-12


def certified(path: Path, method: str, done: dict[tuple[Path, str], Certificate]) -> Certificate:
    if (path, method) not in done:
        done[path, method] = certify(load_model(path), **METHODS[method])
    return done[path, method]


def cases(names: list[str]) -> list[Any]:
    """Every name with every method, some marked slow or long."""
    return [
        pytest.param(
            name,
            method,
            marks=[mark for mark, of in ((pytest.mark.slow, SLOW), (pytest.mark.long, LONG)) if (name, method) in of],
        )
        for name in names
        for method in METHODS
    ]


@pytest.fixture(scope="module")
def done() -> dict[tuple[Path, str], Certificate]:
    """Certificates made so far."""
    return {}


@pytest.mark.parametrize(("name", "method"), cases(NAMES))
def test_problem(name: str, method: str, problems: Path, done: dict[tuple[Path, str], Certificate]) -> None:
    table = json.loads((problems / "attained.json").read_text())[name]
    certificate = certified(problems / f"{name}.npz", method, done)
    known = np.array(table["attained"])
    assert np.all(certificate.upper_bound >= known * ROUNDING)
    assert np.all(certificate.upper_bound >= certificate.attained)
    assert certificate.inputs_required is not None
    assert certificate.inputs_required_by_sum is not None
    assert certificate.inputs_required_by_sum <= table["k_attained"]
    assert certificate.inputs_required_at_best is not None
    assert certificate.inputs_required_by_sum <= certificate.inputs_required_at_best
    # An attack on the difference alone, as the table's, limits the sum; one over both thresholds limits all.
    assert certificate.inputs_required_by_sum <= table["k_joint_attack"]
    assert certificate.attack_inputs is not None
    assert certificate.inputs_required_by_sum <= certificate.inputs_required <= certificate.attack_inputs
    if method == "adaptive" and name not in OPEN:
        assert certificate.exact
    assert not certificate.no_attack_exists
    if method != "adaptive":
        assert certificate.complete


@pytest.mark.parametrize(("name", "method"), cases(TRAPS))
def test_trap(name: str, method: str, problems: Path, done: dict[tuple[Path, str], Certificate]) -> None:
    path = problems / "traps" / f"{name}.npz"
    with np.load(path) as trap:
        d, attained, x, x_prime = int(trap["input"]), float(trap["attained"]), trap["x"], trap["x_prime"]
    certificate = certified(path, method, done)
    assert certificate.upper_bound[d] >= attained * ROUNDING
    assert np.all(certificate.upper_bound >= certificate.attained)
    assert np.flatnonzero(x != x_prime).tolist() == [d]
    latent = load_model(path).latent([x, x_prime])
    assert latent[1] - latent[0] == pytest.approx(attained, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_units_make_no_difference(method: str, problems: Path, done: dict[tuple[Path, str], Certificate]) -> None:
    """Per-input lengthscales, a box far from [0, 1] and a constant: the same bounds, the same k."""
    plain = certified(problems / "credit_l2_m4.npz", method, done)
    raw = certified(problems / "credit_l2_m4_rawunits.npz", method, done)
    assert raw.upper_bound == pytest.approx(plain.upper_bound, rel=1e-6)
    assert raw.attained == pytest.approx(plain.attained, rel=1e-6)
    for name in ("inputs_required", "inputs_required_at_best", "attack_inputs", "open_inputs", "complete"):
        assert getattr(raw, name) == getattr(plain, name), name
