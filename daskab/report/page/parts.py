"""What a page is made of: tables, and pictures with the words and numbers that stand for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table; its first column names the rows."""

    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Picture:
    """A figure, and what it says to whoever does not see it.

    Attributes
    ----------
    name : of its files, and of it on the page
    title : what it is
    words : what it shows
    svg, png : the files
    inline : the SVG as a part of a page
    table : the numbers it is drawn from
    """

    name: str
    title: str
    words: str
    svg: str
    png: bytes
    inline: str
    table: Table | None


@dataclass(frozen=True)
class Part:
    """A part of a section, under a heading of its own."""

    heading: str
    text: str = ""
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()  #: to be seen at once
    folded: tuple[Table, ...] = ()  #: to be opened
    facts: tuple[tuple[str, str], ...] = ()  #: names and what is known of them


@dataclass(frozen=True)
class Section:
    """What a page says of one run or sweep.

    Attributes
    ----------
    anchor : where it is on the page
    title : what it is about
    verdict : what came of it, a sentence a line, the first one first of all
    warning : what must not be overlooked; empty if there is nothing
    complete : whether nothing was left undone
    """

    anchor: str
    title: str
    verdict: tuple[str, ...]
    warning: str
    complete: bool
    parts: tuple[Part, ...]


def number(value: float) -> str:
    """A number as it is shown, to six digits."""
    return f"{value:.6g}"


def shortened(text: str, longest: int = 22) -> str:
    """A name as there is room for in a figure, without characters that cannot be drawn."""
    drawn = "".join(c if c.isprintable() else "?" for c in text)
    return drawn if len(drawn) <= longest else f"{drawn[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"
