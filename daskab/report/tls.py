"""How a Dask cluster is begun with certificates that were made for it."""

from __future__ import annotations

from pathlib import Path

TEXT = """\
Scheduler and workers, each where it shall run, with its own certificate and key and ca.pem:

  dask scheduler --protocol tls --host {host} --port 8786 --dashboard-address 127.0.0.1:8787 \\
    --tls-ca-file {folder}/ca.pem --tls-cert {folder}/scheduler.pem --tls-key {folder}/scheduler-key.pem
  dask worker tls://{host}:8786 --nworkers=-1 --nthreads 1 --dashboard-address 127.0.0.1:0 \\
    --tls-ca-file {folder}/ca.pem --tls-cert {folder}/worker.pem --tls-key {folder}/worker-key.pem

And in the job, or a file for --cluster:

  [cluster]
  kind = "address"
  address = "tls://{host}:8786"
  ca = "{folder}/ca.pem"
  certificate = "{folder}/client.pem"
  key = "{folder}/client-key.pem"
"""


def describe_tls(folder: Path, host: str) -> str:
    """Commands and a ``[cluster]`` table, with certificates in ``folder`` and the scheduler on ``host``."""
    return TEXT.format(folder=folder, host=host)
