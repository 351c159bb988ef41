"""How things look on standard output."""

from __future__ import annotations

from rich.console import Console, RenderableType

MOST_COLUMNS = 10_000


def indent(text: str) -> str:
    """Every line two spaces in."""
    return "\n".join(f"  {line}" for line in text.splitlines())


def show(what: RenderableType) -> None:
    """Print tables with names as they are, and wider than the terminal rather than with less than is in them."""
    console = Console(markup=False, emoji=False)
    width = console.measure(what, options=console.options.update(width=MOST_COLUMNS)).maximum
    console.width = max(console.width, width)
    console.print(what)
