"""Files of data sets: found by their checksum, fetched once and only if it is right; all else is one line."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from examples import Call

from daskab.datasets import load, registry
from daskab.datasets.local import unpacked
from daskab.errors import DataError

pytestmark = pytest.mark.filterwarnings("error")

CONTENT = b"0.5,n\r\n-2,y\r\n"
OTHER_ENDS = CONTENT.replace(b"\r\n", b"\n")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def facts(url: str | None, served: bytes | None = None) -> str:
    lines = [
        "[two]",
        'title = "Two rows"',
        'source = "here"',
        'licence = "none"',
        'citation = "nobody"',
        'format = "commas"',
        "rows = 2",
        "duplicates = 0",
        'classes = { n = "no", y = "yes" }',
        "counts = [1, 1]",
        'traps = ["too small"]',
        'columns = [{ names = ["a"], type = "real" }]',
        "[[two.files]]",
        'name = "two.data"',
        f"bytes = {len(CONTENT)}",
        f'sha256 = "{sha256(CONTENT)}"',
    ]
    lines += [] if url is None else [f'url = "{url}"']
    lines += [] if served is None else [f"served_bytes = {len(served)}", f'served_sha256 = "{sha256(served)}"']
    return "\n".join(lines)


Register = Callable[..., None]


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    """Put a data set ``two`` in place of the registry; nothing was fetched, and ``DASKAB_DATA`` is the folder here."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.setenv("DASKAB_DATA", str(here))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def register(url: str | None = None, served: bytes | None = None) -> None:
        (tmp_path / "two.toml").write_text(facts(url, served))
        monkeypatch.setattr(registry, "REGISTRY", tmp_path / "two.toml")
        registry.known.cache_clear()

    register()
    yield register
    monkeypatch.undo()
    registry.known.cache_clear()


def values() -> list[list[float]]:
    found: list[list[float]] = load("two")["X"].values.tolist()
    return found


@pytest.mark.parametrize(
    ("name", "content", "served"),
    [
        ("two.data", CONTENT, None),
        ("renamed", CONTENT, None),
        ("two.data.gz", gzip.compress(CONTENT, 1, mtime=0), None),
        ("deep/below/x.gz", gzip.compress(CONTENT, mtime=0), None),
        ("other.ends", OTHER_ENDS, OTHER_ENDS),
        ("other.ends.gz", gzip.compress(OTHER_ENDS, mtime=0), OTHER_ENDS),
    ],
)
def test_a_copy_is_found_by_its_checksum(
    register: Register, tmp_path: Path, name: str, content: bytes, served: bytes | None
) -> None:
    register(served=served)
    path = tmp_path / "here" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    assert values() == [[0.5], [-2.0]]


def test_what_else_lies_there_does_not_matter(register: Register, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "gone").symlink_to("nowhere")
    (here / "0.gz").write_bytes(b"\x1f")
    cut = gzip.compress(b"x" * 1000, mtime=0)[:-9]
    (here / "1.gz").write_bytes(cut + len(CONTENT).to_bytes(4, "little"))
    (here / "2.data").write_bytes(CONTENT.replace(b"5", b"6"))
    os.mkfifo(here / "3.gz")
    (here / "4.data").write_bytes(CONTENT)
    assert values() == [[0.5], [-2.0]]


def refusal() -> str:
    with pytest.raises(DataError) as caught:
        load("two")
    return str(caught.value)


