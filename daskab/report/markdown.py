"""Text of a person's own in Markdown."""

from __future__ import annotations

import re

MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def marked(text: str) -> str:
    """Text that Markdown leaves as it is, on one line."""
    return MARKUP.sub(r"\\\1", "".join(c if c.isprintable() else " " for c in text))
