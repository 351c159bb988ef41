"""What the pages in ``cluster/`` tell a person to do is done, and comes to the bytes of an inline run."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
import yaml
from examples import wait_for
from filelock import FileLock
from recipes import CLUSTER, Place, commands, free_port, replaced

pytestmark = pytest.mark.recipe

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The certificate, made inline."""
    place = Place(tmp_path_factory.mktemp("here"))
    assert place.do("daskab run tiny.toml").returncode == 0
    return place.certificate()


def test_local(place: Place, undisturbed: bytes) -> None:
    _, command = commands(CLUSTER / "local" / "README.md")
    done = place.do(replaced(command, **{"workflows/digits.toml": "tiny.toml", "cluster/local": f"{CLUSTER}/local"}))
    assert done.returncode == 0, done.stderr
    assert place.certificate() == undisturbed


def test_tls(place: Place, undisturbed: bytes) -> None:
    certificates, scheduler, worker, run = commands(CLUSTER / "tls" / "README.md")
    port = free_port()
    here = {"10.0.0.5": "127.0.0.1", "8786": port}
    assert place.do(certificates).returncode == 0
    with ExitStack() as stack:
        stack.enter_context(place.doing(replaced(scheduler, **here, **{":8787": ":0"})))
        stack.enter_context(place.doing(replaced(worker, **here)))
        table = lay_table(place, "tls", here)
        done = place.do(
            replaced(
                run, **{"workflows/digits.toml": "tiny.toml", "cluster/tls/cluster.toml": table, "/shared/runs": "runs"}
            )
        )
    assert done.returncode == 0, done.stderr
    assert place.certificate() == undisturbed


def lay_table(place: Place, what: str, others: dict[str, str]) -> str:
    """A copy of a page's table, as deep as the original, with names of here."""
    folder = place.folder / "cluster" / what
    folder.mkdir(parents=True)
    text = replaced((CLUSTER / what / "cluster.toml").read_text(), **others)
    (folder / "cluster.toml").write_text(text)
    return f"cluster/{what}/cluster.toml"


@pytest.mark.skipif(SSHD is None or os.geteuid() != 0, reason="needs root, and openssh-server installed")
def test_ssh(place: Place, undisturbed: bytes) -> None:
    begin, run = commands(CLUSTER / "ssh" / "README.md")
    port = free_port()
    here = {"cluster/ssh/cluster.sh": f"{CLUSTER}/ssh/cluster.sh", "10.0.0.5": "127.0.0.1", "node1 node2": "node1"}
    with sshd(place.folder / "ssh", "node1") as ssh:
        with place.doing(replaced(begin, **here), PORT=port, SSH=ssh) as cluster:
            wait_for((place.folder / "scheduler.log").exists)  # until it has its certificates
            table = lay_table(place, "ssh", {"10.0.0.5": "127.0.0.1", "8786": port})
            done = place.do(replaced(run, **{"workflows/digits.toml": "tiny.toml", "cluster/ssh/cluster.toml": table}))
            assert done.returncode == 0, done.stderr + (place.folder / "scheduler.log").read_text()
            assert place.certificate() == undisturbed
            # A host's connection is cut; its workers end, and are begun again.
            before = workers_of(place)
            begun = psutil.Process(cluster.pid).children(recursive=True)
            next(p for p in begun if p.name() == "ssh").kill()
            wait_for(lambda: len(workers_of(place)) == 1 and workers_of(place) != before)
        wait_for(lambda: not [p for p in begun if p.is_running()] and not workers_of(place))


def workers_of(place: Place) -> list[psutil.Process]:
    """Dask workers that were begun with the place's certificates, and not the shells that begin them."""
    ours = f"{place.folder}/certificates/worker.pem"
    processes = list(psutil.process_iter(["cmdline"]))
    return [p for p in processes if ours in (p.info["cmdline"] or []) and p.info["cmdline"][1:3] == ["-m", "dask"]]


