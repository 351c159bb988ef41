"""Points and labels to train on, and the box about them, checked: each complaint in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target

from daskab.errors import DataError
from daskab.model.checked import Array


@contextmanager
def data_errors(field: str) -> Iterator[None]:
    """scikit-learn's complaints about the data as daskab's, on one line."""
    try:
        yield
    except ValueError as error:
        raise DataError(f"{field}: {' '.join(str(error).split())}") from None


def check_finite(points: Array) -> None:
    """DataError unless all of the points (N, D) are."""
    # Not left to scikit-learn, whose message does not say where.
    bad = np.argwhere(~np.isfinite(points))
    if bad.size:
        i, j = bad[0]
        raise DataError(f"X: {points[i, j]} at row {i}, column {j}; NaN and inf are not accepted")


def two_classes(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The two label values, sorted, and each point's index into them."""
    # Two of the messages keep the wording that scikit-learn's estimator checks look for.
    kind = type_of_target(labels)
    if kind == "unknown":
        raise DataError(f"y: Unknown label type, dtype {labels.dtype}; give numbers, booleans or strings")
    if kind != "binary":
        raise DataError(f"y: Only binary classification is supported. The type of the target is {kind}.")
    classes, target = np.unique(labels, return_inverse=True)
    if classes.size != 2:
        raise DataError(f"y: holds 1 class, {classes[0]}; expected 2")
    return classes, target


def box_edges(box: tuple[ArrayLike, ArrayLike] | None, points: Array) -> tuple[Array, Array]:
    """Edges (D,) of the box."""
    if box is None:
        return points.min(axis=0), points.max(axis=0)
    d = points.shape[1]
    try:
        lower, upper = (np.broadcast_to(np.asarray(edge, dtype=np.float64), (d,)) for edge in box)
    except (TypeError, ValueError):
        raise DataError(f"box: is not a pair (lower, upper), each a number or of shape ({d},)") from None
    wrong = np.flatnonzero(~((lower <= upper) & np.isfinite(lower) & np.isfinite(upper)))
    if wrong.size:
        j = int(wrong[0])
        raise DataError(f"box: input {j} has edges {lower[j]:g} and {upper[j]:g}, not finite lower <= upper")
    return lower, upper
