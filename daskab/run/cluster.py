"""The ``[cluster]`` of a job, or of a file of its own: where tasks run."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator
from pydantic.functional_validators import AfterValidator

from daskab.run.sections import BesideJob, Count, Positive, Section, wrong

PATIENCE = 60.0

OF_KIND = {
    "inline": set[str](),
    "processes": {"workers", "patience"},
    "slurm": {
        "workers",
        "minimum",
        "cores",
        "memory",
        "walltime",
        "queue",
        "account",
        "interface",
        "directives",
        "logs",
        "patience",
    },
    "kubernetes": {
        "workers",
        "minimum",
        "memory",
        "image",
        "namespace",
        "volume",
        "mount",
        "insecure",
        "patience",
    },
    "address": {"address", "ca", "certificate", "key", "insecure", "patience"},
}
"""Which options a kind has; one that would be ignored is refused."""


def _address(given: str) -> str:
    if not (re.fullmatch(r"(tcp|tls)://[^/?#@\s]+", given) and _has_host_and_port(given)):
        raise wrong(f"{given!r} is not an address such as tls://host:8786")
    return given


def _has_host_and_port(given: str) -> bool:
    try:
        parts = urlsplit(given)
        return bool(parts.hostname and parts.port)
    except ValueError:  # brackets that do not match; a port that is no number, or too high
        return False


class ClusterOptions(Section):
    """``[cluster]``: where tasks run. Every kind gives the same certificate, to the byte.

    ``inline`` does one after another in this process, without Dask; ``processes`` begins a cluster of ``workers``
    processes here (by default one a core); ``address`` uses the scheduler that runs at ``address``. Over ``tls://``
    both sides show a certificate that ``ca`` has signed; ours is in ``certificate`` and ``key``. A scheduler that is
    neither encrypted nor on this machine is refused unless ``insecure``. ``slurm`` asks a SLURM cluster for ``workers``
    processes (by default 1), in jobs of ``cores`` of them with ``memory`` and ``walltime`` each, in ``queue``, for
    ``account``, with more ``directives`` of sbatch; ``interface`` is the network they reach this machine by, and
    ``logs`` a folder for what they print. ``kubernetes`` asks Dask's operator for ``workers`` pods of ``image`` with
    ``memory`` each, in ``namespace``, which see the claim ``volume``, where runs are, at ``mount``. With ``minimum``,
    jobs or pods come and go with the work, between that and ``workers``. A run whose scheduler, or whose last worker,
    is gone waits ``patience`` seconds for another.
    """

    kind: Literal["inline", "processes", "slurm", "kubernetes", "address"] = "inline"
    workers: Count | None = None
    minimum: Count | None = None
    address: Annotated[str, AfterValidator(_address)] | None = None
    ca: BesideJob | None = None
    certificate: BesideJob | None = None
    key: BesideJob | None = None
    insecure: bool = False
    cores: Count = 1
    memory: str = "4GB"
    walltime: str = "01:00:00"
    queue: str | None = None
    account: str | None = None
    interface: str | None = None
    directives: Annotated[tuple[str, ...], Field(strict=False)] = ()
    logs: BesideJob | None = None
    image: str | None = None
    namespace: str | None = None
    volume: str | None = None
    mount: str = "/runs"
    patience: Positive = PATIENCE

    @property
    def encrypted(self) -> bool:
        """Whether what goes to the scheduler at ``address`` is."""
        return self.address is not None and self.address.startswith("tls://")

    @model_validator(mode="after")
    def _of_the_kind(self) -> ClusterOptions:
        for name in sorted(self.model_fields_set - {"kind", *OF_KIND[self.kind]}):
            raise wrong(f"given, but kind {self.kind!r} has no {name}", (name,))
        for name in self._needed():
            if getattr(self, name) is None:
                raise wrong("missing", (name,))
        if self.kind == "kubernetes" and not self.insecure:
            raise wrong(
                "Dask's operator does not encrypt, and whoever reaches its scheduler can run code there; "
                "fence the namespace with a NetworkPolicy, and say insecure = true",
                ("kind",),
            )
        if self.minimum is not None and self.minimum > (self.workers or 1):
            raise wrong(f"{self.minimum} is more than {self.workers or 1} workers", ("minimum",))
        return self

    def _needed(self) -> tuple[str, ...]:
        match self.kind:
            case "address":
                return ("address", "ca", "certificate", "key") if self.encrypted else ("address",)
            case "kubernetes":
                return "image", "volume"
        return ()
