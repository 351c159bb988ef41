"""Kubernetes: manifests and what the operator is asked for fit their schemas, and a run by a stand-in for its API."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from examples import FIXED, Call, ask, mixed_model, sealed, write_job
from operators import kubernetes
from recipes import CLUSTER, check, free_port

from daskab.errors import ClusterError, DaskabError
from daskab.run.cluster import ClusterOptions
from daskab.run.executors.kubernetes import Kubernetes
from daskab.run.job import read_cluster

VERSION = "1.34"
FOLDER = CLUSTER / "kubernetes"
MANIFESTS = [m for path in sorted(FOLDER.glob("*.yaml")) for m in yaml.safe_load_all(path.read_text())]


def options(**more: Any) -> ClusterOptions:
    given = {"kind": "kubernetes", "image": "daskab:1", "volume": "claim", "insecure": True, "memory": "1GB"}
    return ClusterOptions.model_validate(given | more)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda m: m["kind"])
def test_manifests_fit_the_schemas_of_kubernetes(manifest: Any) -> None:
    kubernetes_validate.validate(manifest, VERSION, strict=True)


def test_the_nightly_job() -> None:
    by_kind = {manifest["kind"]: manifest for manifest in MANIFESTS}
    assert all(manifest["metadata"]["name"] == "daskab" for manifest in MANIFESTS)
    job = by_kind["CronJob"]["spec"]
    assert job["concurrencyPolicy"] == "Forbid"
    pod = job["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    check([*container["command"], *container["args"]])
    table = read_cluster(str(FOLDER / "cluster.toml"))
    assert (container["image"], pod["serviceAccountName"]) == (table.image, "daskab")
    # The client and its pods see one volume at one place, as one user.
    of_workers = Kubernetes(table).spec()["spec"]["worker"]["spec"]
    assert {**pod["volumes"][0]} == of_workers["volumes"][0]
    assert container["volumeMounts"][0] == of_workers["containers"][0]["volumeMounts"][0]
    assert pod["securityContext"] == of_workers["securityContext"]
    assert container["securityContext"] == of_workers["containers"][0]["securityContext"]


def test_what_the_operator_is_asked_for_fits_its_schema() -> None:
    spec = Kubernetes(options(workers=3)).spec()
    definition = files("dask_kubernetes") / "operator/deployment/helm/dask-kubernetes-operator/crds/daskcluster.yaml"
    (version,) = yaml.safe_load(definition.read_text())["spec"]["versions"]
    jsonschema.validate(spec, version["schema"]["openAPIV3Schema"])
    for part in ("scheduler", "worker"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": part}, "spec": spec["spec"][part]["spec"]}
        kubernetes_validate.validate(pod, VERSION, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod | {"spec": {**pod["spec"], "volume": []}}, VERSION, strict=True)


def test_what_pods_are_begun_with() -> None:
    spec = Kubernetes(options(workers=3, mount="/data")).spec()["spec"]
    assert spec["worker"]["replicas"] == 3
    assert spec["idleTimeout"] > 0, "what a killed client leaves would stay for ever"
    worker, scheduler = (spec[part]["spec"]["containers"][0] for part in ("worker", "scheduler"))
    for container in (worker, scheduler):
        check([*container["command"], *container["args"], "tcp://a:1"][: None if container is worker else -1])
        assert container["image"] == "daskab:1"
        assert container["resources"]["limits"] == {"memory": "1000000000"}
        variables = {variable["name"]: variable["value"] for variable in container["env"]}
        assert variables["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] == "1"
        assert variables["DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING"] == "False"
        assert variables["NUMBA_NUM_THREADS"] == "1"
    assert worker["volumeMounts"] == [{"name": "runs", "mountPath": "/data"}]
    assert "--nthreads 1 --memory-limit 1000000000" in " ".join(worker["args"])
    assert Kubernetes(options(workers=3, minimum=2)).spec()["spec"]["worker"]["replicas"] == 2


def test_a_table_says_that_nothing_is_encrypted(call: Call, tmp_path: Path) -> None:
    job = write_job(tmp_path, "a")
    lines = ["[cluster]", 'kind = "kubernetes"', 'image = "daskab:1"', 'volume = "claim"']
    for more, match in {
        "": r"c.toml:2: cluster.kind: .*not encrypt.*say insecure = true",
        "insecure = true\nminimum = 2": r"c.toml:6: cluster.minimum: 2 is more than 1 workers",
        'queue = "q"': r"c.toml:5: cluster.queue: given, but kind 'kubernetes' has no queue",
    }.items():
        (tmp_path / "c.toml").write_text("\n".join([*lines, more]))
        said = call("run", job, "--cluster", "c.toml")
        assert said.code == 2
        assert re.search(match, said.err), said.err


def test_without_the_extra_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask_kubernetes.operator", None)
    with pytest.raises(DaskabError, match=r"need dask-kubernetes: pip install 'daskab\[kubernetes\]'"):
        list(Kubernetes(options()).begin())


def test_without_kubernetes_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ClusterError, match=r"^Kubernetes: [^\n]*$"):
        list(Kubernetes(options()).begin())


def test_pods_that_never_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with kubernetes(tmp_path, "1", begins=False) as operator:
        with pytest.raises(ClusterError, match="Kubernetes: the scheduler's pod did not come in 1 s"):
            list(Kubernetes(options(patience=1.0)).begin())
        assert len(operator.asked) == 1
        assert not operator.clusters, "what was asked for is not taken back"


@pytest.mark.slow
def test_a_run_comes_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with kubernetes(tmp_path, free_port()) as operator:
        with Kubernetes(options(workers=2, minimum=1, memory="4GB")) as executor:
            spread = ask(mixed_model(), FIXED, tmp_path / "spread", executor)
        assert not operator.clusters, "the cluster is left behind"
        scaler = next(resource for resource in operator.asked if resource["kind"] == "DaskAutoscaler")
        assert (scaler["spec"]["minimum"], scaler["spec"]["maximum"]) == (1, 2)
    assert sealed(spread) == sealed(ask(mixed_model(), FIXED, tmp_path / "here"))
