"""Every error daskab raises on purpose, under one root.

Each is also a builtin error, so that callers who know only Python can catch it, and carries the process
exit code a scheduler sees. The message is one line: what is wrong, where, what to do.
"""

from __future__ import annotations

from typing import ClassVar


class DaskabError(Exception):
    """Root of all daskab errors."""

    exit_code: ClassVar[int] = 2


class ModelError(DaskabError, ValueError):
    """A model, or the file it came from, is not one that can be certified."""


class DataError(DaskabError, ValueError):
    """Training or test data cannot be used as given."""


class JobError(DaskabError, ValueError):
    """A job file or an option is wrong: names the field, the value and, where there is one, the line."""


class ClusterError(DaskabError, RuntimeError):
    """A cluster cannot be reached, or must not be given work: names the scheduler or worker and why."""


class BoundError(DaskabError, ArithmeticError):
    """A bound came out as NaN or infinite. It is refused: such a number is never a bound."""

    exit_code: ClassVar[int] = 4


class IntegrityError(DaskabError, RuntimeError):
    """Stored evidence is missing, damaged or contradicts the plan. Nothing is certified from it."""

    exit_code: ClassVar[int] = 4


class IncompleteError(DaskabError, RuntimeError):
    """A run is not finished, so what was asked of it cannot be answered yet."""

    exit_code: ClassVar[int] = 3


class BusyError(DaskabError, RuntimeError):
    """Another process is writing this run."""

    exit_code: ClassVar[int] = 75


def one_line(error: BaseException, longest: int = 200) -> str:
    """What a library said, fit for the inside of a message of ours: printable, on one line, not too long."""
    said = " ".join(str(error).split()) or type(error).__name__
    said = "".join(c if c.isprintable() else "?" for c in said)
    return said if len(said) <= longest else f"{said[:longest]}..."
