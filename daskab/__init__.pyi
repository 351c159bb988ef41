# The public names. Each is imported from where it stands when it is first asked for: a worker needs few of them.
from . import datasets
from .attack.points import attack_points
from .errors import (
    BoundError,
    BusyError,
    DaskabError,
    DataError,
    IntegrityError,
    JobError,
    ModelError,
)
from .model.expansion import KernelExpansion
from .model.importers.gpflow import from_gpflow
from .model.importers.gpy import from_gpy
from .model.importers.gpytorch import from_gpytorch
from .model.importers.sklearn import from_sklearn
from .model.laplace import GPClassifier
from .model.linear import LinearModel
from .model.logistic import fit_logistic
from .model.npz import load_linear_model, load_model, save_model
from .run.certificate import Certificate
from .run.certify import certify
from .run.linear import certify_linear

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
    "LinearModel",
    "ModelError",
    "__version__",
    "attack_points",
    "certify",
    "certify_linear",
    "datasets",
    "fit_logistic",
    "from_gpflow",
    "from_gpy",
    "from_gpytorch",
    "from_sklearn",
    "load_linear_model",
    "load_model",
    "save_model",
]

__version__: str
