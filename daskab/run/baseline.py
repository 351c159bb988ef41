"""The baseline of a job: fitted to the data of its models, certified exactly, both kept beside the runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from daskab.files import make_folder, reaching, write_atomically
from daskab.model.linear import LinearModel
from daskab.model.npz import load_linear_model, save_model
from daskab.run.certificate import Certificate
from daskab.run.data import prepared
from daskab.run.job import Baseline
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


def certified_baseline(baseline: Baseline, runs: Path) -> CertifiedBaseline:
    """Fit and certify one; a fit made before is found in ``runs/models``, certificates go to ``runs/baselines``.

    Raises
    ------
    DataError
        If the fit does not converge.
    """
    kept = runs / "models" / f"{key_of(_depends_on(baseline))}.npz"
    with reaching(kept):
        if not kept.exists():
            model = _fit(baseline)
            make_folder(kept.parent)
            save_model(model, kept)
        model = load_linear_model(kept)
    certificate = certify_linear(model)
    path = runs / "baselines" / f"{certificate.run_id}.json"
    with reaching(path):
        if not path.exists() or path.read_bytes() != certificate.to_json().encode():
            make_folder(path.parent)
            write_atomically(path, certificate.to_json())
    return CertifiedBaseline(baseline.name, model, certificate, path)


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
