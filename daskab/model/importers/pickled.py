"""The only place where a pickle is opened: a person's own estimator, named and trusted by that person."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from daskab.errors import ModelError, one_line


def check_pickle(path: str | os.PathLike[str], *, trust: bool) -> None:
    """ModelError if `load_estimator` would refuse this file without opening the pickle in it.

    Parameters
    ----------
    path : path to the file
    trust : bool
        Opening a pickle runs whatever code it holds: without this none is opened.
    """
    file = Path(path)
    if file.is_dir():
        raise ModelError(f"{path}: is a directory, expected a pickled estimator")
    if not file.is_file():
        raise ModelError(f"{path}: {'is no ordinary file' if file.exists() else 'no such file'}")
    try:
        with open(file, "rb") as handle:
            start = handle.read(4)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from None
    if not start:
        raise ModelError(f"{path}: is empty")
    if start == b"PK\x03\x04":
        raise ModelError(f"{path}: is a zip archive, not a pickled estimator; an .npz model needs no import")
    if not trust:
        raise ModelError(
            f"{path}: is not opened, since opening a pickle runs whatever code is in it; if it is your own, say --trust"
        )


def load_estimator(path: str | os.PathLike[str], *, trust: bool = False) -> tuple[Any, list[str]]:
    """Open an estimator kept with pickle or joblib.

    Parameters
    ----------
    path : path to the file
        As ``pickle.dump`` or ``joblib.dump`` (compressed or not) wrote it.
    trust : bool
        See `check_pickle`.

    Returns
    -------
    estimator : object
        Whatever was in the file.
    notes : list of str
        What the libraries warned of meanwhile, such as another version's file; a line each.

    Raises
    ------
    ModelError
        If the file is not trusted, absent, empty, or no such file, or what it holds cannot be made here.
    """
    check_pickle(path, trust=trust)
    import joblib  # reads plain pickles too

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator = joblib.load(path)
    except Exception as error:  # whatever code the file runs may raise
        raise ModelError(f"{path}: not a pickle that can be opened here ({one_line(error)})") from None
    said = (one_line(warning.message) for warning in caught if isinstance(warning.message, Warning))
    return estimator, list(dict.fromkeys(said))
