"""The real files, where this machine has them."""

from __future__ import annotations

import os

import numpy as np
import pytest

from daskab.datasets import known, load
from daskab.datasets.local import find
from daskab.datasets.registry import entry
from daskab.run.data import DataOptions, prepared

pytestmark = pytest.mark.skipif(not os.environ.get("DASKAB_DATA"), reason="set DASKAB_DATA to a folder with the files")

DISTINCT = {"spambase": 4601 - 391, "banknote": 1372 - 24, "phishing": 11055 - 5206, "tuandromd": 662}


def here(name: str) -> None:
    if len(find(entry(name).files)) < len(entry(name).files):
        pytest.skip(f"{name} is not under DASKAB_DATA")


@pytest.mark.parametrize("name", [name for name, facts in known().items() if facts.files])
def test_what_the_registry_says(name: str) -> None:
    here(name)
    table, facts = load(name), entry(name)
    assert dict(table.sizes) == {"row": facts.rows, "input": facts.n_inputs}
    assert len(set(table["input"].values)) == facts.n_inputs
    counts = [int((table["target"] == label).sum()) for label in facts.class_names]
    assert counts == list(facts.counts)
    distinct = {row.tobytes() for row in np.column_stack([table["X"], table["target"] == facts.class_names[0]])}
    assert len(distinct) == DISTINCT.get(name, facts.rows - facts.duplicates)
    assert facts.rows - len(distinct) == facts.duplicates


@pytest.mark.parametrize("deduplicate", [False, True])
def test_copies_are_never_on_both_sides(deduplicate: bool) -> None:
    here("tuandromd")
    train, test = prepared(DataOptions(source="tuandromd", train_size=300, deduplicate=deduplicate))
    sides = [{row.tobytes() for row in part.X} for part in (train, test)]
    assert not sides[0] & sides[1]
    assert len(train.y) + len(test.y) == (660 if deduplicate else 4464)
    assert 0.9 * 300 <= len(train.y) <= 300
    assert train.class_names == ("goodware", "malware")


def test_pooled_images() -> None:
    here("mnist")
    train, test = prepared(DataOptions(source="mnist", classes=(0, 1), pool=7, train_size=100, test_size=50))
    assert (len(train.y), len(test.y), train.image_shape) == (100, 50, (7, 7))
    assert train.X.shape[1] == test.X.shape[1] <= 49
    assert 0.0 <= train.X.min() < train.X.max() <= 1.0
    assert np.allclose(train.X * 4080, np.round(train.X * 4080), rtol=0, atol=1e-9)  # sums of 16 grey levels
