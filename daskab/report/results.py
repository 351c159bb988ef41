"""What became of the models of a job: what every report is written from, however the job ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from daskab.run.baseline import CertifiedBaseline
from daskab.run.certificate import Certificate
from daskab.run.stages import Outcome

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
    baseline: CertifiedBaseline | None = None  #: what the model is compared with
    error: str | None = None  #: what ended the job here
    worse: str | None = None  #: how it fell behind an earlier result by more than is tolerated


@dataclass(frozen=True)
class BaselineResult:
    """What became of a baseline: it is certified, or there is an error."""

    name: str
    seconds: float
    found: CertifiedBaseline | None = None
    error: str | None = None
    worse: str | None = None  #: as of a model


class Results:
    """The results of a job.

    Attributes
    ----------
    job : its name
    require_inputs : what it requires of each model
    code : exit code so far
    begun : UTC
    baselines : of its models, as far as they are known; none is among what the job requires
    """

    def __init__(self, job: str, models: Sequence[str], require_inputs: int | None) -> None:
        self.job = job
        self.require_inputs = require_inputs
        self.code = 0
        self.begun = datetime.now(UTC)
        self.baselines: list[BaselineResult] = []
        self._clocks: dict[str, float] = {}
        self._results = {name: Result(name) for name in models}

    def __iter__(self) -> Iterator[Result]:
        """One for every model of the job, in its order."""
        return iter(self._results.values())

    def begin(self, model: str) -> None:
        """The turn of a model, or of a baseline, has come."""
        self._clocks[model] = time.monotonic()

    def add(
        self,
        model: str,
        outcome: Outcome,
        accuracy: float | None = None,
        baseline: CertifiedBaseline | None = None,
        worse: str | None = None,
    ) -> Result:
        """A model has an outcome; ``accuracy`` is the model's own, if known, the rest as in its result."""
        code = exit_code(outcome.certificate, self.require_inputs)
        self.code = max(self.code, code if worse is None else NOT_MET)
        self._results[model] = Result(model, self._seconds(model), outcome, accuracy, baseline, worse=worse)
        return self._results[model]

    def add_baseline(self, found: CertifiedBaseline, worse: str | None = None) -> None:
        """A baseline is certified."""
        self.baselines.append(BaselineResult(found.name, self._seconds(found.name), found, worse=worse))
        self.code = max(self.code, 0 if worse is None else NOT_MET)

    def fail_baseline(self, name: str, code: int, error: str) -> None:
        """A baseline is not to be had, and the job goes on."""
        self.baselines.append(BaselineResult(name, self._seconds(name), error=error))
        self.code = max(self.code, code)

    def fail(self, model: str, code: int, error: str) -> None:
        """A model has no outcome, and the job goes on with others."""
        self._results[model] = Result(model, self._seconds(model), error=error)
        self.code = max(self.code, code)

    def stop(self, code: int, error: str) -> None:
        """The job ended here, in the first model without an outcome, one whose turn had come if there is any."""
        waiting = [one.model for one in self if one.outcome is None and one.error is None]
        for model in sorted(waiting, key=lambda name: name not in self._clocks)[:1]:
            self.fail(model, code, error)
        self.code = code

    def close(self) -> list[str]:
        """No more come: the models without an outcome, which leave the job incomplete."""
        missing = [one.model for one in self if one.outcome is None and one.error is None]
        if missing:
            self.code = max(self.code, INCOMPLETE)
        return missing

    def _seconds(self, model: str) -> float:
        return time.monotonic() - self._clocks[model] if model in self._clocks else 0.0
