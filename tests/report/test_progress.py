"""What is shown of a run: lines off a terminal, a bar on one."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator

import pytest
from rich.console import Console

from daskab.report.progress import ProgressDisplay
from daskab.run.progress import SoFar
from daskab.run.records import Failure, Record, Task

RECORD = Record.of(Task("round", 0), "", 5, 5, 0, 0.1)


def go_through(shown: ProgressDisplay) -> None:
    """Of a name that would be markup."""
    with shown:
        display = shown.of("[/job]/m")
        display.begin("0123456789abcdef", "begun")
        display.stage("attack", 1, 0)
        display.advance(RECORD)
        display.stage("round 1", 3, 1)
        display.known(SoFar(2, None, 4))
        display.advance(RECORD)
        display.fail(Failure("round-0-000002", "killed every worker"))
        display.known(SoFar(3, 5, 1))


def shown_off_a_terminal(every: float | None = 0.0, **options: bool) -> list[str]:
    """In lines longer than the console is wide."""
    out = io.StringIO()
    console = Console(file=out, width=20, **options)
    go_through(ProgressDisplay(console) if every is None else ProgressDisplay(console, every))
    return [re.sub(r"\d:\d\d:\d\d", "TIME", line) for line in out.getvalue().splitlines()]


FAILED = "[/job]/m: round-0-000002 killed every worker; it is left out"


@pytest.mark.parametrize("forced", [False, True])
def test_off_a_terminal_it_is_lines(forced: bool) -> None:
    assert shown_off_a_terminal(force_terminal=forced, no_color=True) == [
        "[/job]/m: attack, 1 of 1 tasks",
        "[/job]/m: round 1, 1 of 3 tasks",
        "[/job]/m: round 1, 2 certified, attack none found, 4 inputs open, 1 of 3 tasks",
        "[/job]/m: round 1, 2 certified, attack none found, 4 inputs open, 2 of 3 tasks, TIME left in stage",
        FAILED,
        "[/job]/m: round 1, 3 certified, attack 5, 1 inputs open, 2 of 3 tasks, TIME left in stage",
    ]


def test_a_short_run_off_a_terminal_says_nothing_but_failures() -> None:
    assert shown_off_a_terminal(every=None) == [FAILED]


def test_no_attack_exists() -> None:
    out = io.StringIO()
    with ProgressDisplay(Console(file=out, width=80), every=0.0) as shown:
        display = shown.of("m")
        display.stage("round 1", 2, 0)
        display.known(SoFar(None, None, 3))
    assert out.getvalue() == "m: round 1, no attack exists, 3 inputs open, 0 of 2 tasks\n"


class Terminal:
    """A real one, of 100 columns."""

    def __init__(self, **environment: str) -> None:
        self.ours, theirs = os.openpty()
        self.file = os.fdopen(theirs, "w")
        self.console = Console(file=self.file, width=100, _environ={"TERM": "xterm-256color", **environment})

    def read(self) -> str:
        self.file.flush()
        return os.read(self.ours, 1 << 16).decode()


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    made: list[Terminal] = []
    yield made
    for terminal in made:
        terminal.file.close()
        os.close(terminal.ours)


COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9]")


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["colour", "NO_COLOR"])
def test_on_a_terminal_it_is_a_bar(environment: dict[str, str], terminals: list[Terminal]) -> None:
    terminals.append(Terminal(**environment))
    go_through(ProgressDisplay(terminals[0].console))
    screen = terminals[0].read()
    words = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen)
    for said in ("[/job]/m: round 1 ", "  3 certified, attack 5, 1 inputs open", " 2/3 ", " left in stage"):
        assert said in words
    assert FAILED in screen
    assert bool(COLOUR.search(screen)) is not bool(environment)


def test_on_a_dumb_terminal_it_is_lines(terminals: list[Terminal]) -> None:
    terminals.append(Terminal(TERM="dumb"))
    go_through(ProgressDisplay(terminals[0].console))
    assert terminals[0].read().splitlines() == [FAILED]
