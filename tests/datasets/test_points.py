"""The digits and the preprocessing steps: what they keep, what they promise, what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn import datasets as bundled

from daskab.datasets import Dataset, drop_constant, load_digits, rescale, split
from daskab.datasets.points import deduplicate, pool, rescale_to_seen
from daskab.errors import DataError


@pytest.fixture(scope="module")
def digits():
    return load_digits((3, 5))


def rows(dataset):
    return {row.tobytes() for row in dataset.X}


def with_copies():
    """Rows 0..9, row k there k + 1 times; the second class is every other row."""
    X = np.repeat(np.arange(10.0), np.arange(1, 11))[:, None]
    return Dataset(X, X[:, 0] % 2 == 1, ("x0",), None, "copies", ("even", "odd"))


def test_digits_are_those_of_scikit_learn(digits):
    images, labels = bundled.load_digits(return_X_y=True)
    assert np.array_equal(digits.X[digits.y], images[labels == 5])
    assert np.array_equal(digits.X[~digits.y], images[labels == 3])
    assert digits.X.dtype == np.float64
    assert digits.y.dtype == np.bool_
    assert digits.class_names == ("3", "5")
    assert digits.image_shape == (8, 8)


def test_digits_swap_with_the_classes(digits):
    swapped = load_digits((5, 3))
    assert np.array_equal(swapped.X, digits.X)
    assert np.array_equal(swapped.y, ~digits.y)


def test_pixels_are_called_after_row_and_column(digits):
    image = np.arange(64).reshape(8, 8)
    assert digits.input_names[image[3, 4]] == "r3c4"
    assert len(set(digits.input_names)) == 64


@pytest.mark.parametrize("classes", [(3, 3), (3, 10), (-1, 2), (1, 2, 3), (4,)])
def test_digits_refuse_other_classes(classes):
    with pytest.raises(DataError) as caught:
        load_digits(classes)
    assert str(caught.value) == f"classes: {classes} is not two different digits from 0 to 9"


@pytest.mark.parametrize("min_std", [0.0, 0.5, 3.0])
def test_drop_constant_keeps_names_with_columns(digits, min_std):
    kept = drop_constant(digits, min_std)
    where = [digits.input_names.index(name) for name in kept.input_names]
    assert np.array_equal(kept.X, digits.X[:, where])
    assert (kept.X.std(axis=0) > min_std).all()
    others = np.delete(digits.X, where, axis=1)
    assert (others.std(axis=0) <= min_std).all()
    assert 0 < kept.X.shape[1] < 64
    assert kept.image_shape == (8, 8)


def test_drop_constant_knows_a_constant_whose_deviation_rounds():
    X = np.full((7, 2), 0.1)
    X[0, 1] = 0.2
    assert X[:, 0].std() > 0.0
    data = Dataset(X, np.arange(7) < 3, ("a", "b"), None, "tenths", ("no", "yes"))
    assert drop_constant(data, 0.0).input_names == ("b",)


def test_drop_constant_errors(digits):
    with pytest.raises(DataError, match=r"^min_std: -1 is negative$"):
        drop_constant(digits, -1.0)
    with pytest.raises(DataError, match=r"^min_std: no input of digits has a standard deviation above 99$"):
        drop_constant(digits, 99.0)


def test_rescale_maps_the_range_to_one(digits):
    scaled = rescale(digits, 0.0, 16.0)
    assert np.array_equal(scaled.X * 16.0, digits.X)
    assert (scaled.X.min(), scaled.X.max()) == (0.0, 1.0)
    assert digits.X.max() == 16.0  # the given one is left alone


def test_rescale_errors(digits):
    with pytest.raises(DataError, match=r"^low: 2 is not below high 2$"):
        rescale(digits, 2.0, 2.0)
    with pytest.raises(DataError, match=r"^X: 1[0-9] at row 0, input r0c\d is outside \[0, 8\]$"):
        rescale(digits, 0.0, 8.0)


@pytest.mark.parametrize("train_size", [20, 100, 300])
def test_split_parts_make_up_the_whole(digits, train_size):
    train, test = split(digits, train_size, seed=1)
    assert train.X.shape[0] == train_size
    together = np.vstack([np.column_stack([part.X, part.y]) for part in (train, test)])
    whole = np.column_stack([digits.X, digits.y])
    assert np.array_equal(np.unique(together, axis=0), np.unique(whole, axis=0))
    assert together.shape == whole.shape
    assert abs(train.y.mean() - digits.y.mean()) < 1.0 / train_size


def test_split_shuffles_by_the_seed(digits):
    first, again, other = (split(digits, 100, seed) for seed in (7, 7, 8))
    assert np.array_equal(first[0].X, again[0].X)
    assert np.array_equal(first[1].y, again[1].y)
    assert rows(first[0]) != rows(other[0])
    assert not np.array_equal(np.sort(first[0].y), first[0].y)


@pytest.mark.parametrize("seed", range(20))
def test_split_keeps_copies_together(seed):
    data = with_copies()
    train, test = split(data, 30, seed)
    assert not rows(train) & rows(test)
    assert train.X.shape[0] + test.X.shape[0] == data.X.shape[0]
    assert 20 <= train.X.shape[0] <= 30


def test_split_keeps_copies_of_both_labels_together():
    data = with_copies()
    mixed = replace(data, y=np.arange(data.X.shape[0]) % 2 == 0)
    train, test = split(mixed, 30, seed=0)
    assert not rows(train) & rows(test)


@pytest.mark.parametrize(
    ("train_size", "message"),
    [
        (0, "train_size: 0 is not from 1 to 364, one less than the points"),
        (365, "train_size: 365 is not from 1 to 364, one less than the points"),
        (1, "train_size: 1 leaves no 5 in the training part"),
        (364, "train_size: 364 leaves no 5 in the test part"),
    ],
)
def test_split_errors(digits, train_size, message):
    with pytest.raises(DataError) as caught:
        split(digits, train_size, seed=0)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros(3)}, "X: has shape (3,), expected 2 dimensions"),
        ({"y": np.zeros(2)}, "y: float64 of shape (2,), expected bool of shape (2,)"),
        ({"y": np.zeros(3, dtype=bool)}, "y: bool of shape (3,), expected bool of shape (2,)"),
        ({"input_names": ("a",)}, "input_names: 1 names for 2 inputs"),
        ({"X": np.array([[0.0, 1.0], [np.nan, 0.0]])}, "X: nan at row 1, input a is not finite"),
    ],
)
def test_dataset_errors(change, message):
    good = Dataset(np.eye(2), np.array([True, False]), ("a", "b"), None, "two", ("no", "yes"))
    with pytest.raises(DataError) as caught:
        replace(good, **change)
    assert str(caught.value) == message


def test_pool_averages_blocks(digits):
    pooled = pool(digits, 4)
    blocks = digits.X.reshape(-1, 8, 8)
    assert pooled.X.shape == (365, 16)
    assert pooled.image_shape == (4, 4)
    for r, c in ((0, 0), (1, 2), (3, 3)):
        block = blocks[:, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2]
        assert np.array_equal(pooled.X[:, pooled.input_names.index(f"r{r}c{c}")], block.sum(axis=(1, 2)) / 4)
    assert np.array_equal(pool(digits, 8).X, digits.X)


def test_pool_shares_pixels_where_it_does_not_divide_them(digits):
    pooled = pool(digits, 3)
    images = digits.X.reshape(-1, 8, 8)
    line = np.array([3, 3, 2])  # thirds of a pixel: of eight, a third covers two and two thirds
    assert pooled.X[:, 0] == pytest.approx(line @ images[:, :3, :3] @ line / 64)
    assert pooled.X.mean(axis=1) == pytest.approx(digits.X.mean(axis=1))
    assert pooled.image_shape == (3, 3)


def test_pool_errors(digits):
    with pytest.raises(DataError, match=r"^pool: 9 is not from 1 to the 8 x 8 pixels of digits$"):
        pool(digits, 9)
    with pytest.raises(DataError, match=r"^pool: the inputs of digits are no pixels of whole images$"):
        pool(drop_constant(digits, 0.0), 4)


def test_deduplicate_keeps_the_first_of_each_row():
    X = np.array([[3.0], [1.0], [3.0], [2.0], [3.0], [1.0]])
    y = np.array([False, True, True, False, True, False])
    data = deduplicate(Dataset(X, y, ("a",), None, "copies", ("no", "yes")))
    assert data.X.tolist() == [[3.0], [1.0], [2.0]]
    assert data.y.tolist() == [True, True, False]  # the majority's, the first's, its own


def columns(X):
    return Dataset(X, np.arange(len(X)) % 2 == 0, tuple("abc"), None, "columns", ("no", "yes"))


def test_rescale_by_input():
    X = np.array([[0.0, -1.0, 5.0], [10.0, 1.0, 6.0]])
    scaled = rescale(columns(X), [0.0, -1.0, 4.0], [10.0, 1.0, 8.0])
    assert scaled.X.tolist() == [[0.0, 0.0, 0.25], [1.0, 1.0, 0.5]]
    assert scaled.span.tolist() == [[0.0, -1.0, 4.0], [10.0, 1.0, 8.0]]
    with pytest.raises(DataError, match=r"^X: 6 at row 1, input c is outside \[4, 5\]$"):
        rescale(columns(X), [0.0, -1.0, 4.0], [10.0, 1.0, 5.0])


def test_the_seen_range_is_clipped():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=101), np.arange(101.0), np.r_[np.zeros(100), 7.0]])
    scaled = rescale_to_seen(columns(X), 10.0)
    assert scaled.span[:, 1].tolist() == [10.0, 90.0]
    assert scaled.X[:, 1].tolist() == pytest.approx(np.clip((X[:, 1] - 10) / 80, 0, 1))
    assert (scaled.X.min(), scaled.X.max()) == (0.0, 1.0)
    assert not scaled.X[:, 2].any()  # one value in a hundred is clipped to the others'
    kept = drop_constant(scaled, 0.0)
    assert kept.input_names == ("a", "b")
    assert np.array_equal(kept.span, scaled.span[:, :2])
    whole = rescale_to_seen(columns(X), 0.0)
    assert np.array_equal(whole.span, [X.min(axis=0), X.max(axis=0)])
    with pytest.raises(DataError, match=r"^percentile: 50 is not from 0 to below 50$"):
        rescale_to_seen(columns(X), 50.0)
