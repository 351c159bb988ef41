"""A Dask scheduler that is running already, here or elsewhere, over TLS unless it is on this machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from distributed import Client
from distributed.security import Security

from daskab.errors import ClusterError, one_line
from daskab.run.cluster import ClusterOptions
from daskab.run.executors.cluster import Cluster
from daskab.run.executors.patience import GLANCE, patiently


class Address(Cluster):
    """Runs tasks on a running cluster, which is left running."""

    name = "address"

    def __init__(self, options: ClusterOptions) -> None:
        super().__init__(options.patience)
        assert options.address is not None  # ClusterOptions refuses that kind without one
        self.address = options.address
        self.options = options
        if not (options.encrypted or options.insecure or on_loopback(self.address)):
            raise ClusterError(
                f"cluster.address: {self.address!r} is not encrypted, and whoever reaches it can run code there; "
                "use tls://, or say insecure = true"
            )

    def reach(self) -> Iterator[None]:
        """Wait for the scheduler to answer."""
        security = None
        if self.options.encrypted:
            security = Security(
                tls_ca_file=str(self.options.ca),
                tls_client_cert=str(self.options.certificate),
                tls_client_key=str(self.options.key),
                require_encryption=True,
            )
        try:
            self._joined = yield from patiently(
                lambda: Client(self.address, security=security, timeout=self.patience, set_as_default=False),
                self.patience + GLANCE,
            )
        except (OSError, ValueError) as error:
            what = one_line(error.__cause__ or error)
            raise ClusterError(f"{self.address}: no scheduler can be reached there ({what})") from None

    def client(self) -> Client:
        """Join the cluster."""
        return self._joined


def on_loopback(address: str) -> bool:
    """Whether an address like ``tcp://127.0.0.1:8786`` never leaves this machine."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
