"""Points of two classes, and the preprocessing a caller chooses and records.

Every step is a pure function from one :class:`Dataset` to another, so that what was done to the data is what
the caller wrote down, in that order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskab.datasets.readers import load, pixel_names
from daskab.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

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
    span : ndarray of float64, shape (2, D), optional
        What 0 and 1 stand for, input by input, in the units of the data; None where the points are in those.

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
    span: Array | None = None

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
    return two_classes(load("digits"), ((str(classes[0]),), (str(classes[1]),)))


def two_classes(table: xr.Dataset, groups: tuple[tuple[str, ...], tuple[str, ...]]) -> Dataset:
    """The rows of two of a table's classes, or of two groups of them that count as one each.

    Parameters
    ----------
    table : xarray.Dataset
        As `load` makes it.
    groups : two tuples of str
        Names of classes. The second group is the one that ``y`` marks True.

    Returns
    -------
    Dataset
    """
    labels = table["target"].values
    mine = np.isin(labels, [*groups[0], *groups[1]])
    return Dataset(
        X=np.asarray(table["X"].values[mine], dtype=np.float64),
        y=np.isin(labels[mine], groups[1]),
        input_names=tuple(str(name) for name in table["input"].values),
        image_shape=table.attrs.get("image_shape"),
        name=table.attrs["name"],
        class_names=(group_name(groups[0]), group_name(groups[1])),
    )


def group_name(group: tuple[str, ...]) -> str:
    """What classes that count as one are called."""
    return "/".join(group)


def pool(dataset: Dataset, size: int) -> Dataset:
    """Average images down to ``size`` x ``size`` pixels.

    Parameters
    ----------
    dataset : Dataset
        Of whole images.
    size : int
        At most the rows and columns of the images. Where it does not divide them, a pixel that several of the new ones
        share counts in each by the part of its area that lies there.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If ``size`` is out of range, or they are no images.
    """
    n, d = dataset.X.shape
    if dataset.image_shape is None or d != dataset.image_shape[0] * dataset.image_shape[1]:
        raise DataError(f"pool: the inputs of {dataset.name} are no pixels of whole images")
    rows, columns = dataset.image_shape
    if not 1 <= size <= min(rows, columns):
        raise DataError(f"pool: {size} is not from 1 to the {rows} x {columns} pixels of {dataset.name}")
    # Sums of whole grey levels in whole parts of pixels are exact, so copies of an image stay copies.
    images = dataset.X.reshape(n, rows, columns)
    parts = np.einsum("ar,nrc,bc->nab", _shared(size, rows), images, _shared(size, columns), optimize=True)
    X = parts.reshape(n, size * size) / (rows * columns)
    return replace(dataset, X=X, input_names=pixel_names(size, size), image_shape=(size, size))


def _shared(size: int, length: int) -> Array:
    """What each of ``size`` (rows) covers of each of ``length`` pixels in a line (columns), in 1/size of a pixel."""
    new, old = np.arange(size)[:, None], np.arange(length)
    overlap = np.minimum((new + 1) * length, (old + 1) * size) - np.maximum(new * length, old * size)
    return np.asarray(np.maximum(overlap, 0), dtype=np.float64)


def deduplicate(dataset: Dataset) -> Dataset:
    """Keep the first of all points alike, under the label that most of them bear (the first's, if as many do).

    Parameters
    ----------
    dataset : Dataset

    Returns
    -------
    Dataset
    """
    first, _, copies, second = _distinct(dataset)
    y = np.where(2 * second == copies, dataset.y[first], 2 * second > copies)
    order = np.argsort(first)
    return replace(dataset, X=dataset.X[first[order]], y=y[order])


def _distinct(dataset: Dataset) -> tuple[NDArray[np.intp], ...]:
    """Of every distinct row where it is first (G,), which one each row is (N,), and its copies, all and in y (G,)."""
    _, first, group = np.unique(dataset.X, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(dataset.X.shape[0])
    return first, group, np.bincount(group), np.bincount(group[dataset.y], minlength=first.size)


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
    span = None if dataset.span is None else dataset.span[:, keep]
    return replace(dataset, X=dataset.X[:, keep], input_names=names, span=span)


def rescale(dataset: Dataset, low: ArrayLike, high: ArrayLike) -> Dataset:
    """Map the inputs' full range to [0, 1].

    Parameters
    ----------
    dataset : Dataset
    low, high : float or array_like, shape (D,)
        Range that the values can take, whether or not they do: 0 and 16 for the digits.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If ``low`` is not below ``high``, or a value lies outside.
    """
    span = np.stack([np.broadcast_to(np.asarray(edge, dtype=np.float64), dataset.X.shape[1:]) for edge in (low, high)])
    for low_j, high_j in span.T[~(span[0] < span[1])][:1]:
        raise DataError(f"low: {low_j:g} is not below high {high_j:g}")
    for i, j in np.argwhere((dataset.X < span[0]) | (dataset.X > span[1]))[:1]:
        where = f"row {i}, input {dataset.input_names[j]}"
        raise DataError(f"X: {dataset.X[i, j]:g} at {where} is outside [{span[0, j]:g}, {span[1, j]:g}]")
    return replace(dataset, X=(dataset.X - span[0]) / (span[1] - span[0]), span=span)


def rescale_to_seen(dataset: Dataset, percentile: float) -> Dataset:
    """Map the range that each input is seen to have to [0, 1], without its farthest values, which are clipped.

    Parameters
    ----------
    dataset : Dataset
    percentile : float
        From 0 to below 50. The range goes from this to the opposite percentile of the input over all points;
        what lies beyond counts as its edge. An input that is left constant becomes 0.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If ``percentile`` is out of range.
    """
    if not 0.0 <= percentile < 50.0:
        raise DataError(f"percentile: {percentile:g} is not from 0 to below 50")
    span = np.percentile(dataset.X, [percentile, 100.0 - percentile], axis=0)
    width = np.where(span[1] > span[0], span[1] - span[0], 1.0)
    return replace(dataset, X=(np.clip(dataset.X, *span) - span[0]) / width, span=span)


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
    _, group, copies, of_second = _distinct(dataset)
    # Copies may bear different labels; the group counts with the majority.
    second = 2 * of_second > copies
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
