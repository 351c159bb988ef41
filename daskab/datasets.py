"""Labelled data to fit on and test with: readers, and the preprocessing a caller chooses and records.

Every step is a pure function from one :class:`Dataset` to another, so that what was done to the data is what
the caller wrote down, in that order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as bundled

from daskab.errors import DataError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points of two classes.

    Parameters
    ----------
    X : ndarray of float64, shape (N, D)
        Points, finite.
    y : ndarray of bool, shape (N,)
        True for the second class.
    input_names : tuple of str, length D
        Image pixels are called after row and column, ``r3c4``, and keep that name when others are dropped.
    image_shape : tuple (rows, columns), optional
        Of the whole image, when the inputs are its pixels or some of them.
    name : str
        Of the data set.
    class_names : tuple of two str
        First and second class.

    Raises
    ------
    DataError
        If a shape does not fit, or a value is not finite.
    """

    X: Array
    y: NDArray[np.bool_]
    input_names: tuple[str, ...]
    image_shape: tuple[int, int] | None
    name: str
    class_names: tuple[str, str]

    def __post_init__(self) -> None:
        if self.X.ndim != 2:
            raise DataError(f"X: has shape {self.X.shape}, expected 2 dimensions")
        n, d = self.X.shape
        if self.y.shape != (n,) or self.y.dtype != np.bool_:
            raise DataError(f"y: {self.y.dtype} of shape {self.y.shape}, expected bool of shape ({n},)")
        if len(self.input_names) != d:
            raise DataError(f"input_names: {len(self.input_names)} names for {d} inputs")
        bad = np.argwhere(~np.isfinite(self.X))
        if bad.size:
            i, j = bad[0]
            raise DataError(f"X: {self.X[i, j]} at row {i}, input {self.input_names[j]} is not finite")


def load_digits(classes: tuple[int, int]) -> Dataset:
    """Two classes of the 8 x 8 handwritten digits that come with scikit-learn.

    Parameters
    ----------
    classes : tuple of two int
        Digits, 0 to 9. The second is the one that ``y`` marks True.

    Returns
    -------
    Dataset
        About 360 points, 64 inputs, values 0 to 16 (counts of set pixels in a 4 x 4 block).

    Raises
    ------
    DataError
        If ``classes`` is not two different digits.

    Notes
    -----
    The test part of "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak (1998), UCI.

    Examples
    --------
    >>> digits = load_digits((3, 5))
    >>> digits.X.shape, digits.input_names[10]
    ((365, 64), 'r1c2')
    """
    if len(set(classes)) != 2 or len(classes) != 2 or not all(c in range(10) for c in classes):
        raise DataError(f"classes: {classes} is not two different digits from 0 to 9")
    X, labels = bundled.load_digits(return_X_y=True)
    mine = np.isin(labels, classes)
    return Dataset(
        X=np.asarray(X[mine], dtype=np.float64),
        y=labels[mine] == classes[1],
        input_names=tuple(f"r{r}c{c}" for r in range(8) for c in range(8)),
        image_shape=(8, 8),
        name="digits",
        class_names=(str(classes[0]), str(classes[1])),
    )


def drop_constant(dataset: Dataset, min_std: float) -> Dataset:
    """Leave out inputs that hardly vary.

    Parameters
    ----------
    dataset : Dataset
    min_std : float
        In the units of the inputs, not negative. An input stays when its standard deviation over all points
        is above this; 0 drops only what is constant.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If ``min_std`` is negative or no input is left.
    """
    if not min_std >= 0.0:
        raise DataError(f"min_std: {min_std:g} is negative")
    # The range as well: the rounded deviation of a constant need not be 0.
    keep = (np.std(dataset.X, axis=0) > min_std) & (np.ptp(dataset.X, axis=0) > 0.0)
    if not keep.any():
        raise DataError(f"min_std: no input of {dataset.name} has a standard deviation above {min_std:g}")
    names = tuple(name for name, kept in zip(dataset.input_names, keep, strict=True) if kept)
    return replace(dataset, X=dataset.X[:, keep], input_names=names)


def rescale(dataset: Dataset, low: float, high: float) -> Dataset:
    """Map the inputs' full range to [0, 1], the same for every input.

    Parameters
    ----------
    dataset : Dataset
    low, high : float
        Range that the values can take, whether or not they do: 0 and 16 for the digits.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If ``low`` is not below ``high``, or a value lies outside.
    """
    if not low < high:
        raise DataError(f"low: {low:g} is not below high {high:g}")
    outside = np.argwhere((dataset.X < low) | (dataset.X > high))
    if outside.size:
        i, j = outside[0]
        where = f"row {i}, input {dataset.input_names[j]}"
        raise DataError(f"X: {dataset.X[i, j]:g} at {where} is outside [{low:g}, {high:g}]")
    return replace(dataset, X=(dataset.X - low) / (high - low))


def split(dataset: Dataset, train_size: int, seed: int) -> tuple[Dataset, Dataset]:
    """Training and test part: shuffled, in the classes' proportions, and without a row in common.

    Parameters
    ----------
    dataset : Dataset
    train_size : int
        Number of training points. Copies of a row stay together, so where there are many the training part
        can fall short of this; it never exceeds it.
    seed : int

    Returns
    -------
    train, test : Dataset

    Raises
    ------
    DataError
        If ``train_size`` leaves either part without one of the classes.
    """
    n = dataset.X.shape[0]
    if not 1 <= train_size < n:
        raise DataError(f"train_size: {train_size} is not from 1 to {n - 1}, one less than the points")
    rng = np.random.default_rng(seed)
    group = np.unique(dataset.X, axis=0, return_inverse=True)[1].reshape(n)
    copies = np.bincount(group)
    # Copies may bear different labels; the group counts with the majority.
    second = 2 * np.bincount(group, weights=dataset.y) > copies
    quota_second = round(train_size * int(copies[second].sum()) / n)
    chosen = np.zeros(copies.size, dtype=np.bool_)
    for label, quota in ((False, train_size - quota_second), (True, quota_second)):
        left = quota
        for g in rng.permutation(np.flatnonzero(second == label)):
            if copies[g] <= left:
                chosen[g] = True
                left -= int(copies[g])
    order = rng.permutation(n)
    in_train = chosen[group][order]
    parts = (order[in_train], order[~in_train])
    for part, rows in zip(("training", "test"), parts, strict=True):
        for label, name in zip((False, True), dataset.class_names, strict=True):
            if not np.any(dataset.y[rows] == label):
                raise DataError(f"train_size: {train_size} leaves no {name} in the {part} part")
    train, test = (replace(dataset, X=dataset.X[rows], y=dataset.y[rows]) for rows in parts)
    return train, test
