"""Chaos: random schedules of faults. No certificate is ever wrong, no sealed one is lost, nothing hangs."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from chaos.faults import DAMAGE, ENDS, WRITES, FaultyExecutor, FaultyStore, Killed
from examples import ask, mixed_model, run_folder, sealed
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from daskab.errors import BusyError, IncompleteError, IntegrityError
from daskab.run.certificate import Certificate
from daskab.run.executors import Executor
from daskab.run.job import bound_options
from daskab.run.lease import one_writer
from daskab.run.stages import Outcome

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_rounds")]

SCHEDULES, PARTS = 205, 41
"""Over 200 random schedules."""
MODEL = mixed_model(3, 2)
OPTIONS = bound_options(slices=2, rtol=1e-9, node_budget=20, pair_nodes=20, set_nodes=0)
CUT = (12, 2, 60)
LONGEST = 60
"""Seconds a step may take before it counts as hung; most take less than one."""


@cache
def undisturbed() -> tuple[bytes, Certificate]:
    """What the run comes to in peace."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = ask(MODEL, OPTIONS, Path(folder), cut=CUT)
        return sealed(outcome), outcome.certificate


@contextmanager
def no_hang() -> Iterator[None]:
    """Fail if what is in the context does not end."""

    def hung(*_: object) -> NoReturn:
        raise AssertionError("hangs")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Faults(RuleBasedStateMachine):
    """One run, and whatever happens to it."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = Path(tempfile.mkdtemp(prefix="daskab-faults-"))
        self.damaged = False  # something was lost that nobody was told of

    @property
    def files(self) -> list[Path]:
        """All files of the run but the lock."""
        return sorted(path for path in self.runs.rglob("*") if path.is_file() and path.name != ".lock")

    def contents(self) -> dict[Path, bytes]:
        """What is in them, once nothing changes: zarr writes in a thread that a death in this one spares."""
        while True:
            with suppress(FileNotFoundError):
                first = {path: path.read_bytes() for path in self.files}
                time.sleep(0.05)
                if first == {path: path.read_bytes() for path in self.files}:
                    return first

    def attempt(
        self, executor: Executor | None = None, time_limit: float | None = None, *, unnoticed: bool = False
    ) -> Outcome | None:
        """Give the command once and hold it to what is promised of it; None if it ended in one of the ways it may.

        Where a write goes wrong ``unnoticed`` it may be the very last one: what is said is true all the same, and the
        next command finds the file wrong.
        """
        before = {path: path.read_bytes() for path in self.runs.glob("*/certificate.json")}
        try:
            with no_hang():
                outcome = ask(MODEL, OPTIONS, self.runs, executor, cut=CUT, time_limit=time_limit)
        except (Killed, KeyboardInterrupt, IncompleteError):
            outcome = None
        except OSError:  # `ask` lays runs out itself
            assert not list(self.runs.glob("*/plan.json"))
            outcome = None
        except IntegrityError:
            assert self.damaged
            outcome = None
        assert all(path.read_bytes() == content for path, content in before.items())
        content, truth = undisturbed()
        if outcome is None:
            return None
        if outcome.sealed:
            assert outcome.certificate.to_json().encode() == content
            assert unnoticed or sealed(outcome) == content
            return outcome
        part = outcome.certificate
        assert not part.complete
        assert np.all(part.upper_bound >= truth.attained)
        assert np.all(part.attained <= truth.upper_bound)
        assert part.inputs_required <= truth.inputs_required
        return outcome

    @rule(number=st.integers(1, 120), how=st.sampled_from(WRITES))
    def a_write_goes_wrong(self, number: int, how: str) -> None:
        faults = FaultyStore(number, how)
        unnoticed = how in ("torn", "vanished")
        self.damaged |= unnoticed
        with faults.at_work():
            self.attempt(unnoticed=unnoticed)
        self.contents()

    @rule(
        seed=st.integers(0, 2**32 - 1),
        fails=st.sampled_from((0.0, 0.2)),
        repeats=st.sampled_from((0.0, 0.5)),
        most=st.integers(0, 14),
        end=st.sampled_from(ENDS),
    )
    def the_cluster_goes_wrong(self, seed: int, fails: float, repeats: float, most: int, end: str) -> None:
        self.attempt(FaultyExecutor(seed, fails=fails, repeats=repeats, most=most, end=end))

    @rule()
    def time_is_up(self) -> None:
        self.attempt(time_limit=1e-3)

    @precondition(lambda self: self.files)
    @rule(which=st.integers(0), how=st.sampled_from(sorted(DAMAGE)))
    def a_file_is_damaged(self, which: int, how: str) -> None:
        paths = sorted(self.contents())
        self.damaged = True
        DAMAGE[how](paths[which % len(paths)])

    @precondition(lambda self: list(self.runs.glob("*/plan.json")))  # `ask` lays a run out before it is refused
    @rule()
    def another_is_on_it(self) -> None:
        before = self.contents()
        there = list(self.runs.glob("*/certificate.json"))  # what is sealed is read, or refused, without holding it
        with one_writer(run_folder(self.runs)), nullcontext() if there else pytest.raises(BusyError):
            self.attempt()
        assert self.contents() == before

    def teardown(self) -> None:
        """In the end there is peace: the run is finished, or refused and then made anew."""
        try:
            outcome = self.attempt() or self.attempt()
            if outcome is None:  # refused twice: it says to move the run away
                shutil.rmtree(self.runs)
                outcome = self.attempt()
            assert outcome is not None
            assert outcome.sealed
        finally:
            shutil.rmtree(self.runs)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_schedules_of_faults(part: int) -> None:
    """In parts: pytest's processes begin with the modules of most tests, and this one takes the longest."""
    run_state_machine_as_test(
        Faults,
        settings=settings(
            max_examples=SCHEDULES // PARTS,
            stateful_step_count=2,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a schedule is short as it is
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
