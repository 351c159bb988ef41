"""The baseline of a job: fitted to the data of its models, certified exactly, both kept beside the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from daskab.errors import ModelError
from daskab.files import make_folder, reaching, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.model.linear import LinearModel
from daskab.model.npz import load_linear_model, save_model
from daskab.model.provenance import made_of
from daskab.run.certificate import Certificate
from daskab.run.data import prepared
from daskab.run.job import Baseline, Job
from daskab.run.linear import certify_linear
from daskab.run.models import about, depends_on, key_of
from daskab.run.plan import canonical_json


@dataclass(frozen=True)
class CertifiedBaseline:
    """A baseline, its certificate, and where that is kept."""

    name: str
    model: LinearModel
    certificate: Certificate
    path: Path


def baselines_of(job: Job) -> list[Baseline]:
    """The baselines of a job, one for all models of the same data."""
    return list(dict.fromkeys(point.baseline for point in job.points() if point.baseline is not None))


def certified_baseline(
    baseline: Baseline, runs: Path, late: Callable[[], bool] = lambda: False
) -> CertifiedBaseline | None:
    """Fit and certify one; a fit made before is found in ``runs/models``, certificates go to ``runs/baselines``.

    None if it would have to be fitted, and it is ``late``.

    Raises
    ------
    DataError
        If the fit does not converge.
    """
    kept = runs / "models" / f"{key_of(_depends_on(baseline))}.npz"
    with reaching(kept):
        if not kept.exists():
            if late():
                return None
            make_folder(kept.parent)
            save_model(_fit(baseline), kept)
        model = load_linear_model(kept)
    certificate = certify_linear(model)
    path = runs / "baselines" / f"{certificate.run_id}.json"
    with reaching(path):
        if not path.exists() or path.read_bytes() != certificate.to_json().encode():
            make_folder(path.parent)
            write_atomically(path, certificate.to_json())
    return CertifiedBaseline(baseline.name, model, certificate, path)


def baselines_beside(run: Path, model: KernelExpansion) -> Iterator[CertifiedBaseline]:
    """Baselines kept beside a run that are fitted to what its model is: its data, its percentile, its versions.

    Nothing rests on them, so one that cannot be read is none. Their names say what was asked of them.
    """
    same, runs = _fitted_to(model.provenance), run.absolute().parent
    if same is None or not (runs / "baselines").is_dir():
        return
    for kept in sorted((runs / "models").glob("*.npz")):
        try:
            found = load_linear_model(kept)
        except ModelError:  # of one of the models that are compared with baselines
            continue
        if _fitted_to(found.provenance) == same:
            certificate = certify_linear(found)
            options = made_of(found.provenance)["model"]
            name = f"{options.get('kind')}, C = {options.get('C')}"
            yield CertifiedBaseline(name, found, certificate, runs / "baselines" / f"{certificate.run_id}.json")


def _fitted_to(provenance: str | None) -> tuple[object, object, object] | None:
    """What a fit has in common with its baseline; None where its provenance does not say."""
    said = made_of(provenance)
    try:
        return said["data"], said["model"]["percentile"], said["versions"]
    except (TypeError, LookupError):
        return None


def _depends_on(baseline: Baseline) -> dict[str, object]:
    asked = {**baseline.options.model_dump(), "percentile": baseline.percentile}
    return depends_on(baseline.data, asked)


def _fit(baseline: Baseline) -> LinearModel:
    from daskab.model.logistic import fit_logistic  # here, for a fit that is there already does without scikit-learn

    train, test = prepared(baseline.data)
    model = fit_logistic(train.X, train.y, C=baseline.options.C, box=(0.0, 1.0), percentile=baseline.percentile)
    return model.replace(
        input_names=train.input_names,
        accuracy=float(np.mean((model.latent(test.X) > 0.0) == test.y)),
        provenance=canonical_json(_depends_on(baseline) | about(baseline.data, train, test)),
    )
