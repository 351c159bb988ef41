"""Readers: from the content of files to one labelled table, whose every number and count was checked."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskab.datasets import made
from daskab.datasets.local import contents
from daskab.datasets.registry import Entry, entry
from daskab.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

Table = tuple[NDArray[np.float64], NDArray[Any], Sequence[str]]
"""Inputs (N, D), what the file calls each row's class (N,), and the names it has for the inputs, if any."""

IDX_BYTES = 8  # of unsigned bytes, the only type here


def load(name: str) -> xr.Dataset:
    """Read a data set as a labelled table.

    Parameters
    ----------
    name : str
        One of `known`.

    Returns
    -------
    xarray.Dataset
        ``X`` (row, input), float64, in the units of the coordinate ``unit``, of the ``type`` real, integer or
        categorical; ``target`` (row), the names of classes. The attributes hold title, source, licence, citation
        and, for images, ``image_shape``.

    Raises
    ------
    DataError
        If the name is unknown, a file is not on this machine (see ``DASKAB_DATA`` and ``daskab data fetch``), or it
        does not hold what the registry says.

    Examples
    --------
    >>> wine = load("wine")
    >>> dict(wine.sizes), str(wine["target"].values[0])
    ({'row': 178, 'input': 13}, 'class_0')
    """
    facts = entry(name)
    return read(facts, contents(facts) if facts.files else {})


def read(entry: Entry, files: dict[str, bytes]) -> xr.Dataset:
    """Make the table of the content of a data set's files, in the registry's order; DataError as `load`."""
    if entry.format == "bundled":
        X, codes, names = _bundled(entry)
    elif entry.format == "made":
        X, codes, names = _made(entry)
    elif entry.format == "idx":
        (images, content), (labels, codes_content) = files.items()
        X, codes, names = _idx(images, content, labels, codes_content)
    else:
        ((file, content),) = files.items()
        X, codes, names = _table(file, content, entry)
    _check(entry, X, codes)
    return _labelled(entry, X, codes, names)


def _bundled(entry: Entry) -> Table:
    from sklearn import datasets as bundled  # here, for other sets do without

    loader = getattr(bundled, entry.source.rpartition(".")[2])
    X, codes = loader(return_X_y=True)
    return np.asarray(X, dtype=np.float64), codes.astype(np.str_), ()


def _made(entry: Entry) -> Table:
    X, codes = getattr(made, entry.source.rpartition(".")[2])()
    return X, codes.astype(np.str_), ()


def _idx(images: str, content: bytes, labels: str, codes_content: bytes) -> Table:
    pixels, codes = _idx_array(images, content, 3), _idx_array(labels, codes_content, 1)
    if len(pixels) != len(codes):
        raise DataError(f"{labels}: has {len(codes)} labels for the {len(pixels)} images of {images}")
    return pixels.reshape(len(pixels), -1).astype(np.float64), codes.astype(np.str_), ()


def _idx_array(file: str, content: bytes, ndim: int) -> NDArray[np.uint8]:
    """An IDX array: two zeros, type, number of dimensions, the dimensions, all of them big-endian; then the bytes."""
    head = 4 + 4 * ndim
    if len(content) < head:
        raise DataError(f"{file}: {len(content)} bytes are no IDX file of {ndim} dimensions; its head alone has {head}")
    if content[:4] != bytes((0, 0, IDX_BYTES, ndim)):
        raise DataError(f"{file}: begins with 0x{content[:4].hex()}, an IDX file of it with 0x0000080{ndim}")
    shape = struct.unpack(f">{ndim}I", content[4:head])
    size = int(np.prod(shape, dtype=object))
    if len(content) - head != size:
        raise DataError(f"{file}: has {len(content) - head} values, its head says {size}")
    return np.frombuffer(content, dtype=np.uint8, offset=head).reshape(shape)


