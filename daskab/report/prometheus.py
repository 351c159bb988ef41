"""A job as a Prometheus textfile, which the textfile collector of the node exporter picks up."""

from __future__ import annotations

import math
import time
from pathlib import Path

from daskab.errors import JobError
from daskab.files import write_atomically
from daskab.report.results import Results

LAST_SUCCESS = "daskab_last_success_timestamp_seconds"


def check_textfile(path: Path) -> None:
    """Say before any work that the file could not be written, or would not be read.

    Raises
    ------
    JobError
        If its name does not end in .prom, or prometheus_client is not installed.
    """
    if path.suffix != ".prom":
        raise JobError(f"--prometheus: {path} does not end in .prom, so the textfile collector would not read it")
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise JobError("--prometheus: needs prometheus_client; pip install 'daskab[prometheus]'") from None


def write_textfile(results: Results, path: Path) -> None:
    """Write a job's results as gauges. What is not known has no sample; the last success is kept until the next."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()

    def gauge(name: str, what: str, *labels: str) -> Gauge:
        return Gauge(f"daskab_{name}", what, ("job", *labels), registry=registry)

    required = gauge("inputs_required", "Inputs an attack must change, as certified; +Inf: no attack exists", "model")
    attack = gauge("attack_inputs", "Inputs the best attack found changes", "model")
    complete = gauge("complete", "1 if the certificate is complete", "model")
    exact = gauge("exact", "1 if the best attack changes no more inputs than are certified to be required", "model")
    run_seconds = gauge("run_seconds", "Time the last run took over the model", "model")
    failed = gauge("tasks_failed", "Tasks that could not be done", "model")
    for result in results:
        labels = (results.job, result.model)
        run_seconds.labels(*labels).set(result.seconds)
        complete.labels(*labels).set(0)
        if result.outcome is None:
            continue
        certificate = result.outcome.certificate
        complete.labels(*labels).set(certificate.complete)
        exact.labels(*labels).set(certificate.exact)
        failed.labels(*labels).set(len(result.outcome.failures))
        if certificate.no_attack_exists:
            required.labels(*labels).set(math.inf)
        elif certificate.inputs_required is not None:
            required.labels(*labels).set(certificate.inputs_required)
        if certificate.attack_inputs is not None:
            attack.labels(*labels).set(certificate.attack_inputs)
    if results.require_inputs is not None:
        gauge("required_inputs", "Inputs the job requires to be certified").labels(results.job).set(
            results.require_inputs
        )
    now = time.time()
    gauge("exit_code", "Exit code of the last run").labels(results.job).set(results.code)
    gauge("last_run_timestamp_seconds", "When the last run ended").labels(results.job).set(now)
    succeeded = now if results.code == 0 else last_success(path, results.job)
    success = gauge("last_success_timestamp_seconds", "When the last run with exit code 0 ended; 0: never")
    success.labels(results.job).set(succeeded)
    write_atomically(path, generate_latest(registry).decode())


def last_success(path: Path, job: str) -> float:
    """When a job last succeeded, from the file it wrote; 0 where that does not say, so that an alert goes off."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        families = list(text_string_to_metric_families(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return 0.0
    samples = [s for family in families for s in family.samples if s.name == LAST_SUCCESS and s.labels == {"job": job}]
    return samples[0].value if samples and math.isfinite(samples[0].value) else 0.0
