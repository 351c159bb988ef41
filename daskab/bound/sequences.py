"""Sequences: runs of neighbouring slices a..b crossed by a path, and their weights (METHOD 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel
from daskab.bound.contributions import ACROSS, FROM_LOWER, INSIDE, TO_UPPER
from daskab.bound.rounding import EPS

Array = NDArray[np.float64]


def count(slices: int) -> int:
    """Number of sequences of s slices: s(s + 1)/2."""
    return slices * (slices + 1) // 2


def ends(slices: int) -> NDArray[np.int64]:
    """First and last slice (sequences, 2) of every sequence, in the order the plan numbers them."""
    first, last = np.triu_indices(slices)
    return np.stack([first, last], axis=1).astype(np.int64)


@inner_kernel
def place(unit: int, n_sequences: int) -> tuple[int, int, int]:
    """(dimension, direction index, sequence) of a logical unit; units are numbered in that order."""
    return unit // (2 * n_sequences), (unit // n_sequences) % 2, unit % n_sequences


@inner_kernel
def fill_prefix(table: Array, prefix: Array) -> None:
    """Running sums over slices of `across`: prefix (s + 1, M) from contributions (s, 4, M)."""
    for i in range(table.shape[2]):
        prefix[0, i] = 0.0
        for k in range(table.shape[0]):
            prefix[k + 1, i] = prefix[k, i] + table[k, ACROSS, i]


@inner_kernel
def sequence_weights(table: Array, prefix: Array, amplitudes: Array, first: int, last: int, out: Array) -> None:
    """Weights (M,) of the sequence first..last, each never below the true largest increase of its term.

    Three contributions are added, the middle one a difference of running sums; METHOD, Lemma 4 bounds
    the error of those sums by the last term.
    """
    slices = table.shape[0]
    for i in range(out.size):
        if first == last:
            out[i] = table[first, INSIDE, i]
        else:
            crossed = prefix[last, i] - prefix[first + 1, i]
            total = table[first, TO_UPPER, i] + crossed + table[last, FROM_LOWER, i]
            out[i] = total + 4.0 * (slices + 4.0) * EPS * abs(amplitudes[i])