def _table(file: str, content: bytes, entry: Entry) -> Table:
    try:
        lines = content.decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        before = content.count(b"\n", 0, error.start)
        raise DataError(f"{file}:{before + 1}: byte 0x{content[error.start]:02x} is not UTF-8 text") from None
    names, start = _head(file, lines, entry.format)
    separator = None if entry.format == "spaces" else ","
    width = entry.n_inputs
    rows: list[list[float]] = []
    codes: list[str] = []
    for number, line in enumerate(lines[start:], start + 1):
        if not line.strip():
            continue
        *fields, code = (field.strip() for field in line.split(separator))
        if len(fields) != width:
            raise DataError(f"{file}:{number}: has {len(fields) + 1} values, expected {width + 1}")
        try:
            rows.append([float(field) for field in fields])
        except ValueError as error:
            raise DataError(f"{file}:{number}: {str(error).rpartition(': ')[2]} is not a number") from None
        if code not in entry.classes:
            raise DataError(f"{file}:{number}: class {code!r} is not one of {', '.join(entry.classes)}")
        codes.append(code)
    return np.array(rows, dtype=np.float64).reshape(len(rows), width), np.array(codes, dtype=np.str_), names


def _head(file: str, lines: list[str], format: str) -> tuple[list[str], int]:
    """The inputs' names at the head of a file, if it has one, and how many lines that is."""
    if format == "csv":
        return [name.strip() for name in lines[0].split(",")[:-1]], 1
    if format == "arff":
        words = [line.split() for line in lines]
        ends = next((i for i, line in enumerate(words) if line and line[0].lower() == "@data"), None)
        if ends is None:
            raise DataError(f"{file}: has no @data line; it is cut short, or no ARFF file")
        return [line[1] for line in words[:ends] if len(line) > 1 and line[0].lower() == "@attribute"][:-1], ends + 1
    return [], 0


def _check(entry: Entry, X: NDArray[np.float64], codes: NDArray[Any]) -> None:
    """That rows, columns, classes and values are those the registry says."""
    if X.shape != (entry.rows, entry.n_inputs):
        raise DataError(
            f"{entry.name}: {X.shape[0]} rows of {X.shape[1]} inputs, expected {entry.rows} of {entry.n_inputs}"
        )
    for code, count in zip(entry.classes, entry.counts, strict=True):
        found = int(np.count_nonzero(codes == code))
        if found != count:
            raise DataError(f"{entry.name}: {found} rows of class {code}, expected {count}")
    first = 0
    for columns in entry.columns:
        part = X[:, first : first + columns.count]
        edges = columns.edges or (-np.inf, np.inf)
        fits = np.isin(part, columns.values) if columns.values else (edges[0] <= part) & (part <= edges[1])
        for i, j in np.argwhere(~(fits & np.isfinite(part)))[:1]:
            raise DataError(f"{entry.name}: {part[i, j]:g} at row {i}, input {first + j} is not one of its values")
        first += columns.count


def _labelled(entry: Entry, X: NDArray[np.float64], codes: NDArray[Any], in_file: Sequence[str]) -> xr.Dataset:
    import xarray as xr  # here, for it takes a second that only readers of data need

    names = pixel_names(*entry.image) if entry.image else [n for columns in entry.columns for n in columns.names]
    names = list(names) or list(in_file)
    if len(names) != entry.n_inputs:
        raise DataError(f"{entry.name}: {len(names)} names for {entry.n_inputs} inputs")
    of_each = [columns for columns in entry.columns for _ in range(columns.count)]
    attributes: dict[str, Any] = {
        key: getattr(entry, key) for key in ("name", "title", "source", "licence", "citation")
    }
    if entry.image:
        attributes["image_shape"] = entry.image
    return xr.Dataset(
        {"X": (("row", "input"), X), "target": ("row", np.array([entry.classes[str(code)] for code in codes]))},
        coords={
            "input": names,
            "type": ("input", [columns.type for columns in of_each]),
            "unit": ("input", [columns.unit for columns in of_each]),
        },
        attrs=attributes,
    )


def pixel_names(rows: int, columns: int) -> tuple[str, ...]:
    """Pixels are called after row and column."""
    return tuple(f"r{r}c{c}" for r in range(rows) for c in range(columns))


def pixel_place(name: str) -> tuple[int, int] | None:
    """Row and column of a pixel by its name; None of what is called otherwise."""
    found = re.fullmatch(r"r(\d{1,4})c(\d{1,4})", name)
    return None if found is None else (int(found[1]), int(found[2]))