def test_a_copy_that_is_not_there(register: Register, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = f"two: two.data is not in {tmp_path / 'here'} or {tmp_path / 'cache' / 'daskab' / 'data'}"
    remedy = f"it cannot be fetched: put it anywhere under DASKAB_DATA (sha256 {sha256(CONTENT)})"
    assert refusal() == f"{where}; {remedy}"
    edited = tmp_path / "here" / "two.data"
    edited.write_bytes(CONTENT[:-2])
    edited_copy = f"{edited} has its name, but another checksum (an edited or damaged copy)"
    assert refusal() == f"{where}: {edited_copy}; {remedy}"
    register("http://127.0.0.1/two.data")
    assert refusal() == f"{where}: {edited_copy}; fetch it with: daskab data fetch two"
    monkeypatch.setenv("DASKAB_DATA", str(edited))
    assert refusal() == f"DASKAB_DATA: {edited} is not a folder"
    monkeypatch.delenv("DASKAB_DATA")
    assert refusal().startswith(f"two: two.data is not in {tmp_path / 'cache'}")


@pytest.mark.parametrize("cut", [3, 20, -1])
def test_packed_files_that_are_cut_short(tmp_path: Path, cut: int) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(CONTENT, mtime=0)[:cut])
    with pytest.raises(DataError) as caught:
        unpacked(tmp_path / "x.gz")
    assert str(caught.value) == f"{tmp_path}/x.gz: cannot be unpacked; it is damaged or cut short"


# Fetching, from a server on this machine.


class Handler(SimpleHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    """The folder ``served``, over HTTP; what was asked for is in ``Handler.asked``."""
    (tmp_path / "served").mkdir()
    Handler.asked = []
    handler = partial(Handler, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def address(server: ThreadingHTTPServer, name: str = "two.data") -> str:
    return f"http://127.0.0.1:{server.server_port}/{name}"


@pytest.mark.parametrize(
    "content", [CONTENT, gzip.compress(CONTENT, mtime=0), OTHER_ENDS], ids=["plain", "packed", "ends"]
)
def test_fetched_once(
    register: Register, served: ThreadingHTTPServer, tmp_path: Path, call: Call, content: bytes
) -> None:
    register(address(served), None if content == CONTENT else content)
    (tmp_path / "served" / "two.data").write_bytes(content)
    assert "to fetch" in call("data", "ls").out
    said = call("data", "fetch", "two")
    assert (said.code, said.err) == (0, "")
    kept = tmp_path / "cache" / "daskab" / "data" / "two.data"
    assert kept.read_bytes() == content
    assert said.out.splitlines() == [
        f"{kept} (sha256 {sha256(CONTENT)[:16]}...)",
        "Two rows",
        "Source: here",
        "Licence: none",
        "Cite: nobody",
        "Beware: too small.",
    ]
    assert values() == [[0.5], [-2.0]]
    assert call("data", "fetch", "two").out == said.out
    assert Handler.asked == ["/two.data"]
    assert '"here":true' in call("data", "ls", "--json").out


def test_nothing_wrong_is_kept(register: Register, served: ThreadingHTTPServer, tmp_path: Path, call: Call) -> None:
    (tmp_path / "served" / "two.data").write_bytes(CONTENT[:-1])
    register(address(served))
    said = call("data", "fetch", "two")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        f"daskab: {address(served)}: does not serve what has sha256 {sha256(CONTENT)}; nothing of it is kept\n"
    )
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_an_address_that_does_not_serve(
    register: Register, served: ThreadingHTTPServer, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(address(served, "gone"))
    said = call("data", "fetch", "two")
    assert (said.code, said.out) == (2, "")
    assert said.err == f"daskab: {address(served, 'gone')}: 404 Client Error: File not found\n"
    served.shutdown()
    served.server_close()
    said = call("data", "fetch", "two")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        f"daskab: {address(served, 'gone')}: cannot be reached (ConnectionError); without a network, put two.data "
        "under DASKAB_DATA\n"
    )
    register()
    said = call("data", "fetch", "two")
    assert (said.code, said.err) == (
        2,
        "daskab: two: two.data has no address; put it anywhere under DASKAB_DATA\n",
    )
    register(address(served))
    monkeypatch.setitem(sys.modules, "pooch", None)
    said = call("data", "fetch", "two")
    assert (said.code, said.err) == (2, "daskab: fetching needs the package pooch: pip install 'daskab[data]'\n")
    said = call("data", "fetch", "tow")
    assert (said.code, said.err) == (2, "daskab: 'tow' is not a data set; did you mean two?\n")
