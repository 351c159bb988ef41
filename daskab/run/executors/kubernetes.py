"""Scheduler and workers as pods, asked of Dask's operator with dask-kubernetes; one that dies is begun again there."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dask.utils import parse_bytes
from distributed import Client

from daskab.errors import ClusterError, DaskabError, one_line
from daskab.run.cluster import ClusterOptions
from daskab.run.executors.cluster import Cluster
from daskab.run.executors.patience import patiently
from daskab.run.executors.processes import SETTINGS

USER = 10001
"""Whom pods run as, and the group of the volume: that of the image in ``cluster/container``."""

POD = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""With these a namespace may enforce the standard ``restricted``."""

ABANDONED = 3600
"""Seconds after which the operator removes a cluster that has nothing to do: its daskab was killed."""


CLOSING = 10
"""Seconds a cluster that did not begin may take to be removed."""


class Kubernetes(Cluster):
    """Runs tasks in pods of one thread each."""

    name = "kubernetes"

    def __init__(self, options: ClusterOptions) -> None:
        super().__init__(options.patience)
        self.options = options
        self._pods: Any = None

    def reach(self) -> Iterator[None]:
        """Wait for the operator to begin a cluster."""
        try:
            self._pods = yield from patiently(self.pods, self.patience + CLOSING)
        except TimeoutError:
            raise ClusterError(f"Kubernetes: the scheduler's pod did not come in {self.patience:g} s") from None
        except DaskabError:
            raise
        except Exception as error:  # of whatever library on the way to Kubernetes
            raise ClusterError(f"Kubernetes: {one_line(error)}") from None

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Join it; the operator removes it when the context ends."""
        with self._pods as cluster, Client(cluster, set_as_default=False) as client:
            yield client

    def pods(self) -> Any:
        """The cluster, once its scheduler answers.

        Raises
        ------
        DaskabError
            If dask-kubernetes is not installed.
        TimeoutError
            If it does not come in time; what was asked for is taken back.
        """
        try:
            from dask_kubernetes.operator import KubeCluster
        except ImportError:
            raise DaskabError("clusters of Kubernetes need dask-kubernetes: pip install 'daskab[kubernetes]'") from None
        o, patience = self.options, self.patience

        class Pods(KubeCluster):  # type: ignore[misc]
            async def _start(self) -> None:
                try:
                    # By itself it waits for ever, for an image that cannot be had for instance.
                    async with asyncio.timeout(patience):
                        await super()._start()
                        if o.minimum is not None:
                            await self._adapt(o.minimum, o.workers or 1)
                except BaseException:
                    with suppress(Exception):
                        await self._close(timeout=CLOSING)
                    raise

        return Pods(namespace=o.namespace, custom_cluster_spec=self.spec(), quiet=True)

    def spec(self) -> dict[str, Any]:
        """The resource ``DaskCluster`` that the operator is asked for."""
        from dask_kubernetes.operator import make_cluster_spec

        o = self.options
        memory = str(parse_bytes(o.memory))
        spec: dict[str, Any] = make_cluster_spec(
            name=f"daskab-{uuid.uuid4().hex[:10]}",
            image=o.image,
            n_workers=o.minimum or o.workers or 1,
            resources={"requests": {"cpu": "1", "memory": memory}, "limits": {"memory": memory}},
            env={
                **{variable(key): str(value) for key, value in SETTINGS.items() if "environ" not in key},
                "NUMBA_NUM_THREADS": "1",
                # Compiling takes a minute, which one pod then does for all.
                "NUMBA_CACHE_DIR": f"{o.mount}/.kernels",
            },
            idle_timeout=ABANDONED,
        )
        for part, command in {
            "scheduler": ["scheduler", "--host", "0.0.0.0", "--port", "8786", "--dashboard-address", ":8787"],
            "worker": [
                *("worker", "--name", "$(DASK_WORKER_NAME)", "--nthreads", "1", "--memory-limit", memory),
                *("--dashboard-address", "127.0.0.1:0"),
            ],
        }.items():
            pod = spec["spec"][part]["spec"]
            [container] = pod["containers"]
            container |= {"command": ["dask"], "args": command, "securityContext": CONTAINER}
            pod |= {"automountServiceAccountToken": False, "securityContext": POD}
        # Nobody calls on a worker's pages, which answer in its pod only.
        del container["ports"]
        container["volumeMounts"] = [{"name": "runs", "mountPath": o.mount}]
        pod["volumes"] = [{"name": "runs", "persistentVolumeClaim": {"claimName": o.volume}}]
        return spec


def variable(setting: str) -> str:
    """The environment variable that gives Dask a setting."""
    return "DASK_" + setting.upper().replace(".", "__").replace("-", "_")
