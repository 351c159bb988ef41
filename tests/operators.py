"""A stand-in for Kubernetes' API with Dask's operator behind it: what pods would run, runs as processes here.

No Kubernetes can be begun in tests. What asks this one is the real dask-kubernetes, and what it begins are the real
commands of the resource it was asked for, with the ports of this machine.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from examples import environment

CONFIGURATION = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: me, namespace: lab}}}}]
clusters: [{{name: here, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: me, user: {{token: none}}}}]
"""


class Operator:
    """Holds what was asked for, and the processes begun for it."""

    def __init__(self, folder: Path, port: str, *, begins: bool) -> None:
        self.folder = folder
        self.port = port  #: of the scheduler
        self.begins = begins  #: False: its pods never come
        self.clusters: dict[str, Any] = {}
        self.asked: list[Any] = []  #: every resource that was created
        self.processes: list[subprocess.Popen[bytes]] = []

    def create(self, resource: Any) -> None:
        """Begin what a resource describes."""
        self.asked.append(resource)
        if resource["kind"] != "DaskCluster":
            return
        self.clusters[resource["metadata"]["name"]] = resource
        if not self.begins:
            return
        resource["status"] = {"phase": "Running"}
        spec = resource["spec"]
        self.begin(spec["scheduler"]["spec"], {"8786": self.port, ":8787": "127.0.0.1:0", "0.0.0.0": "127.0.0.1"})
        for number in range(spec["worker"]["replicas"]):
            self.begin(spec["worker"]["spec"], {"$(DASK_WORKER_NAME)": f"worker-{number}"})

    def begin(self, pod: Any, here: dict[str, str]) -> None:
        """Run the container of a pod."""
        [container] = pod["containers"]
        assert container["command"] == ["dask"]
        variables = {variable["name"]: variable["value"] for variable in container["env"]}
        variables["DASK_SCHEDULER_ADDRESS"] = f"tcp://127.0.0.1:{self.port}"
        del variables["NUMBA_CACHE_DIR"]  # kernels are compiled already
        with open(self.folder / f"pod-{len(self.processes)}.log", "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *(here.get(word, word) for word in container["args"])],
                env=environment() | variables,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)

    def delete(self, name: str) -> None:
        """Remove a cluster, and end its processes."""
        del self.clusters[name]
        for process in self.processes:
            process.terminate()

    def answer(self, path: str) -> Any:
        """What there is at an address; None if there is nothing."""
        if path.startswith("/version"):
            return {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
        if path.rstrip("/") in DISCOVERY:
            return DISCOVERY[path.rstrip("/")]
        if "daskclusters" in path:
            found = [c for name, c in self.clusters.items() if name in path]
            return {"kind": "DaskClusterList", "items": found}
        if not self.clusters or not self.begins:
            return {"kind": "List", "items": []}
        ((name, cluster),) = self.clusters.items()
        metadata = {"name": f"{name}-scheduler", "namespace": "lab"}
        if "/pods" in path:
            status = {"phase": "Running", "conditions": [{"type": kind, "status": "True"} for kind in READY]}
            return {"kind": "PodList", "items": [{"kind": "Pod", "metadata": metadata, "status": status}]}
        ports = [{"name": port, "port": int(self.port)} for port in ("tcp-comm", "http-dashboard")]
        service = {
            "kind": "Service",
            "metadata": metadata,
            "spec": {**cluster["spec"]["scheduler"]["service"], "type": "LoadBalancer", "ports": ports},
            "status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}},
        }
        return {"kind": "ServiceList", "items": [service]}


DISCOVERY = {
    "/api": {"versions": ["v1"]},
    "/api/v1": {"resources": [{"name": "pods", "singularName": "pod", "kind": "Pod", "namespaced": True}]},
    "/apis": {"groups": []},
}
READY = ("Initialized", "Ready", "ContainersReady", "PodScheduled")


@contextmanager
def kubernetes(folder: Path, port: str, *, begins: bool = True) -> Iterator[Operator]:
    """An operator, whom ``KUBECONFIG`` in ``folder`` leads to."""
    operator = Operator(folder, port, begins=begins)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = operator.answer(self.path)
            one = re.search(r"/(?:daskclusters|pods|services)/([\w-]+)$", self.path)
            if one is not None:
                found = next((item for item in found["items"] if item["metadata"]["name"] == one[1]), None)
            self.say(200 if found else 404, found)

        def do_POST(self) -> None:
            resource = json.loads(self.rfile.read(int(self.headers["content-length"])))
            operator.create(resource)
            self.say(201, resource)

        def do_PATCH(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.say(404, None)  # there is no such autoscaler yet

        def do_DELETE(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            operator.delete(self.path.partition("?")[0].rpartition("/")[2])
            self.say(200, {"kind": "Status", "status": "Success"})

        def say(self, code: int, what: Any) -> None:
            content = json.dumps(
                what or {"kind": "Status", "status": "Failure", "message": "not found", "code": code}
            ).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    (folder / "kubeconfig").write_text(CONFIGURATION.format(port=server.server_port))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield operator
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        for process in operator.processes:
            process.kill()
            process.wait()
