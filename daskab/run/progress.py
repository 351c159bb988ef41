"""Who is told how a run goes on. Kernels and tasks never print: the driver tells, and others show or write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from daskab.run.records import Failure, Record

if TYPE_CHECKING:
    from daskab.run.stages import Outcome

Begun = Literal["begun", "resumed", "found"]


class SoFar(NamedTuple):
    """What is certified while a run goes on; all of it holds for good."""

    inputs_required: int | None  #: no attack changes fewer inputs; None: no attack exists
    attack_inputs: int | None  #: inputs the best attack found changes; None: none was found yet
    open_inputs: int  #: inputs that are not closed to the tolerance yet


class Progress:
    """Told how a run goes on, between two of its tasks; as it stands it says nothing, and who watches overrides it."""

    def begin(self, run_id: str, how: Begun) -> None:
        """A run is begun, goes on where an earlier try stopped, or is found sealed."""

    def stage(self, name: str, total: int, done: int) -> None:
        """A stage of ``total`` tasks begins, ``done`` of them found finished."""

    def advance(self, record: Record) -> None:
        """A task of the stage is finished."""

    def fail(self, failure: Failure) -> None:
        """A task of the stage could not be done."""

    def wait(self) -> None:
        """Nothing has happened for a second or so."""

    def known(self, so_far: SoFar) -> None:
        """What is certified has changed; only told of a model with thresholds."""

    def end(self, outcome: Outcome) -> None:
        """The run has come to an outcome, sealed or not."""


class Watchers(Progress):
    """Several who watch, told in this order."""

    def __init__(self, *watchers: Progress) -> None:
        self._watchers = watchers

    def begin(self, run_id: str, how: Begun) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.begin(run_id, how)

    def stage(self, name: str, total: int, done: int) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.stage(name, total, done)

    def advance(self, record: Record) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.advance(record)

    def fail(self, failure: Failure) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.fail(failure)

    def wait(self) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.wait()

    def known(self, so_far: SoFar) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.known(so_far)

    def end(self, outcome: Outcome) -> None:
        """Tell all."""
        for watcher in self._watchers:
            watcher.end(outcome)