@contextmanager
def sshd(folder: Path, host: str) -> Iterator[str]:
    """The client's command that reaches a host of one core, which is this one, by keys made for the occasion."""
    folder.mkdir(mode=0o700)
    port = free_port()
    for key in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    shutil.copy(folder / "client.pub", folder / "authorized")
    (folder / "known").write_text(f"{host} {(folder / 'host.pub').read_text()}")
    (folder / "sshd.conf").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        "PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
    )
    (folder / "ssh.conf").write_text(
        f"Host {host}\n  HostName 127.0.0.1\n  Port {port}\n  HostKeyAlias {host}\n  IdentityFile {folder}/client\n"
        f"  UserKnownHostsFile {folder}/known\n  StrictHostKeyChecking yes\n"
    )
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    assert SSHD is not None
    with open(folder / "sshd.log", "wb") as log:
        server = subprocess.Popen(
            ["taskset", "-c", "0", SSHD, "-D", "-e", "-f", folder / "sshd.conf"], stdout=log, stderr=log
        )
    try:
        yield f"ssh -F {shlex.quote(str(folder / 'ssh.conf'))}"
    finally:
        server.terminate()
        server.wait()


def test_containers_without_containers(place: Place, undisturbed: bytes) -> None:
    """The commands of the compose file, as plain processes that find each other on loopback."""
    services = yaml.safe_load((CLUSTER / "container" / "compose.yaml").read_text())["services"]
    folder = place.folder
    (folder / "certificates").mkdir()
    names = {"/certificates": f"{folder}/certificates", "8786": free_port(), "8787": "0"}
    table = (CLUSTER / "container" / "cluster.toml").read_text()
    (folder / "cluster.toml").write_text(
        replaced(
            table,
            **{"tls://scheduler:8786": f"tls://127.0.0.1:{names['8786']}", "/certificates": names["/certificates"]},
        )
    )

    def command(service: str, **others: str) -> list[str]:
        words = [str(word) for word in services[service]["command"]]
        for old, new in (names | others).items():
            words = [word.replace(old, new) for word in words]
        return words

    for _ in range(2):  # the second time they are there
        assert place.do(command("certificates")).returncode == 0
    with ExitStack() as stack:
        stack.enter_context(place.doing([*command("scheduler"), "--host=127.0.0.1"]))
        stack.enter_context(place.doing(command("worker", scheduler="127.0.0.1")))
        here = {"/jobs/digits.toml": "tiny.toml", "/cluster.toml": f"{folder}/cluster.toml", "/runs": f"{folder}/runs"}
        done = place.do(command("run", **here))
    assert done.returncode == 0, done.stderr
    assert place.certificate() == undisturbed


def test_cron(place: Place, undisturbed: bytes) -> None:
    """Cron mails what a line prints: nothing if all went well, or the night before goes on."""
    mail_to, line = (CLUSTER / "cron" / "daskab.cron").read_text().splitlines()
    assert mail_to.startswith("MAILTO=")
    *when, command = line.split(maxsplit=5)
    assert when == ["15", "2", "*", "*", "*"]
    assert "%" not in command, "cron would make a line end of it"
    assert "flock" not in command
    (place.folder / "daskab").mkdir()
    for path in (".venv", "nightly.toml", "tiny.toml", "a.npz"):
        (place.folder / path).rename(place.folder / "daskab" / path)
    command = replaced(command, **{"workflows/nightly.toml": "nightly.toml"})

    def night() -> str:
        # As cron does: with little of an environment, and sh.
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env={name: place.environment[name] for name in ("HOME", "XDG_CACHE_HOME")} | {"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout + done.stderr

    assert night() == ""
    place.folder = place.folder / "daskab"
    assert place.certificate() == undisturbed
    with FileLock(place.folder / "runs" / "nightly" / "tiny" / ".lock"):
        assert night() == ""
    with open(place.folder / "tiny.toml", "a") as job:
        job.write("require_inputs = 3\n")
    assert "certified 2 inputs, required 3" in night()
