"""The study file: several jobs, each an experiment that was published, in a small and a full setting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from daskab.run.job import Tables, read_file
from daskab.run.sections import BesideJob, Name, Section, check_names

Words = Annotated[str, Field(min_length=1)]


class Experiment(Section):
    """``[[experiment]]``: what it is, and the job files of its settings, given relative to the study file.

    ``published`` is what was published of its models, by their names, where it is known; ``remarks`` say what was made
    otherwise here, and why results differ.
    """

    name: Name
    title: Words
    small: BesideJob
    full: BesideJob
    published: dict[str, Words] = Field(default_factory=dict)
    remarks: Annotated[tuple[Words, ...], Field(strict=False)] = ()

    def job(self, full: bool) -> Path:
        """The job file of a setting."""
        return self.full if full else self.small


class Study(Section):
    """A whole study file; ``experiments`` are its ``[[experiment]]`` tables, ``remarks`` hold for all of them."""

    name: Name
    title: Words
    remarks: Annotated[tuple[Words, ...], Field(strict=False)] = ()
    experiments: Annotated[tuple[Experiment, ...], Field(alias="experiment", strict=False)]

    @model_validator(mode="after")
    def _names_differ(self) -> Study:
        check_names("experiment", [one.name for one in self.experiments])
        return self


_TABLES: Tables = {"experiment": Experiment}


def read_study(path: Path) -> Study:
    """Read and check a study file.

    Raises
    ------
    JobError
        As by `read_job`.
    """
    return read_file(path, Study, "a study has at least a name, a title and an [[experiment]]", _TABLES)
