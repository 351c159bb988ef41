"""What is kept of every night: one file each, never changed again; and one of the night in progress.

A night that is killed leaves the latter behind. The next one finds it there and keeps it as a killed night.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from daskab.errors import IntegrityError
from daskab.files import make_folder, write_atomically
from daskab.run.certificate import Certificate
from daskab.run.nightly import Nightly
from daskab.run.plan import canonical_json
from daskab.run.sections import Name, Section

SCHEMA = "daskab night 1"
CURRENT = "current.json"
KEPT = re.compile(r"(\d{6,})-(\d{8}T\d{6}Z)\.json")
STAMP = "%Y%m%dT%H%M%SZ"

Ending = Literal["told", "interrupted"]
Verdict = Literal["first", "unchanged", "held", "improved", "regressed"]
Bound = Annotated[float, Field(ge=0)]


class Measured(Section):
    """What a certificate and its model say, as far as nights are compared by it.

    ``upper_bound`` is by the name of the input; ``seconds`` are those of all tasks together, which a
    run that was interrupted in between has as one that was not.
    """

    inputs_required: int | None
    attack_inputs: int | None
    no_attack_exists: bool
    complete: bool
    upper_bound: dict[str, Bound]
    latent_low: float | None
    latent_high: float | None
    accuracy: float | None
    seconds: float | None

    @property
    def robustness(self) -> float | None:
        """Inputs certified; infinite when no attack exists, None without thresholds."""
        return math.inf if self.no_attack_exists else self.inputs_required

    @property
    def bound_sum(self) -> float:
        """Sum of the one-input bounds."""
        return math.fsum(self.upper_bound.values())

    @classmethod
    def of(cls, certificate: Certificate, accuracy: float | None, seconds: float | None) -> Measured:
        """From a certificate, and what is known beside it."""
        names = ("inputs_required", "attack_inputs", "no_attack_exists", "complete", "latent_low", "latent_high")
        bounds = dict(zip(certificate.input_names, certificate.upper_bound.tolist(), strict=True))
        return cls(
            **{name: getattr(certificate, name) for name in names},
            upper_bound=bounds,
            accuracy=accuracy,
            seconds=seconds,
        )


class ModelNight(Section):
    """What became of one model in a night.

    Attributes
    ----------
    state : its run is sealed or not; it failed, or was not reached
    baseline : it is what models are compared with; there is no run of it, ``run`` is its certificate's id
    run : name of the run directory, known as soon as it is worked on
    error : what keeps it from being as its job requires it, or what ended it
    compared_with : number of the night it is compared with
    worse, warned : sentences; with any of the first it has regressed
    """

    job: str
    model: str
    baseline: bool = False
    state: Literal["sealed", "not sealed", "failed", "not reached"] = "not reached"
    run: Annotated[str, Field(pattern="^[0-9a-f]{16}$")] | None = None
    digest: str | None = None
    measured: Measured | None = None
    error: str | None = None
    compared_with: int | None = None
    verdict: Verdict | None = None
    worse: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Its name among the models of all jobs."""
        return f"{self.job}/{self.model}"


class Night(Section):
    """One night.

    Attributes
    ----------
    state : {"running", "told", "interrupted", "killed"}
        Only what a night has told of is compared with: a regression that nobody was told of is told the next time.
    """

    schema_: Literal["daskab night 1"] = Field(default="daskab night 1", alias="schema")
    nightly: Name
    number: Annotated[int, Field(ge=1)]
    begun: datetime
    ended: datetime | None = None
    state: Literal["running", "told", "interrupted", "killed"] = "running"
    exit_code: int | None = None
    models: tuple[ModelNight, ...] = ()

    @property
    def runs(self) -> set[str]:
        """Names of the run directories it refers to."""
        return {model.run for model in self.models if model.run is not None and not model.baseline}

    def with_model(self, one: ModelNight) -> Night:
        """The night with one of its models as it is now."""
        models = tuple(one if model.label == one.label else model for model in self.models)
        return self.model_copy(update={"models": models})

    def ending(self, state: Ending, exit_code: int) -> Night:
        """The night as it ends now."""
        ended = datetime.now(UTC).replace(microsecond=0)
        return self.model_copy(update={"state": state, "exit_code": exit_code, "ended": ended})

    def to_json(self) -> str:
        """Text with a checksum."""
        said = self.model_dump(mode="json", by_alias=True)
        return canonical_json({"night": said, "sha256": _checksum(said)})

    @classmethod
    def read(cls, path: Path) -> Night:
        """Read a night back.

        Raises
        ------
        IntegrityError
            If the file is not as it was written.
        """
        try:
            raw = json.loads(path.read_bytes())
            if raw["sha256"] != _checksum(raw["night"]):
                raise IntegrityError(f"{path}: is not as it was written")
            return cls.model_validate_json(canonical_json(raw["night"]))
        except ValidationError as error:
            what = error.errors(include_url=False)[0]
            where = ".".join(map(str, what["loc"]))
            raise IntegrityError(f"{path}: is no record of a night ({where}: {what['msg']})") from None
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise IntegrityError(f"{path}: cannot be read ({type(error).__name__})") from None


