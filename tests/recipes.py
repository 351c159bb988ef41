"""What the pages in ``cluster/`` tell a person to type, read for tests and done by them, here and now."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path

import click
from dask.cli import cli as dask
from examples import environment, write_job

from daskab.cli.commands import daskab

ROOT = Path(__file__).parent.parent
CLUSTER = ROOT / "cluster"


def commands(page: Path) -> list[str]:
    """Lines of a page's shell blocks; one that goes on in the next is one."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), flags=re.M | re.S)
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines() if line]


def check(words: list[str]) -> None:
    """Raise unless a command line of daskab or dask is one that it would accept."""
    program = {"daskab": daskab, "dask": dask_with_its_commands()}[words[0]]
    for i, word in enumerate(words[1:], start=1):
        if not isinstance(program, click.Group):
            break
        found = program.get_command(click.Context(program), word)
        assert found is not None, f"{words}: there is no {word}"
        program, rest = found, words[i + 1 :]
    try:
        # Buckets are another matter than options, as files are.
        program.make_context(words[0], ["bucket" if word.startswith("s3://") else word for word in rest])
    except click.BadParameter as error:
        if "does not exist" not in error.message:
            raise


def dask_with_its_commands() -> click.Group:
    for point in entry_points(group="dask_cli"):
        dask.add_command(point.load(), point.name)
    return dask  # type: ignore[no-any-return]


class Place:
    """A folder with a job and a nightly file in it and ``daskab`` and ``dask`` on its path."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.job = write_job(folder, "a")
        (folder / "nightly.toml").write_text('name = "tiny"\n[[job]]\nname = "tiny"\nfile = "tiny.toml"\n')
        programs = folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        here = shlex.quote(environment()["PYTHONPATH"])
        for name, module in {"daskab": "daskab.cli", "dask": "dask"}.items():
            # Not in the environment, which does not reach another host.
            (programs / name).write_text(
                f'#!/bin/sh\nPYTHONPATH={here} exec {shlex.quote(sys.executable)} -m {module} "$@"\n'
            )
            (programs / name).chmod(0o755)
        self.environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
        self.environment.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))  # of compiled kernels

    def certificate(self) -> bytes:
        """Of the one run."""
        (found,) = self.folder.glob("runs/*/certificate.json")
        return found.read_bytes()

    def do(self, command: str | list[str], **variables: str) -> subprocess.CompletedProcess[str]:
        """Do a command here, and wait for its end."""
        return subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=self.folder,
            env=self.environment | variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    @contextmanager
    def doing(self, command: str | list[str], **variables: str) -> Iterator[subprocess.Popen[bytes]]:
        """Do a command here while the context lives; then it is asked to end."""
        with open(self.folder / "out.log", "ab") as out:
            process = subprocess.Popen(
                f"exec {command}" if isinstance(command, str) else command,
                shell=isinstance(command, str),
                cwd=self.folder,
                env=self.environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            finally:
                process.kill()


def replaced(text: str, **others: str) -> str:
    """A command with names of here in the place of the page's; all have to be in it."""
    for old, new in others.items():
        assert old in text, f"{old} is not in {text}"
        text = text.replace(old, new)
    return text


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])
