"""A real S3-speaking server for tests, a process of its own on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from examples import PATIENCE

from daskab.files import path_at


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """A server, and what to put into the environment of whoever is to find it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(folder / "s3.log", "wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/").close()
                break
            except OSError:
                assert server.poll() is None, (folder / "s3.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "someone",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    finally:
        server.kill()
        server.wait()


def objects(folder: Path) -> dict[str, Any]:
    """ETag and time of change of every object under an address but the lease."""
    there = cast("Any", path_at(str(folder)))
    found = there.fs.find(there.path, detail=True).items()
    return {name: (o["ETag"], o["LastModified"]) for name, o in found if not name.endswith(".lease")}
