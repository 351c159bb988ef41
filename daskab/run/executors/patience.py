"""Calls that may never return: whoever waits for one can still be stopped, and gives up in the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from threading import Thread
from typing import TypeVar

Value = TypeVar("Value")

GLANCE = 1.0
"""Seconds between two looks at how things are."""


def patiently(call: Callable[[], Value], patience: float) -> Generator[None, None, Value]:
    """What a call returns or raises; None every second until it does.

    A Dask client waits for ever for a scheduler that is frozen, so the call has a thread of its own, which is left
    behind if it is not done in time.

    Raises
    ------
    TimeoutError
        After ``patience`` seconds.
    """
    answer: Future[Value] = Future()

    def ask() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=ask, daemon=True).start()
    deadline = time.monotonic() + patience
    while True:
        try:
            return answer.result(timeout=min(GLANCE, max(0.0, deadline - time.monotonic())))
        except NotYet:
            if answer.done():  # it is the call that timed out
                return answer.result()
        if time.monotonic() >= deadline:
            raise TimeoutError(f"no answer in {patience:g} s")
        yield
