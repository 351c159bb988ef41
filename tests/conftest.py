"""Options and fixtures of the whole suite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="slow: run with --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def problems() -> Path:
    """The problem suite, where the machine has it."""
    folder = os.environ.get("DASKAB_PROBLEMS")
    if not folder or not Path(folder).is_dir():
        pytest.skip("the problem suite is not here; set DASKAB_PROBLEMS to its folder")
    return Path(folder)


@pytest.fixture(scope="module")
def short_rounds() -> Iterator[None]:
    """Rounds of so few nodes that a small model goes through several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daskab.run.rounds.NODES_A_ROUND", 16)
        yield
