"""TOML whose keys remember the line they stand on, so that a bad value can be named by file and line.

The text is cut into statements (a header, or one key with its value) and those are counted. In tomlkit's
document the scattered elements of an array of tables stand together, so lines cannot be counted in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError, UnexpectedEofError

from daskab.errors import JobError

KeyPath = tuple[str | int, ...]

_CLOSES = re.compile(r"""[]}]|"{3}|'{3}""")  # on every line that ends what an earlier one opened


class KeyLines:
    """The 1-based line of each key or table header of a valid TOML text: ``line_of(("model", 1, "file"))``.

    What is absent, or inside an array or inline table, has the line of the nearest key around it; at least 1.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self, path: KeyPath) -> int:
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    @cached_property  # and not at once: only a wrong file needs it
    def _lines(self) -> dict[KeyPath, int]:
        lines: dict[KeyPath, int] = {}
        elements: Counter[KeyPath] = Counter()  # of each array of tables, so far
        table: KeyPath = ()
        for number, is_header, value in _statements(self._text):
            path = () if is_header else table
            while isinstance(value, dict) and len(value) == 1:  # down a dotted key
                ((name, value),) = value.items()
                path = (*path, name)
                lines.setdefault(path, number)
                if is_header and isinstance(value, list):
                    elements[path] += 1
                    value = value[0]
                if path in elements:
                    path = (*path, elements[path] - 1)
            if is_header:
                table, lines[path] = path, number  # even where a header of something inside it came first
        return lines


def _statements(text: str) -> Iterator[tuple[int, bool, Any]]:
    """First line, whether a header, and values, of each shortest run of lines that is TOML by itself."""
    statement, start = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        start, statement = (start if statement else number), statement + line + "\n"
        if number == start or _CLOSES.search(line):
            value = _parsed(statement)
            if value is not None:
                yield start, statement.lstrip().startswith("["), value
                statement = ""


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomlkit.parse(text).unwrap()
    except TOMLKitError:
        return None


def read_toml(path: Path) -> tuple[dict[str, Any], KeyLines]:
    """Plain values of a TOML file, and where they stand; JobError ``FILE:LINE: ...`` if it cannot be read."""
    try:
        text = path.read_bytes().decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
        return tomlkit.parse(text).unwrap(), KeyLines(text)
    except OSError as error:
        raise JobError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise JobError(f"{path}:{line}: byte 0x{error.object[error.start]:02x} is not UTF-8 text") from None
    except TOMLKitError as error:
        lines = text.split("\n")
        if isinstance(error, ParseError) and type(error) not in (ParseError, UnexpectedEofError):
            before = text.splitlines(keepends=True)[: error.line - 1]  # which are Python's lines, not TOML's
            line = 1 + "".join(before).count("\n")
        else:  # noticed late: a key given twice where its table ends, an open quote where the file does
            line = next(n for n in range(len(lines), 0, -1) if _parsed("\n".join(lines[: n - 1])) is not None)
        what = re.sub(r"(, use .* instead|\.)?( at line \d+ col \d+)?$", "", str(error))
        what = "".join(filter(str.isprintable, what))
        raise JobError(f"{path}:{line}: not TOML: {what}: {lines[line - 1].strip()[:60]!r}") from None
