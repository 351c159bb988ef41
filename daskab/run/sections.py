"""What all sections of a job file have in common: how strictly they are read, and how an error is worded."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo
from pydantic.functional_validators import BeforeValidator
from pydantic_core import PydanticCustomError

from daskab.run.toml_lines import KeyPath


class Section(BaseModel):
    """A table of a job file."""

    # Strict: "3" is not a number, 1 not true and 2.0 not an integer; an integer is a number, though.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def wrong(what: str, at: KeyPath = ()) -> PydanticCustomError:
    """An error in our words; ``at`` leads from where it is raised to the key at fault."""
    return PydanticCustomError("job", "{what}", {"what": what, "at": at})


def check_names(table: str, names: Sequence[str]) -> None:
    """Raise unless there are tables of this kind, ``[[table]]``, and no name is that of two."""
    if not names:
        raise wrong("empty", (table,))
    for i, name in enumerate(names):
        if names.index(name) < i:
            raise wrong(f"{name!r} is already {table}[{names.index(name)}]", (table, i, "name"))


def _beside_job(given: object, info: ValidationInfo) -> Path:
    if not isinstance(given, str) or not given or "\0" in given:
        raise wrong(f"{reprlib.repr(given)} is not a file name")
    return Path(info.context or "") / given


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")]  # goes into file names
Seed = Annotated[int, Field(ge=0, lt=2**32)]  # what NumPy and scikit-learn both take
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]

BesideJob = Annotated[Path, BeforeValidator(_beside_job)]  # a file, given relative to the job file