def _checksum(said: Any) -> str:
    return hashlib.sha256(canonical_json(said).encode()).hexdigest()


@dataclass(frozen=True)
class Kept:
    """A file of a night; ``night`` is None where it is damaged, ``damage`` then says how."""

    number: int
    begun: datetime
    path: Path
    night: Night | None
    damage: str = ""

    @property
    def runs(self) -> set[str]:
        """Run directories it refers to."""
        return set() if self.night is None else self.night.runs


class Nights:
    """The nights of a nightly file, in a folder of their own that one process at a time writes to.

    Attributes
    ----------
    past : what is kept of earlier nights, oldest first
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.past: list[Kept] = list(kept_in(folder))

    def begin(self, nightly: Nightly, models: Iterable[ModelNight]) -> Night:
        """Begin a night, after keeping what a killed one left."""
        make_folder(self.folder)
        current = self.folder / CURRENT
        number = 1 + max((kept.number for kept in self.past), default=0)
        begun = datetime.now(UTC).replace(microsecond=0)
        if current.exists():
            try:
                left = Night.read(current).model_copy(update={"state": "killed"})
                # It was written, but its file in progress not removed.
                if all(kept.number != left.number for kept in self.past):
                    self._write(left)
            except IntegrityError:
                write_atomically(self._path(number, begun), current.read_bytes())  # which is named from now on
            current.unlink()
            self.past = list(kept_in(self.folder))
            number = 1 + max(kept.number for kept in self.past)
        night = Night(nightly=nightly.name, number=number, begun=begun, models=tuple(models))
        self.note(night)
        return night

    def note(self, night: Night) -> None:
        """Keep how far the night in progress is, should it be killed."""
        write_atomically(self.folder / CURRENT, night.to_json())

    def end(self, night: Night) -> None:
        """Keep a night that has ended."""
        self._write(night)
        (self.folder / CURRENT).unlink()

    def last_sealed(self, label: str) -> tuple[int, ModelNight] | None:
        """The last sealed result of a model that a night has told of, and the number of that night."""
        for kept in reversed(self.past):
            if kept.night is not None and kept.night.state == "told":
                for model in kept.night.models:
                    if model.label == label and model.state == "sealed":
                        return kept.number, model
        return None

    def kept(self, night: Night) -> Kept:
        """How the night in progress will be kept."""
        return Kept(night.number, night.begun, self._path(night.number, night.begun), night)

    def _path(self, number: int, begun: datetime) -> Path:
        return self.folder / f"{number:06d}-{begun.strftime(STAMP)}.json"

    def _write(self, night: Night) -> None:
        write_atomically(self._path(night.number, night.begun), night.to_json())


def kept_in(folder: Path) -> Iterable[Kept]:
    """What is kept of the nights in a folder, oldest first."""
    found = [(path, match) for path in _files(folder) if (match := KEPT.fullmatch(path.name))]
    for path, match in sorted(found, key=lambda one: int(one[1][1])):
        try:
            number, begun = int(match[1]), datetime.strptime(match[2], STAMP).replace(tzinfo=UTC)
        except ValueError:  # none of ours
            continue
        try:
            night = Night.read(path)
            if night.number != number:
                raise IntegrityError(f"{path}: is of night {night.number}")
            yield Kept(number, begun, path, night)
        except IntegrityError as error:
            yield Kept(number, begun, path, None, str(error))


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def missed(earlier: datetime, later: datetime, nightly: Nightly) -> int:
    """How many nights should have begun between two that did."""
    gap = (later - earlier).total_seconds()
    return max(1, round(gap / nightly.every) - 1) if gap > nightly.every + nightly.slack else 0
