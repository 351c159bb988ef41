"""Options and fixtures of the whole suite."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from examples import Call, Said
from hypothesis import HealthCheck, settings

from daskab.cli import main
from daskab.run.executors.processes import Processes

settings.register_profile("default", deadline=None, max_examples=16, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")
    parser.addoption("--recipes", action="store_true", help="also run the tests marked recipe")
    parser.addoption("--long", action="store_true", help="also run the tests marked long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for mark, option in (("slow", "--slow"), ("long", "--long"), ("recipe", "--recipes")):
        skip = pytest.mark.skip(reason=f"{mark}: run with {option}")
        for item in items:
            if mark in item.keywords and not config.getoption(option):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def problems() -> Path:
    """The problem suite, where the machine has it."""
    folder = os.environ.get("DASKAB_PROBLEMS")
    if not folder or not Path(folder).is_dir():
        pytest.skip("the problem suite is not here; set DASKAB_PROBLEMS to its folder")
    return Path(folder)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command line in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*args: str | Path) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([str(arg) for arg in args])
        return Said(caught.value.code, *capsys.readouterr())

    return call


@pytest.fixture(scope="module")
def short_rounds() -> Iterator[None]:
    """Rounds of so few nodes that a small model goes through several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daskab.run.rounds.NODES_A_ROUND", 16)
        yield


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    """One cluster for all tests that need one: it takes seconds to start. It is not the only one on its machine."""
    with socket.socket() as another, ExitStack() as stack:
        with suppress(OSError):  # if it is taken, so much the better
            another.bind(("127.0.0.1", 8787))
            another.listen()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            workers = stack.enter_context(Processes())
            list(workers.begin())
        yield workers
