"""Pages in HTML, each one file that needs no other."""

from __future__ import annotations

from importlib.resources import files
from typing import Any


def rendered(template: str, **values: Any) -> str:
    """A page from a template beside this module. Values are escaped: names may be anything a person calls things."""
    from jinja2 import Environment, StrictUndefined  # here, for most commands write no page

    jinja = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    text = files("daskab.report").joinpath(template).read_text(encoding="utf-8")
    return jinja.from_string(text).render(**values)
