"""Certificates are what their published schema says, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from examples import mixed_model

from daskab import KernelExpansion, LinearModel, certify, certify_linear
from daskab.cli import main
from daskab.run.certificate import SCHEMA


@pytest.fixture
def schema(capsys: pytest.CaptureFixture[str]) -> Any:
    with pytest.raises(SystemExit) as ended:
        main(["schema"])
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def plain() -> KernelExpansion:
    """Without thresholds."""
    return KernelExpansion([[0.2, 0.5], [0.8, 0.5]], [-1.0, 1.0], 0.5, [0, 0], [1, 1])


def out_of_reach() -> KernelExpansion:
    return plain().replace(latent_low=-9.0, latent_high=9.0)


@pytest.mark.parametrize("model", [mixed_model, plain, out_of_reach])
@pytest.mark.parametrize("method", ["adaptive", "fixed", "grid"])
def test_every_kind_of_certificate_fits(model: Callable[[], KernelExpansion], method: Any, schema: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    said = json.loads(certify(model(), method=method, slices=3).to_json())
    jsonschema.validate(said, schema)
    assert said["schema"] == SCHEMA == schema["title"]
    assert set(schema["properties"]) == set(said)


@pytest.mark.parametrize(
    "thresholds", [{}, {"latent_low": 0.5, "latent_high": 1.5}, {"latent_low": -9.0, "latent_high": 9.0}]
)
def test_so_does_a_linear_models(thresholds: dict[str, float], schema: Any) -> None:
    said = json.loads(certify_linear(LinearModel([1.0, 2.0], [0, 0], [1, 1], **thresholds)).to_json())
    jsonschema.validate(said, schema)
    assert set(schema["properties"]) == set(said)


@pytest.mark.parametrize(
    "change",
    [
        {"inputs_required": 0},
        {"upper_bound": [-1.0]},
        {"run_id": "x"},
        {"complete": None},
        {"schema": "daskab certificate 2"},
        {"attack": {"n_inputs": 1}},
        {"more": 1},
    ],
)
def test_anything_else_does_not(change: dict[str, Any], schema: Any) -> None:
    said = json.loads(certify(plain(), method="fixed", slices=2).to_json())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(said | change, schema)
    del said["upper_bound"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(said, schema)
