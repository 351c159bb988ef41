"""Readers: each format, and the one line that malformed, cut and empty files are answered with."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from daskab.datasets.readers import read
from daskab.datasets.registry import Entry
from daskab.errors import DataError

COLUMNS = [{"names": ["a"], "type": "real", "unit": "m"}, {"names": ["b"], "type": "categorical", "values": [0, 1]}]


def facts(format: str, **changes: Any) -> Entry:
    """A data set of three rows and two inputs."""
    given: dict[str, Any] = {
        "name": "three",
        "title": "Three rows",
        "source": "made up",
        "licence": "none",
        "citation": "nobody",
        "format": format,
        "rows": 3,
        "duplicates": 0,
        "classes": {"n": "no", "y": "yes"},
        "counts": [2, 1],
        "columns": COLUMNS,
    }
    return Entry(**given | changes)


TABLES = {
    "commas": b"0.5,1,n\r\n-2,0,y\r\n3e1, 1,n",
    "spaces": b"  0.5 1 n \n -2  0 y\n\n30 1 n\n",
    "csv": b"first,second,class\n0.5,1,n\n-2,0,y\n30,1,n\n",
    "arff": b"@relation r\n@attribute first real\n@ATTRIBUTE second {0,1}\n@attribute class {n,y}\n\n@DATA\n"
    b"0.5,1,n\n-2,0,y\n30,1,n\n",
}


@pytest.mark.parametrize("format", TABLES)
def test_tables(format: str) -> None:
    table = read(facts(format), {"f": TABLES[format]})
    assert table["X"].values.tolist() == [[0.5, 1.0], [-2.0, 0.0], [30.0, 1.0]]
    assert table["target"].values.tolist() == ["no", "yes", "no"]
    assert table["input"].values.tolist() == ["a", "b"]
    assert table["type"].values.tolist() == ["real", "categorical"]
    assert table["unit"].values.tolist() == ["m", ""]
    assert table.attrs == {
        "name": "three",
        "title": "Three rows",
        "source": "made up",
        "licence": "none",
        "citation": "nobody",
    }


@pytest.mark.parametrize("format", ["csv", "arff"])
def test_names_of_the_file_itself(format: str) -> None:
    table = read(facts(format, columns=[{"count": 2, "type": "real"}]), {"f": TABLES[format]})
    assert table["input"].values.tolist() == ["first", "second"]


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("commas", b"", "three: 0 rows of 2 inputs, expected 3 of 2"),
        ("csv", b"", "three: 0 rows of 2 inputs, expected 3 of 2"),
        ("arff", b"", "f: has no @data line; it is cut short, or no ARFF file"),
        ("commas", b"1,1,n\n1,0,y\n", "three: 2 rows of 2 inputs, expected 3 of 2"),
        ("commas", b"1,1,n\n1,0\n", "f:2: has 2 values, expected 3"),
        ("csv", b"a,b,c\n1,1,n\n1,1,1,n\n", "f:3: has 4 values, expected 3"),
        ("commas", b"1,1,n\n1,x,y\n", "f:2: 'x' is not a number"),
        ("commas", b"1,1,n\n1,,y\n", "f:2: '' is not a number"),
        ("spaces", b"1 1 n\n1 0 maybe\n", "f:2: class 'maybe' is not one of n, y"),
        ("commas", b"1,1,n\n1,\xff,y\n", "f:2: byte 0xff is not UTF-8 text"),
        ("commas", b"1,1,n\n1,0,y\n1,0,y\n", "three: 1 rows of class n, expected 2"),
        ("commas", b"1,1,n\nnan,0,y\n1,0,n\n", "three: nan at row 1, input 0 is not one of its values"),
        ("commas", b"1,1,n\n1,0,y\n1,0.5,n\n", "three: 0.5 at row 2, input 1 is not one of its values"),
    ],
)
def test_tables_that_are_none(format: str, content: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read(facts(format), {"f": content})
    assert str(caught.value) == message


def test_names_that_do_not_fit_the_columns() -> None:
    with pytest.raises(DataError, match=r"^three: 1 names for 2 inputs$"):
        read(facts("arff", columns=[{"count": 2, "type": "real"}]), {"f": TABLES["arff"].replace(b"@ATTR", b"%ATTR")})


IMAGES = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
LABELS = np.array([7, 1, 7], dtype=np.uint8)


def idx(array: Any) -> bytes:
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return head + bytes(array.tobytes())


def digits(images: bytes = idx(IMAGES), labels: bytes = idx(LABELS)) -> Any:
    pixels = [{"count": 4, "type": "integer", "range": [0, 255]}]
    entry = facts("idx", image=[2, 2], classes={"7": "seven", "1": "one"}, columns=pixels)
    return read(entry, {"images": images, "labels": labels})


def test_images() -> None:
    table = digits()
    assert table["X"].values.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert table["target"].values.tolist() == ["seven", "one", "seven"]
    assert table["input"].values.tolist() == ["r0c0", "r0c1", "r1c0", "r1c1"]
    assert table.attrs["image_shape"] == (2, 2)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"images": b""}, "images: 0 bytes are no IDX file of 3 dimensions; its head alone has 16"),
        ({"images": idx(IMAGES)[:-1]}, "images: has 11 values, its head says 12"),
        ({"images": idx(IMAGES) + b"x"}, "images: has 13 values, its head says 12"),
        ({"labels": idx(IMAGES)}, "labels: begins with 0x00000803, an IDX file of it with 0x00000801"),
        ({"images": b"\xff" * 28}, "images: begins with 0xffffffff, an IDX file of it with 0x00000803"),
        (
            {"images": idx(IMAGES)[:4] + b"\xff" * 12},
            "images: has 0 values, its head says 79228162458924105385300197375",
        ),
        ({"labels": idx(LABELS[:2])}, "labels: has 2 labels for the 3 images of images"),
        ({"images": idx(IMAGES[:, :1])}, "three: 3 rows of 2 inputs, expected 3 of 4"),
    ],
)
def test_images_that_are_none(files: dict[str, bytes], message: str) -> None:
    with pytest.raises(DataError) as caught:
        digits(**files)
    assert str(caught.value) == message
