"""What any model is made of: arrays of finite numbers and names, checked, each complaint in one line; its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskab.errors import ModelError

Array = NDArray[np.float64]


def numbers(name: str, value: object, *, ndim: int | None = None, shape: tuple[int, ...] | None = None) -> Array:
    """A finite float64 array of its own, of the given number of dimensions or shape; ModelError if it is none."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name}: not an array of numbers ({error})") from None
    if given.dtype.kind not in "fiub":
        raise ModelError(f"{name}: holds {given.dtype} values, expected real numbers")
    with np.errstate(over="ignore"):  # from long double
        out = np.array(given, dtype=np.float64, order="C")
    if ndim is not None and out.ndim != ndim:
        raise ModelError(f"{name}: has shape {out.shape}, expected {ndim} dimensions")
    if shape is not None:
        shaped(name, out, shape)
    bad = np.flatnonzero(~np.isfinite(out))
    if bad.size:
        where = np.unravel_index(int(bad[0]), out.shape) if out.ndim else ()
        at = f" at index {tuple(int(i) for i in where)}" if where else ""
        raise ModelError(f"{name}: {out.flat[bad[0]]}{at} is not a finite number")
    return out


def shaped(name: str, value: Array, shape: tuple[int, ...]) -> Array:
    """The value, if it has this shape."""
    if value.shape != shape:
        raise ModelError(f"{name}: has shape {value.shape}, expected {shape}")
    return value


def positive(name: str, value: Array) -> Array:
    """The value, if all of it is above zero."""
    bad = np.flatnonzero(~(value > 0))
    if bad.size:
        raise ModelError(f"{name}: {value.flat[bad[0]]:g} is not positive")
    return value


def optional(name: str, value: float | None) -> float | None:
    """A finite number, or None."""
    return None if value is None else float(numbers(name, value, shape=()))


def names(names: Sequence[str], d: int) -> tuple[str, ...]:
    """Names of D inputs, ``x0, x1, ...`` where none are given; different and printable."""
    given = tuple(str(n) for n in names) if len(names) else tuple(f"x{j}" for j in range(d))
    if len(given) != d:
        raise ModelError(f"input_names: {len(given)} names for {d} inputs")
    if len(set(given)) != d:
        twice = next(n for n in given if given.count(n) > 1)
        raise ModelError(f"input_names: {twice!r} stands for more than one input")
    if not all(n.isprintable() for n in given):
        wrong = next(n for n in given if not n.isprintable())
        raise ModelError(f"input_names: {wrong!r} has characters that cannot be printed")
    return given


def points_of(name: str, points: Any, d: int) -> Array:
    """Points (N, d) as a new float64 array; ModelError unless they are that, and finite."""
    given = numbers(name, points, ndim=2)
    if given.shape[1] != d:
        raise ModelError(f"{name}: has {given.shape[1]} columns, the model {d} inputs")
    return given


def freeze(model: object, parts: Mapping[str, Any]) -> None:
    """Set the parts of a frozen dataclass; arrays can then no longer be written to."""
    for name, value in parts.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(model, name, value)


def check_box(lower: Array, upper: Array, input_names: Sequence[str]) -> None:
    """ModelError unless every input's lower edge (D,) is at most its upper."""
    wrong = np.flatnonzero(lower > upper)
    if wrong.size:
        j = int(wrong[0])
        raise ModelError(f"lower: input {input_names[j]} (index {j}) has lower {lower[j]:g} above upper {upper[j]:g}")


def check_thresholds(low: float | None, high: float | None) -> None:
    """ModelError unless there are both, in order and a finite distance apart, or neither."""
    if (low is None) != (high is None):
        raise ModelError("latent_low, latent_high: one is given without the other; give both or neither")
    if low is None or high is None:
        return
    if not low < high:
        raise ModelError(f"latent_low: {low:g} is not below latent_high {high:g}")
    if high - low == np.inf:
        raise ModelError(f"latent_low, latent_high: {low:g} and {high:g} are too far apart")


def digest_of(title: str, arrays: Mapping[str, NDArray[Any]], input_names: Sequence[str]) -> str:
    """SHA-256 over a title, every array's name, shape and little-endian bytes, and the inputs' names."""
    h = hashlib.sha256(f"{title}\n".encode())
    parts = {**arrays, "input_names": np.frombuffer("\0".join(input_names).encode(), dtype=np.uint8)}
    for name in sorted(parts):
        a = np.ascontiguousarray(parts[name])
        little = a.astype(a.dtype.newbyteorder("<"), copy=False)
        if little.dtype.kind == "f":
            little = little + 0.0  # -0.0 and 0.0 are one number
        h.update(f"{name} {little.dtype.str} {little.shape}\n".encode())
        h.update(little.tobytes())
    return h.hexdigest()
