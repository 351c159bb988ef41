"""The registry: every fact fits the others, and what needs no file is what it says."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np
import pytest

from daskab.datasets import known, load
from daskab.datasets.registry import Columns, Entry, entry
from daskab.errors import DataError

SHA256 = re.compile("[0-9a-f]{64}")


@pytest.mark.parametrize("name", known())
def test_facts_fit_together(name: str) -> None:
    facts = entry(name)
    assert facts.name == name
    assert sum(facts.counts) == facts.rows
    assert len(facts.counts) == len(facts.classes) == len(set(facts.class_names))
    assert facts.duplicates < facts.rows
    assert facts.image is None or facts.image[0] * facts.image[1] == facts.n_inputs
    assert facts.licence
    assert facts.citation
    assert (facts.format in ("bundled", "made")) == (not facts.files)
    names = [name for columns in facts.columns for name in columns.names]
    assert len(set(names)) == len(names)
    assert len(names) in (0, facts.n_inputs)
    for file in facts.files:
        assert SHA256.fullmatch(file.sha256)
        assert file.url is None or file.url.startswith("https://")
        assert (file.served_sha256 is None) == (file.served_bytes is None)


def test_there_are_those_that_people_certify() -> None:
    assert {"mnist", "australian", "spambase", "banknote", "german", "phishing", "sonar", "wine"} <= set(known())


@pytest.mark.parametrize("name", [name for name, facts in known().items() if not facts.files])
def test_what_needs_no_download(name: str) -> None:
    facts, table = entry(name), load(name)
    assert dict(table.sizes) == {"row": facts.rows, "input": facts.n_inputs}
    assert table.attrs["licence"] == facts.licence
    assert sorted(set(table["target"].values)) == sorted(facts.class_names)
    distinct = {row.tobytes() for row in np.column_stack([table["X"], table["target"] == facts.class_names[0]])}
    assert facts.rows - len(distinct) == facts.duplicates


@pytest.mark.parametrize(("name", "digest"), [("plane", "5b77d51898e2b3d7"), ("diagonal", "0f378a82c594dbd5")])
def test_what_is_computed_is_the_same_everywhere(name: str, digest: str) -> None:
    table = load(name)
    codes = (table["target"] == entry(name).class_names[1]).values
    assert hashlib.sha256(table["X"].values.tobytes() + codes.tobytes()).hexdigest()[:16] == digest


def test_a_table_is_labelled() -> None:
    table = load("digits")
    assert table["input"].values[10] == "r1c2"
    assert set(table["type"].values) == {"integer"}
    assert table["unit"].values[0] == "pixels set in a block of 4 x 4"
    assert table.attrs["image_shape"] == (8, 8)
    assert load("wine")["X"].sel(input="alcohol").values[0] == 14.23


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mnits", "'mnits' is not a data set; did you mean mnist?"),
        ("?", f"'?' is not a data set; known: {', '.join(known())}"),
    ],
)
def test_a_name_that_is_not_known(name: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        load(name)
    assert str(caught.value) == message


def test_names_are_listed_or_counted() -> None:
    counted: dict[str, Any] = {"type": "real", "prefix": "band", "count": 2}
    assert Columns(**counted).names == ("band1", "band2")
    listed: dict[str, Any] = {"type": "real", "names": ["a", "b", "c"]}
    assert Columns(**listed).count == 3


def test_edges_are_known_of_all_inputs_or_none() -> None:
    assert entry("digits").edges == ((0.0, 16.0),) * 64
    phishing: Entry = entry("phishing")
    assert phishing.edges == ((-1.0, 1.0),) * 30
    assert entry("australian").edges is None
