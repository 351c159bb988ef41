"""Where the command line begins and ends."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from daskab.cli.commands import daskab
from daskab.cli.signals import signals
from daskab.cli.streams import heedless_streams
from daskab.cli.watching import ending
from daskab.errors import DaskabError

EXPECTED = (DaskabError, click.ClickException, click.Abort, KeyboardInterrupt, OSError)
"""What people, signals and machines bring about; anything else is a fault in daskab."""


def main(argv: list[str] | None = None) -> None:
    """Entry point: a person's mistake is one line on standard error, never a traceback."""
    signals.caught.clear()
    before = [(number, signal.signal(number, signals.handle)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        with heedless_streams():
            code = _guarded(lambda: daskab.main(argv, standalone_mode=False))
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    sys.exit(code)


def _guarded(command: Callable[[], Any]) -> int:
    try:
        return int(command() or 0)
    except (Exception, KeyboardInterrupt) as error:
        if not isinstance(error, EXPECTED):
            traceback.print_exc()
        code, message = ending(error)
        # Asked nothing at all, click's message is the help text.
        click.echo(message if "\n" in message else f"daskab: {message}", err=True)
        return code
