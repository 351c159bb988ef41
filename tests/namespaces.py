"""Several hosts on one machine: network namespaces on a bridge, whose links can be cut. Needs root and iproute2."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from clusters import RunningCluster

CAN_MAKE = os.geteuid() == 0 and shutil.which("ip") is not None


class Network:
    """Hosts by number; this process is number 1 of their network, and names are of this process alone."""

    def __init__(self) -> None:
        self.name = f"dk{os.getpid()}"
        self.addresses = f"198.18.{os.getpid() % 250}"  # of the range for tests of networks

    def host(self, number: int) -> str:
        """A host's address."""
        return f"{self.addresses}.{number}"

    def on(self, number: int) -> tuple[str, ...]:
        """What begins a command on a host."""
        return "ip", "netns", "exec", f"{self.name}-{number}"

    def link(self, number: int, state: str) -> None:
        """Cut a host's link (down), or mend it (up)."""
        ip(f"link set {self.name}v{number} {state}")


@contextmanager
def network(hosts: int) -> Iterator[Network]:
    """So many hosts, numbered from 2; what runs on them ends with the context."""
    net = Network()
    with ExitStack() as stack:
        ip(f"link add {net.name} type bridge")
        stack.callback(ip, f"link del {net.name}")
        ip(f"addr add {net.host(1)}/24 dev {net.name}")
        ip(f"link set {net.name} up")
        for number in range(2, 2 + hosts):
            space, outside = f"{net.name}-{number}", f"{net.name}v{number}"
            ip(f"netns add {space}")
            stack.callback(remove, space)
            ip(f"link add {outside} type veth peer name eth0 netns {space}")  # goes with the namespace
            ip(f"link set {outside} master {net.name} up")
            for command in (f"addr add {net.host(number)}/24 dev eth0", "link set eth0 up", "link set lo up"):
                ip(f"-n {space} {command}")
        yield net


def remove(space: str) -> None:
    """End what runs in a namespace, and delete it."""
    there = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True, check=True).stdout
    subprocess.run(["kill", "-9", *there.split()], check=False) if there else None
    ip(f"netns del {space}")


def ip(command: str) -> None:
    """Do a command of iproute2."""
    subprocess.run(["ip", *command.split()], check=True)


class Hosts(RunningCluster):
    """A scheduler on host 2 and workers on those after, over TLS."""

    def __init__(self, folder: Path, tls: Path, net: Network) -> None:
        self.net = net
        super().__init__(folder, tls)

    def begin_scheduler(self) -> subprocess.Popen[bytes]:
        self.address = f"tls://{self.net.host(2)}:{self.port}"
        where = ("--host", self.net.host(2), "--port", str(self.port), "--protocol", "tls")
        self.scheduler = self._begin(
            "scheduler", *where, "--dashboard-address", "127.0.0.1:0", "--no-show", before=self.net.on(2)
        )
        return self.scheduler

    def begin_worker_on(self, number: int) -> None:
        """A worker that is begun again when it ends, as a host's own services are."""
        again = ("sh", "-c", 'while :; do "$@"; sleep 1; done', "sh")
        self.begin_worker(before=(*self.net.on(number), *again))
