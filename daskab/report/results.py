"""What became of the models of a job, one after another: what every report is written from, however the job ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from daskab.run.certificate import Certificate
from daskab.run.driver import Outcome

INCOMPLETE = 3
NOT_MET = 1


def exit_code(certificate: Certificate, require_inputs: int | None) -> int:
    """0 certified as required, 1 requirement not met, 3 incomplete."""
    proved = certificate.no_attack_exists or (certificate.inputs_required or 0) >= (require_inputs or 0)
    if require_inputs is not None and proved:
        return 0
    if not certificate.complete:
        return INCOMPLETE
    return 0 if proved else NOT_MET


@dataclass(frozen=True)
class Result:
    """What became of one model; with neither an outcome nor an error it was not reached."""

    model: str
    seconds: float = 0.0
    outcome: Outcome | None = None
    accuracy: float | None = None
    error: str | None = None  #: what ended the job here


class Results:
    """The results of a job, which takes its models in order.

    Attributes
    ----------
    job : its name
    require_inputs : what it requires of each model
    code : exit code so far
    begun : UTC
    """

    def __init__(self, job: str, models: Sequence[str], require_inputs: int | None) -> None:
        self.job = job
        self.require_inputs = require_inputs
        self.code = 0
        self.begun = datetime.now(UTC)
        self._models = tuple(models)
        self._done: list[Result] = []
        self._clock = time.monotonic()

    def __iter__(self) -> Iterator[Result]:
        """One for every model of the job."""
        yield from self._done
        yield from map(Result, self._models[len(self._done) :])

    def add(self, outcome: Outcome, accuracy: float | None = None) -> None:
        """The next model has an outcome; ``accuracy`` is the model's own, if known."""
        self._next(outcome=outcome, accuracy=accuracy)
        self.code = max(self.code, exit_code(outcome.certificate, self.require_inputs))

    def stop(self, code: int, error: str) -> None:
        """The job ended here, in the next model if there is one."""
        if len(self._done) < len(self._models):
            self._next(error=error)
        self.code = code

    def _next(self, *, outcome: Outcome | None = None, accuracy: float | None = None, error: str | None = None) -> None:
        now = time.monotonic()
        self._done.append(Result(self._models[len(self._done)], now - self._clock, outcome, accuracy, error))
        self._clock = now
