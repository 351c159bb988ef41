"""Pages in HTML, each one file that needs no other."""

from __future__ import annotations

from importlib.resources import files
from typing import Any


def rendered(template: str, **values: Any) -> str:
    """A page from a template beside this module. Values are escaped: names may be anything a person calls things."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # here, for most commands write no page

    def beside(name: str) -> str:
        return files("daskab.report").joinpath(name).read_text(encoding="utf-8")

    loader = FunctionLoader(beside)
    jinja = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return jinja.get_template(template).render(**values)
