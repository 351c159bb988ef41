"""A page and its figures, written to a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from daskab._version import VERSION
from daskab.files import make_folder, write_atomically
from daskab.report.page.parts import Section
from daskab.report.pages import rendered

PAGE = "index.html"


def page_text(sections: Sequence[Section]) -> str:
    """The page, which loads nothing from anywhere."""
    return rendered("page/page.html", sections=sections, version=VERSION)


def write_page(sections: Sequence[Section], folder: Path) -> Path:
    """Write the figures to a folder, which is made, and then the page."""
    text = page_text(sections)
    make_folder(folder)
    for picture in (p for section in sections for part in section.parts for p in part.pictures):
        write_atomically(folder / f"{picture.name}.svg", picture.svg)
        write_atomically(folder / f"{picture.name}.png", picture.png)
    write_atomically(folder / PAGE, text)
    return folder / PAGE
