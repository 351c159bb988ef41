"""A cluster over TLS: who has a certificate may use it, nobody else, and what it shows stays on this machine."""

from __future__ import annotations

import re
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from clusters import RunningCluster, running_cluster
from distributed import Client
from examples import ADAPTIVE, Call, ask, mixed_model, sealed

from daskab.errors import ClusterError
from daskab.run.executors.address import Address
from daskab.run.executors.certificates import PARTS, make_certificates
from daskab.run.job import read_cluster


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder, ["127.0.0.1", "localhost"], days=2)
    return folder


@pytest.fixture(scope="module")
def cluster(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster"), workers=2, tls=certificates) as running:
        yield running


@pytest.mark.slow
def test_a_run_comes_to_the_same_bytes(cluster: RunningCluster, tmp_path: Path) -> None:
    with cluster.executor() as executor:
        spread = ask(mixed_model(), ADAPTIVE, tmp_path / "spread", executor)
    assert sealed(spread) == sealed(ask(mixed_model(), ADAPTIVE, tmp_path / "here"))


@pytest.mark.slow
def test_a_client_of_another_authority_is_refused(cluster: RunningCluster, tmp_path: Path) -> None:
    make_certificates(tmp_path, ["127.0.0.1"], days=2)
    with pytest.raises(ClusterError, match=r"tls://127.0.0.1:\d+: no scheduler can be reached there"):
        list(Address(cluster.options(tmp_path).model_copy(update={"patience": 3.0})).begin())


@pytest.mark.slow
def test_a_client_without_tls_is_refused(cluster: RunningCluster) -> None:
    with pytest.raises(OSError, match=r"Timed out trying to connect|reset by peer"):
        Client(cluster.address.replace("tls", "tcp"), timeout=3.0)


@pytest.mark.slow
def test_what_is_not_encrypted_listens_on_loopback_only(cluster: RunningCluster) -> None:
    """Those are the pages of the scheduler and of workers, which Dask puts on every interface if it is not told."""
    with cluster.executor() as executor:
        list(executor.begin())
        scheduler, *workers = [
            [c.laddr for c in psutil.Process(process.pid).net_connections() if c.status == "LISTEN"]
            for process in cluster.processes
        ]
    for listening in (scheduler, *workers):
        assert len({address.port for address in listening}) == 2
        assert all(address.ip == "127.0.0.1" or speaks_tls(address.port) for address in listening)


def speaks_tls(port: int) -> bool:
    """Whether who listens hangs up on one who does not encrypt."""
    with socket.create_connection(("127.0.0.1", port), timeout=5.0) as plain:
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
        try:
            answer = plain.recv(100)
        except ConnectionResetError:
            return True
        return answer[:1] in (b"", b"\x15")  # at most an alert, which TLS sends in the clear


def test_certificates_are_what_they_should_be(certificates: Path) -> None:
    names = {"ca.pem", *(f"{part}{end}" for part in PARTS for end in (".pem", "-key.pem"))}
    assert {path.name for path in certificates.iterdir()} == names
    for part in PARTS:
        assert stat.S_IMODE((certificates / f"{part}-key.pem").stat().st_mode) == 0o600
        command = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", f"{part}.pem"]
        said = subprocess.run(command, cwd=certificates, capture_output=True, text=True, check=False)
        assert said.stdout == f"{part}.pem: OK\n", said


def test_the_command_says_how_to_go_on(call: Call, tmp_path: Path) -> None:
    said = call("certificates", str(tmp_path / "new"), "--host", "10.0.0.5")
    assert said.code == 0
    assert re.search(r"dask scheduler --protocol tls --host 10.0.0.5 .*--dashboard-address 127.0.0.1:8787", said.out)
    assert "--nworkers=-1 --nthreads 1 " in said.out, "with auto Dask takes threads as it likes"
    table = said.out[said.out.index("  [cluster]") :].replace("\n  ", "\n").strip()
    (tmp_path / "cluster.toml").write_text(table)
    options = read_cluster(str(tmp_path / "cluster.toml"))
    assert options.address == "tls://10.0.0.5:8786"
    assert options.key is not None
    assert options.key.exists()
    again = call("certificates", str(tmp_path / "new"))
    assert again.code == 2
    assert "ca.pem: is there already; remove the old certificates or name another folder" in again.err
