"""Until when something may be begun: a time on the monotonic clock."""

from __future__ import annotations

import math
import time


def deadline_in(seconds: float | None) -> float:
    """When so many seconds have passed; never where they are None."""
    return math.inf if seconds is None else time.monotonic() + seconds


def has_passed(deadline: float) -> bool:
    """Whether it is too late."""
    return time.monotonic() > deadline
