"""The neutral model file: one ``.npz`` of plain arrays, never unpickled."""

from __future__ import annotations

import io
import os
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from daskab.errors import ModelError
from daskab.files import path_at, write_atomically
from daskab.model import domain
from daskab.model.expansion import KernelExpansion
from daskab.model.linear import LinearModel

REQUIRED = ("centres", "weights", "lengthscale", "lower", "upper")
SCALARS = ("variance", "constant", "latent_low", "latent_high", "accuracy")
PROBES = ("probe_points", "probe_latents")
REQUIRED_OF_LINEAR = ("coefficients", "lower", "upper")
SCALARS_OF_LINEAR = ("intercept", "latent_low", "latent_high", "accuracy")
TEXTS = ("input_names", "provenance")

UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    MemoryError,  # a damaged header asks for a huge array
    RuntimeError,  # an encrypted member, or (NotImplementedError) an unknown compression
    SyntaxError,
    tokenize.TokenError,  # a damaged header of an array, which numpy has Python's parser read
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading an ``.npz`` that is none, or no longer one, comes to."""


def load_model(path: str | os.PathLike[str]) -> KernelExpansion:
    """Read a model from the neutral ``.npz`` format.

    Parameters
    ----------
    path : path to the file
        Keys ``centres`` (M, D), ``weights`` (M,), ``lengthscale`` () or (D,), ``lower``, ``upper`` (D,);
        optionally ``variance``, ``constant``, ``latent_low``, ``latent_high``, ``accuracy``,
        ``input_names`` (D,), the probes of an import ``probe_points`` (P, D) and ``probe_latents`` (P,), and
        the texts ``provenance`` and ``kernel``, ``eq`` if absent; and what `KernelExpansion.restrict` says:
        ``max_change`` (D,), ``listed_input`` and ``listed_value`` (V,), ``group_of`` (D,), ``group_kind`` and
        ``group_names`` (G,).
        Other keys are ignored.

    Returns
    -------
    KernelExpansion

    Raises
    ------
    ModelError
        If the file is absent, not an ``.npz``, truncated, pickled, its arrays do not make a model, or the model
        does not agree with its probes.
    """
    given = _read(path, REQUIRED, (*SCALARS, *PROBES, "kernel", *domain.KEYS))
    told = {key: given.pop(key) for key in domain.KEYS if key in given}
    try:
        return KernelExpansion(**given, domain=told)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def load_linear_model(path: str | os.PathLike[str]) -> LinearModel:
    """Read a linear model from an ``.npz`` that `save_model` wrote.

    Parameters
    ----------
    path : path to the file
        Keys ``coefficients``, ``lower``, ``upper`` (D,); optionally ``intercept``, ``latent_low``, ``latent_high``,
        ``accuracy``, ``input_names`` (D,) and a text ``provenance``. Other keys are ignored.

    Returns
    -------
    LinearModel

    Raises
    ------
    ModelError
        As by `load_model`.
    """
    given = _read(path, REQUIRED_OF_LINEAR, SCALARS_OF_LINEAR)
    try:
        return LinearModel(**given)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def save_model(model: KernelExpansion | LinearModel, path: str | os.PathLike[str]) -> None:
    """Write a model in the neutral format, atomically: a reader sees all of it or none.

    Parameters
    ----------
    model : KernelExpansion or LinearModel
    path : where to; an existing file is replaced
    """
    content = io.BytesIO()
    np.savez(content, **cast("dict[str, Any]", model.arrays()))
    write_atomically(path_at(path), content.getvalue())


def _read(path: str | os.PathLike[str], required: Sequence[str], optional: Sequence[str]) -> dict[str, Any]:
    """What is in a model's file, by the names of the model's parts; ModelError if it is no such file."""
    where = path_at(path)
    try:
        # Opened here, for numpy leaves a file that it cannot read open.
        with where.open("rb") as handle:
            archive = np.load(handle, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ModelError(f"{path}: is a single .npy array, expected an .npz model")
            wanted = (*required, *optional, *TEXTS)
            arrays: dict[str, NDArray[Any]] = {k: archive[k] for k in wanted if k in archive.files}
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ModelError(f"{path}: is a directory, expected an .npz model") from None
    except ModelError:
        raise
    except UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"{path}: not a readable .npz model ({reason})") from None
    missing = [k for k in required if k not in arrays]
    if missing:
        raise ModelError(f"{path}: lacks {', '.join(missing)}")
    given: dict[str, Any] = dict(arrays)
    if "input_names" in arrays:
        if arrays["input_names"].ndim != 1:
            raise ModelError(f"{path}: input_names: has shape {arrays['input_names'].shape}, expected one dimension")
        given["input_names"] = [str(n) for n in arrays["input_names"]]
    for name in ("provenance", "kernel"):
        if name in arrays:
            if arrays[name].ndim != 0 or arrays[name].dtype.kind != "U":
                raise ModelError(f"{path}: {name}: is not one text")
            given[name] = str(arrays[name])
    return given
