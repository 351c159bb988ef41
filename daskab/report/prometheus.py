"""Jobs as a Prometheus textfile, which the textfile collector of the node exporter picks up."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from daskab.errors import JobError
from daskab.files import write_atomically
from daskab.report.results import BaselineResult, Result, Results
from daskab.run.certificate import Certificate

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


@dataclass(frozen=True)
class Sample:
    """One more gauge's value: the gauge's name after ``daskab_``, what it is, its labels."""

    name: str
    what: str
    labels: dict[str, str]
    value: float


def write_textfile(jobs: Sequence[Results], path: Path, more: Iterable[Sample] = ()) -> None:
    """Write the results of jobs as gauges, and ``more`` samples.

    What is not known has no sample; the last success is kept until the next.
    """
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()
    gauges: dict[str, Gauge] = {}

    def put(name: str, what: str, labels: dict[str, str], value: float) -> None:
        if name not in gauges:
            gauges[name] = Gauge(f"daskab_{name}", what, tuple(labels), registry=registry)
        gauges[name].labels(**labels).set(value)

    for results in jobs:
        for sample in samples_of(results, last_success(path, results.job)):
            put(sample.name, sample.what, sample.labels, sample.value)
    for sample in more:
        put(sample.name, sample.what, sample.labels, sample.value)
    write_atomically(path, generate_latest(registry).decode())


def samples_of(results: Results, succeeded: float) -> Iterator[Sample]:
    """What is known of a job, which ``succeeded`` then before this time."""

    def of_job(name: str, what: str, value: float) -> Sample:
        return Sample(name, what, {"job": results.job}, value)

    for result in results:
        yield from samples_of_model(results.job, result)
    for one in results.baselines:
        yield from samples_of_baseline(results.job, one)
    if results.require_inputs is not None:
        yield of_job("required_inputs", "Inputs the job requires to be certified", results.require_inputs)
    now = time.time()
    succeeded = now if results.code == 0 else succeeded
    yield of_job("exit_code", "Exit code of the last run", results.code)
    yield of_job("last_run_timestamp_seconds", "When the last run ended", now)
    yield of_job("last_success_timestamp_seconds", "When the last run with exit code 0 ended; 0: never", succeeded)


def samples_of_model(job: str, result: Result) -> Iterator[Sample]:
    """What is known of one model."""

    def of_model(name: str, what: str, value: float) -> Sample:
        return Sample(name, what, {"job": job, "model": result.model}, value)

    done = result.outcome
    complete = done is not None and done.certificate.complete
    yield of_model("run_seconds", "Time the last run took over the model", result.seconds)
    yield of_model("complete", "1 if the certificate is complete", complete)
    if done is None:
        return
    certificate = done.certificate
    exact = "1 if the best attack changes no more inputs than are certified to be required"
    yield of_model("exact", exact, certificate.exact)
    yield of_model("tasks_failed", "Tasks that could not be done", len(done.failures))
    if (required := required_by(certificate)) is not None:
        what = "Inputs an attack must change, as certified; +Inf: no attack exists"
        yield of_model("inputs_required", what, required)
    if certificate.attack_inputs is not None:
        yield of_model("attack_inputs", "Inputs the best attack found changes", certificate.attack_inputs)
    if result.accuracy is not None:
        yield of_model("accuracy", "Share of the test points classified correctly", result.accuracy)


def samples_of_baseline(job: str, one: BaselineResult) -> Iterator[Sample]:
    """What is known of one baseline; its gauges are not those of models, for which alerts are set."""
    if one.found is None:
        return
    labels = {"job": job, "baseline": one.name}
    if (required := required_by(one.found.certificate)) is not None:
        what = "Inputs an attack on the baseline must change, exactly; +Inf: no attack exists"
        yield Sample("baseline_inputs_required", what, labels, required)
    if one.found.model.accuracy is not None:
        what = "Share of the test points the baseline classifies correctly"
        yield Sample("baseline_accuracy", what, labels, one.found.model.accuracy)


def required_by(certificate: Certificate) -> float | None:
    """Inputs an attack must change, infinite where none exists."""
    return math.inf if certificate.no_attack_exists else certificate.inputs_required


def last_success(path: Path, job: str) -> float:
    """When a job last succeeded, from the file it wrote; 0 where that does not say, so that an alert goes off."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        families = list(text_string_to_metric_families(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return 0.0
    samples = [s for family in families for s in family.samples if s.name == LAST_SUCCESS and s.labels == {"job": job}]
    return samples[0].value if samples and math.isfinite(samples[0].value) else 0.0
