"""One thing that `daskab verify` looked at, and what it found."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """One thing that was verified, and what was found."""

    name: str
    held: bool
    said: str
