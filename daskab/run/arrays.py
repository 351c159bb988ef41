"""Groups and arrays of zarr as the evidence store has them: missing is not zero, and every chunk has a checksum."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import ZstdCodec

from daskab.errors import IntegrityError, one_line
from daskab.files import storage_options

Array = NDArray[Any]

WRITE_ALL = {"write_empty_chunks": True}  # not kept in the store: given each time an array is opened


def open_group(path: Path, mode: Literal["a", "r+"]) -> Any:
    """Open a group; metadata that zarr makes nothing of are an IntegrityError."""
    try:
        # What a seal gathered may be out of date by now: each array's own metadata is what counts.
        return zarr.open_group(
            str(path), mode=mode, use_consolidated=False, zarr_format=3, storage_options=storage_options(path)
        )
    except (LookupError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise IntegrityError(f"{path}: cannot be opened ({one_line(error)})") from None


def lay_out(
    group: Any,
    name: str,
    dims: tuple[str, ...],
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: str = "float64",
) -> None:
    """An array without content, unless it is there; what is missing of it is no number, or 0 of a status."""
    if is_laid_out(group, name, shape, chunks):
        return
    group.create_array(
        name,
        shape=shape,
        chunks=chunks,
        dtype=dtype,
        fill_value=np.nan if dtype == "float64" else 0,
        compressors=ZstdCodec(level=1, checksum=True),
        dimension_names=dims,
        config=WRITE_ALL,
        overwrite=True,
    )


def is_laid_out(group: Any, name: str, shape: tuple[int, ...], chunks: tuple[int, ...]) -> bool:
    """Whether an array is there as it would be laid out now."""
    try:
        array = group[name]
        return bool(array.shape == shape and array.chunks == chunks)
    except (LookupError, ValueError, TypeError, AttributeError):
        return False


def write_array(
    group: Any, name: str, dims: tuple[str, ...], values: Array, chunks: tuple[int, ...] | None = None
) -> None:
    """An array with its content, in the place of one that may be there."""
    array = group.create_array(
        name,
        shape=values.shape,
        chunks=chunks or tuple(max(1, n) for n in values.shape),
        dtype=str if values.dtype == object else values.dtype,
        # A lost chunk of open nodes that read as zeros would be a bound of zero.
        fill_value=np.nan if values.dtype.kind == "f" else None,
        compressors=ZstdCodec(level=1, checksum=True),
        dimension_names=dims,
        config=WRITE_ALL,
        overwrite=True,
    )
    array[...] = values
