"""The nightly file: which jobs are run every night, in what time, and what may change from one night to the next."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator
from pydantic.functional_validators import BeforeValidator

from daskab.run.job import Tables, read_file
from daskab.run.sections import BesideJob, Name, Section, check_names, wrong


def _duration(given: object) -> float:
    """Seconds of a text such as ``90m``."""
    from dask.utils import parse_timedelta  # here, for only nights need it

    try:
        seconds = float(parse_timedelta(given, default=False)) if isinstance(given, str) else 0.0
    except (ArithmeticError, LookupError, TypeError, ValueError):
        seconds = 0.0
    if seconds <= 0.0:
        raise wrong(f"{reprlib.repr(given)} is not a time such as '24h', '90m' or '30s'")
    return seconds


Duration = Annotated[float, BeforeValidator(_duration)]  # in seconds
Share = Annotated[float, Field(ge=0)]


class NightlyJob(Section):
    """``[[job]]``: a job file, given relative to the nightly file, and the time all of its models have."""

    name: Name
    file: BesideJob
    time_limit: Duration | None = None


class Tolerances(Section):
    """``[tolerance]``: how far a model may fall behind its last sealed result before the night fails.

    ``inputs_required`` is by how many the certified inputs may fall; ``upper_bound`` by what share of itself the bound
    of an input may rise; ``thresholds`` by what share of their distance either may move; ``accuracy`` by how much it
    may fall. What is not given is not judged. A night only warns of a time that grows by more than the factor
    ``time``, unless ``time_fails``.
    """

    inputs_required: int = Field(default=0, ge=0)
    upper_bound: Share | None = None
    thresholds: Share | None = None
    accuracy: Annotated[float, Field(ge=0, le=1)] | None = None
    time: Annotated[float, Field(ge=1)] = 2.0
    time_fails: bool = False


class Nightly(Section):
    """A whole nightly file; ``jobs`` are its ``[[job]]`` tables.

    A night that begins more than ``every`` and ``slack`` after the one before it has missed some. The last ``keep``
    nights are kept. No task is begun once the night has taken its ``time_limit``.
    """

    name: Name
    jobs: Annotated[tuple[NightlyJob, ...], Field(alias="job", strict=False)]
    every: Duration = 86_400.0
    slack: Duration = 7_200.0
    keep: Annotated[int, Field(ge=2)] = 30
    time_limit: Duration | None = None
    tolerance: Tolerances = Tolerances()

    @model_validator(mode="after")
    def _names_differ(self) -> Nightly:
        check_names("job", [job.name for job in self.jobs])
        return self


_TABLES: Tables = {"tolerance": Tolerances, "job": NightlyJob}


def read_nightly(path: Path) -> Nightly:
    """Read and check a nightly file.

    Raises
    ------
    JobError
        As by `read_job`.
    """
    return read_file(path, Nightly, "a nightly file has at least a name and a [[job]]", _TABLES)
