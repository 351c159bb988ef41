"""Text of a person's own in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def marked(text: str) -> str:
    """Text that Markdown leaves as it is, on one line."""
    return MARKUP.sub(r"\\\1", "".join(c if c.isprintable() else " " for c in text))


def table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table, of cells that are marked already."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
