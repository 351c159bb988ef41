"""Several hosts: the link of one is cut in mid-run and mended, for a moment and for longer than it is waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusters import During, answer
from examples import sealed, wait_for
from namespaces import CAN_MAKE, Hosts, network

from daskab.run.executors.certificates import make_certificates
from daskab.run.stages import Outcome

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CAN_MAKE, reason="needs root, and iproute2")]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """A scheduler and two workers, a host each; a worker that is not heard of for 20 seconds is given up."""
    folder, certificates = tmp_path_factory.mktemp("hosts"), tmp_path_factory.mktemp("certificates")
    with network(3) as net, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "20s")
        make_certificates(certificates, [net.host(n) for n in (1, 2, 3, 4)], days=2)
        cluster = Hosts(folder, certificates, net)
        try:
            for number in (3, 4):
                cluster.begin_worker_on(number)
            yield cluster
        finally:
            cluster.close()


def run(hosts: Hosts, what: dict[int, Callable[[], None]], runs: Path) -> Outcome:
    wait_for(lambda: count(hosts, "Register worker addr") >= 2)
    return answer(During(hosts.executor(), what), runs)


def count(hosts: Hosts, line: str) -> int:
    """How often the scheduler said something."""
    return (hosts.folder / "scheduler-0.log").read_text().count(line)


@pytest.mark.recipe
def test_a_link_that_is_cut_for_a_moment(hosts: Hosts, undisturbed: bytes, tmp_path: Path) -> None:
    cut, mend = (lambda state=state: hosts.net.link(4, state) for state in ("down", "up"))
    assert sealed(run(hosts, {4: cut, 16: mend}, tmp_path)) == undisturbed


@pytest.mark.recipe
def test_a_host_that_is_given_up_and_comes_back(hosts: Hosts, undisturbed: bytes, tmp_path: Path) -> None:
    registered, given_up = (count(hosts, line) for line in ("Register worker addr", "failed to heartbeat"))

    def mend_when_given_up() -> None:
        wait_for(lambda: count(hosts, "failed to heartbeat") > given_up)
        hosts.net.link(4, "up")

    mending = threading.Thread(target=mend_when_given_up)

    def cut() -> None:
        hosts.net.link(4, "down")
        mending.start()

    assert sealed(run(hosts, {4: cut}, tmp_path)) == undisturbed
    mending.join()
    wait_for(lambda: count(hosts, "Register worker addr") > registered)
