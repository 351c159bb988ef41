"""How figures look, and how they become files and a part of a page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from daskab.report.page.parts import Picture, Table

PROVED, ATTACK, UNKNOWN, INK, FAINT = "#0b559f", "#b5470b", "#d9d9d9", "#1b1b1b", "#767676"
"""Blue is proved, orange is attained or attacked: told apart by whoever sees few colours, and in grey."""

BESIDE = "#7d2a7d"
"""What models are compared with, which is dotted too."""

WIDTH = 5.0
"""Inches. As narrow as still holds a figure, so that its words can be read on a phone."""

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so that a figure is the same everywhere
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,  # a name may hold a $
    "legend.frameon": False,
    "lines.markersize": 4.0,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",  # words that can be searched, selected and read aloud
    "svg.hashsalt": "daskab",
    "figure.facecolor": "white",
}


@contextmanager
def style() -> Iterator[None]:
    """Everything is drawn in this."""
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        # The reader's fonts may have what DejaVu lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def canvas(height: float, rows: int = 1, columns: int = 1, *, share_x: bool = False) -> tuple[Figure, list[Axes]]:
    """An empty figure of axes, row after row."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=share_x)
    return figure, list(axes.flat)


def picture(name: str, title: str, words: str, figure: Figure, table: Table | None = None) -> Picture:
    """Draw a figure, to be called within `style`."""
    drawn, painted = io.StringIO(), io.BytesIO()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once for both files
    figure.savefig(drawn, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    figure.savefig(painted, format="png", dpi=160, metadata={"Software": None})
    svg = drawn.getvalue()
    return Picture(name, title, words, svg, painted.getvalue(), inline(svg, name, title, words), table)


def inline(svg: str, name: str, title: str, words: str) -> str:
    """An SVG file as a part of a page: with its words, and with names that are its own on a page of several."""
    root = ET.fromstring(svg)
    for found in root.findall(f"{{{SVG}}}metadata"):
        root.remove(found)
    for node in root.iter():
        for key, value in node.attrib.items():
            if key == "id":
                node.set(key, f"{name}-{value}")
            elif key == f"{{{XLINK}}}href" and value.startswith("#"):
                node.set(key, f"#{name}-{value[1:]}")
            else:
                node.set(key, value.replace("url(#", f"url(#{name}-"))
    root.set("width", "100%")
    root.attrib.pop("height", None)
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    text = ET.tostring(root, encoding="unicode")
    said = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(words)}</desc>'
    spoken = f' role="img" aria-labelledby="{name}-title {name}-desc"'
    return re.sub(r"^<svg([^>]*)>", lambda m: f"<svg{spoken}{m[1]}>{said}", text, count=1)
