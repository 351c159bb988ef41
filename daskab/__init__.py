"""daskab certifies how many inputs an attacker must change to fool a Gaussian-process classifier."""

from daskab._version import VERSION as __version__
from daskab.errors import (
    BoundError,
    BusyError,
    DaskabError,
    DataError,
    IntegrityError,
    JobError,
    ModelError,
)
from daskab.model.expansion import KernelExpansion
from daskab.model.importers.gpflow import from_gpflow
from daskab.model.importers.gpy import from_gpy
from daskab.model.importers.gpytorch import from_gpytorch
from daskab.model.importers.sklearn import from_sklearn
from daskab.model.laplace import GPClassifier
from daskab.model.npz import load_model, save_model
from daskab.run.certificate import Certificate
from daskab.run.certify import certify

__all__ = [
    "BoundError",
    "BusyError",
    "Certificate",
    "DaskabError",
    "DataError",
    "GPClassifier",
    "IntegrityError",
    "JobError",
    "KernelExpansion",
    "ModelError",
    "__version__",
    "certify",
    "from_gpflow",
    "from_gpy",
    "from_gpytorch",
    "from_sklearn",
    "load_model",
    "save_model",
]
