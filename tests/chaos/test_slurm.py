"""A real SLURM: its jobs do the tasks, and one that is cancelled in mid-run has a successor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import CUT, MODEL, OPTIONS, During
from examples import ask, environment, sealed, wait_for
from recipes import CLUSTER, Place, commands, replaced
from slurm import CAN_START, slurm
from slurm import ask as slurm_says

from daskab.run.cluster import ClusterOptions
from daskab.run.executors.slurm import Slurm

TABLE = ClusterOptions(
    kind="slurm", workers=2, memory="1GB", walltime="00:10:00", queue="test", interface="lo", directives=("--nice=0",)
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    if not CAN_START:
        pytest.skip("needs root, and slurm-wlm and munge installed")
    with slurm(tmp_path_factory.mktemp("slurm")) as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in (environment() | variables).items():
            patch.setenv(name, value)
        yield variables


def running_jobs() -> list[str]:
    return slurm_says("squeue", {}, "--noheader", "--format=%i", "--states=R").split()


@pytest.mark.slow
def test_a_cancelled_job_is_replaced(
    cluster: dict[str, str], undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cancelled: list[str] = []

    def cancel() -> None:
        cancelled.append(running_jobs()[0])
        slurm_says("scancel", {}, cancelled[0])

    with During(Slurm(TABLE), {4: cancel}) as executor:
        spread = ask(MODEL, OPTIONS, tmp_path / "runs", executor, cut=CUT)
        assert len(cancelled) == 1
        assert cancelled[0] not in running_jobs()
    assert sealed(spread) == undisturbed
    assert not slurm_says("squeue", {}, "--noheader", "--states=R,PD").split(), "jobs are left behind"
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".pem"], os.listdir(tmp_path)


def test_the_script_of_a_job(tmp_path: Path) -> None:
    options = TABLE.model_copy(update={"cores": 4, "account": "acc", "logs": tmp_path})
    with Slurm(options).jobs() as jobs:
        script = jobs.job_script()
    for line in (
        "#SBATCH -J daskab",
        f"#SBATCH -e {tmp_path}/daskab-%J.err",
        f"#SBATCH -o {tmp_path}/daskab-%J.out",
        "#SBATCH -p test",
        "#SBATCH -A acc",
        "#SBATCH -n 1",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --mem=954M",
        "#SBATCH -t 00:10:00",
        "#SBATCH --nice=0",
    ):
        assert line in script.splitlines(), script
    for option in ("--nthreads 1 ", "--nworkers 4 ", "--dashboard-address 127.0.0.1:0"):
        assert option in script


@pytest.mark.recipe
def test_what_the_page_says(cluster: dict[str, str], tmp_path: Path) -> None:
    """The batch job of the page, whose own jobs come with the work."""
    place = Place(tmp_path)
    (submit, _) = commands(CLUSTER / "slurm" / "README.md")
    table = (CLUSTER / "slurm" / "cluster.toml").read_text()
    here = {"workers = 32": "workers = 1", "minimum = 4": "minimum = 1", "cores = 8": "cores = 1", '"16GB"': '"1GB"'}
    here |= {"short": "test", "ib0": "lo", 'directives = ["--constraint=avx2"]\n': "", 'account = "lab"\n': ""}
    (tmp_path / "cluster.toml").write_text(replaced(table, **here))
    here = {"sbatch cluster/slurm": f"sbatch --mem=1G {CLUSTER}/slurm", "workflows/digits.toml": "tiny.toml"}
    submit = replaced(submit, **here)
    done = place.do(submit, DASKAB_CLUSTER="cluster.toml", **cluster)
    assert done.returncode == 0, done.stderr
    job = done.stdout.split()[-1]
    wait_for(lambda: "COMPLETED" in slurm_says("scontrol", cluster, "show", "job", job), logs=tmp_path, seconds=90.0)
    here_too = Place(tmp_path / "inline")
    assert here_too.do("daskab run tiny.toml").returncode == 0
    assert place.certificate() == here_too.certificate()
