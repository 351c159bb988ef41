"""Several runs through one executor: none waits for another's last task, and each comes to what it does alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from examples import ATTACK, FIXED, OPTIONS, ask, mixed_model, sealed

from daskab import BusyError, IntegrityError, KernelExpansion
from daskab.errors import IncompleteError
from daskab.run import workspace
from daskab.run.certify import make_question
from daskab.run.driver import Drive
from daskab.run.executors import Ended
from daskab.run.executors.inline import Inline
from daskab.run.job import BoundOptions
from daskab.run.lease import one_writer
from daskab.run.plan import Plan, Question
from daskab.run.queue import Queue
from daskab.run.records import Assignment, Record
from daskab.run.stages import Outcome
from daskab.run.tasks import execute

MODELS = [mixed_model(seed=seed) for seed in range(3)]

pytestmark = pytest.mark.usefixtures("short_rounds")


class Ahead(Inline):
    """Takes as many tasks as it may have at once, as a cluster does, and ends the last of them first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.took: list[str] = []  # run ids
        self.idle = 0  # times it could have taken more

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[tuple[Assignment, Record]]:
        stream = iter(assignments)
        has: list[Assignment] = []
        while True:
            while len(has) < self.most and (given := next(stream, None)) is not None:
                has.append(given)
                self.took.append(given.run_id)
            if not has:
                return
            self.idle += self.most - len(has)
            done = has.pop()
            yield done, execute(*done)


def question(model: KernelExpansion, bound: BoundOptions = FIXED) -> Question:
    return make_question(model, bound, ATTACK)


def drive(model: KernelExpansion, bound: BoundOptions, runs: Path) -> Drive:
    """Of a run cut into few tasks, as many however fast the machine is."""
    asked = question(model, bound)
    workspace.create(runs / asked.run_id, Plan(asked, 5, 2, 60), model)
    return Drive(asked, model, runs)


def test_each_comes_to_what_it_does_alone(tmp_path: Path) -> None:
    asked = [(model, bound) for model in MODELS for bound in OPTIONS.values()]
    executor = Ahead(5)
    drives = [drive(*one, tmp_path / "together") for one in asked]
    outcomes = dict(Queue(drives, executor).outcomes())
    assert len(outcomes) == len(asked)
    for run, (model, bound) in zip(drives, asked, strict=True):
        assert sealed(outcomes[run]) == sealed(ask(model, bound, tmp_path / "alone"))
    changes = sum(one != other for one, other in zip(executor.took[:-1], executor.took[1:], strict=True))
    assert changes > len(asked)  # they did not go one after another
    alone = Ahead(5)
    for model, bound in asked:
        for _ in Queue([drive(model, bound, tmp_path / "in turn")], alone).outcomes():
            pass
    assert sorted(alone.took) == sorted(executor.took)
    assert executor.idle < alone.idle / 2


def test_the_first_come_first(tmp_path: Path) -> None:
    executor = Ahead(1)
    drives = [Drive(question(model), model, tmp_path) for model in MODELS]
    assert [drive for drive, _ in Queue(drives, executor).outcomes()] == drives
    assert executor.took == sorted(executor.took, key=[drive.question.run_id for drive in drives].index)


def test_a_run_is_opened_when_there_is_room_for_it(tmp_path: Path) -> None:
    opened: list[int] = []

    def drives() -> Iterator[Drive]:
        for number, model in enumerate(MODELS):
            opened.append(number)
            yield Drive(question(model), model, tmp_path)

    left = [len(opened) for _ in Queue(drives(), Inline()).outcomes()]
    assert left == [1, 2, 3]


def test_the_same_question_twice_is_answered_once(tmp_path: Path) -> None:
    executor = Ahead(50)
    drives = [Drive(question(MODELS[0]), MODELS[0], tmp_path) for _ in range(3)]
    outcomes = dict(Queue(drives, executor).outcomes())
    assert [outcomes[drive].found for drive in drives] == [False, True, True]
    assert len({sealed(outcome) for outcome in outcomes.values()}) == 1


def test_what_ends_one_ends_all_and_lets_go_of_them(tmp_path: Path) -> None:
    drives = [Drive(question(model), model, tmp_path) for model in MODELS]
    with one_writer(drives[1].folder), pytest.raises(BusyError, match=drives[1].question.run_id):
        list(Queue(drives, Ahead(50)).outcomes())
    outcomes = list(Queue(drives, Ahead(50)).outcomes())
    assert all(outcome.sealed for _, outcome in outcomes)


class Losing(Inline):
    """Loses the contributions of a run once they are all there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[Ended]:
        for ended in super().run(assignments):
            if ended[0].folder == str(self.folder) and ended[0].task.stage == "attack":
                shutil.rmtree(self.folder / "evidence.zarr/contributions", ignore_errors=True)
            yield ended


def test_what_ends_one_leaves_the_others_if_asked_to(tmp_path: Path) -> None:
    first, second, third = drives = [drive(model, FIXED, tmp_path) for model in MODELS]
    with one_writer(second.folder):
        came = dict(Queue(drives, Losing(first.folder)).endings())
    assert isinstance(came[first], IntegrityError)
    assert isinstance(came[second], BusyError)
    assert isinstance(came[third], Outcome)
    assert came[third].sealed


class Broken(Inline):
    """Cannot do anything."""

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[Ended]:
        next(iter(assignments))
        raise IncompleteError("no worker came")


def test_what_was_found_is_told_whatever_ends_the_others(tmp_path: Path) -> None:
    ask(MODELS[0], FIXED, tmp_path)
    drives = [Drive(question(model), model, tmp_path) for model in MODELS]
    told: list[Outcome] = []
    with pytest.raises(IncompleteError, match="no worker came"):
        told.extend(outcome for _, outcome in Queue(drives, Broken()).outcomes())
    assert [outcome.found for outcome in told] == [True]


def test_when_time_is_up_each_says_what_is_known(tmp_path: Path) -> None:
    first = ask(MODELS[0], FIXED, tmp_path)
    executor = Ahead(5)
    drives = [Drive(question(model), model, tmp_path, deadline=0.0) for model in MODELS]
    outcomes = dict(Queue(drives, executor).outcomes())
    assert executor.took == []
    assert outcomes[drives[0]].certificate.to_json() == first.certificate.to_json()
    assert [outcomes[drive].sealed for drive in drives] == [True, False, False]
