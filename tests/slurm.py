"""A real SLURM cluster of one node on loopback, begun for tests by root where SLURM is installed."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from examples import wait_for

CAN_START = os.geteuid() == 0 and all(shutil.which(name) for name in ("munged", "slurmctld", "slurmd", "sbatch"))

CONFIGURATION = """\
ClusterName=daskab
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ReturnToService=2
SchedulerParameters=sched_interval=1,bf_interval=1,defer=no
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=3000 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Environment of commands that use the cluster; everything of it lives in ``folder`` and ends with the context."""
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    host = platform.node().partition(".")[0]
    (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder, host=host, ports=ports))
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir()
    for parent in (folder, *folder.parents):  # munge refuses folders it cannot trust, and must be able to enter them
        if str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    munge = folder / "munge"
    (munge / "key").write_bytes(os.urandom(1024))
    (munge / "key").chmod(0o400)
    for path in (munge, munge / "key"):
        shutil.chown(path, "munge", "munge")
    environment = {"SLURM_CONF": str(folder / "slurm.conf")}
    files = [f"--{what}-file={munge}/{what}" for what in ("key", "pid", "log", "seed")]
    with ExitStack() as stack:

        def begin(*command: str) -> None:
            with open(folder / f"{Path(command[0]).name}.out", "wb") as out:
                process = subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | environment)
            stack.callback(process.wait)
            stack.callback(process.terminate)

        begin(
            "setpriv",
            "--reuid=munge",
            "--regid=munge",
            "--clear-groups",
            "munged",
            "--foreground",
            "--force",
            *files,
            f"--socket={munge}/socket",
        )
        wait_for(lambda: (munge / "socket").exists(), logs=folder)
        begin("slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        begin("slurmd", "-D", "-f", str(folder / "slurm.conf"), "-N", host)
        wait_for(lambda: "idle" in ask("sinfo", environment), logs=folder)
        yield environment


def ask(command: str, environment: dict[str, str], *args: str) -> str:
    """What a command of SLURM says."""
    done = subprocess.run([command, *args], env=os.environ | environment, capture_output=True, text=True, check=False)
    return done.stdout
