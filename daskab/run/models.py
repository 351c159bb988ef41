"""The models of a job: read from their files, or fitted to the job's data and kept beside the runs."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from daskab._version import VERSION
from daskab.datasets.points import Dataset
from daskab.files import make_folder, reaching
from daskab.model.expansion import KernelExpansion
from daskab.model.npz import load_model, save_model
from daskab.model.provenance import made_of
from daskab.run.data import DataOptions, prepared
from daskab.run.job import Baseline, BoundOptions, FittedModel, Job, Point
from daskab.run.plan import canonical_json
from daskab.run.sweep import Values


@dataclass(frozen=True)
class JobModel:
    """A model under the name its job gives it."""

    name: str
    model: KernelExpansion
    classes: tuple[str, str] | None
    noun: str  #: what is called one change: an input, or a group, which an input alone may be
    bound: BoundOptions  #: how it is to be certified
    values: Values  #: what a sweep says of it
    baseline: Baseline | None  #: what it is compared with

    @property
    def notes(self) -> tuple[str, ...]:
        """What did not go as asked when it was fitted, as its provenance has it."""
        return () if self.classes is None else tuple(made_of(self.model.provenance).get("notes", ()))


def job_models(job: Job, runs: Path, late: Callable[[], bool] = lambda: False) -> Iterator[JobModel]:
    """Each model of a job in turn. Once it is ``late``, models that would have to be fitted are left out."""
    return (item for point in job.points() if (item := job_model(point, runs, late)) is not None)


def job_model(point: Point, runs: Path, late: Callable[[], bool] = lambda: False) -> JobModel | None:
    """A model of a job, fitted if it has no file; a fit made before is found in ``runs/models``.

    None if it would have to be fitted, and it is ``late``.
    """
    spec, data = point.model, point.data
    if not isinstance(spec, FittedModel):
        model = point.domain.applied(load_model(spec.file), None)
        return JobModel(point.name, model, None, noun_of(model), point.bound, point.values, None)
    assert data is not None  # read_job refuses a fit without data
    path = runs / "models" / f"{fit_key(data, spec)}.npz"
    with reaching(path):
        if not path.exists():
            if late():
                return None
            make_folder(path.parent)
            save_model(fit(data, spec), path)
        model = point.domain.applied(load_model(path), data)
    return JobModel(point.name, model, data.pair, noun_of(model, data.noun), point.bound, point.values, point.baseline)


def noun_of(model: KernelExpansion, of_input: str = "input") -> str:
    """What is called one change of a model."""
    return "group" if model.domain.groups else of_input


def fit_key(data: DataOptions, spec: FittedModel) -> str:
    """Name of a kept fit: a hash of all it depends on."""
    return key_of(depends_on(data, spec.model_dump(exclude={"name"})))


def fit(data: DataOptions, spec: FittedModel) -> KernelExpansion:
    """Fit one model to the training part of the data, and record its accuracy on the rest and what it is made of."""
    # Here, for a model that is there already does without scikit-learn.
    from sklearn.exceptions import ConvergenceWarning

    from daskab.model.laplace import GPClassifier

    train, test = prepared(data)
    classifier = GPClassifier(
        lengthscale=spec.lengthscale,
        variance=spec.variance,
        optimise=spec.optimise,
        inducing_points=spec.inducing_points,
        box=(0.0, 1.0),
        percentile=spec.percentile,
        random_state=data.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the notes say the same, whenever the model is used
        classifier.fit(train.X, train.y)
    accuracy = float(np.mean((classifier.model_.latent(test.X) > 0.0) == test.y))
    said = depends_on(data, spec.model_dump(exclude={"name"})) | about(data, train, test)
    said |= {"notes": list(classifier.notes_)}
    return classifier.model_.replace(input_names=train.input_names, accuracy=accuracy, provenance=canonical_json(said))


def key_of(depends: dict[str, Any]) -> str:
    """The hash that names a fit by all it depends on."""
    return hashlib.sha256(canonical_json(depends).encode()).hexdigest()[:16]


def about(data: DataOptions, train: Dataset, test: Dataset) -> dict[str, Any]:
    """What else a fit's provenance says of its data."""
    return {
        "title": data.entry.title,
        "licence": data.entry.licence,
        "citation": data.entry.citation,
        "train_rows": len(train.y),
        "test_rows": len(test.y),
        "zero_and_one": None if train.span is None else train.span.tolist(),
    }


def depends_on(data: DataOptions, model: dict[str, Any]) -> dict[str, Any]:
    """All that a fit depends on: data, what is asked of the model, versions."""
    versions = {
        "daskab": VERSION,
        "numpy": np.__version__,
        "scipy": version("scipy"),
        "sklearn": version("scikit-learn"),
    }
    return {"data": data.facts(), "model": model, "versions": versions}
