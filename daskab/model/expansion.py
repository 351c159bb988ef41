"""The model that is certified: a kernel expansion on a box, with the two latent thresholds (method 1)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskab.errors import ModelError

Array = NDArray[np.float64]

# Above this, sums of M terms could overflow before their error bound is taken.
LARGEST_WEIGHT = 1e150

# In lengthscales, between a centre or an edge of the box and its lower edge: squares must not overflow.
LARGEST_DISTANCE = 1e100


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    r"""Latent mean of a binary GP classifier with the EQ (RBF) kernel, on a box of inputs.

    .. math:: f(x) = c_0 + \sum_{i=1}^{M} \alpha_i\, v \prod_{j=1}^{D}
              \exp\!\left(-\frac{(x_j - c_{ij})^2}{2 l_j^2}\right)

    Parameters
    ----------
    centres : array_like, shape (M, D)
        Training or inducing points.
    weights : array_like, shape (M,)
        The coefficients alpha.
    lengthscale : float or array_like, shape (D,)
        In the units of each input; positive.
    lower, upper : array_like, shape (D,)
        Edges of the box of inputs the certificate speaks of; ``lower <= upper``.
    variance : float
        Kernel variance v, positive.
    constant : float
        c0; cancels in differences, counts in the thresholds.
    latent_low, latent_high : float, optional
        An input is *confidently* of class 0 where f <= latent_low, of class 1 where f >= latent_high.
        Without them the one-input bounds exist but no number of inputs follows from them.
    input_names : sequence of str, optional
        Default ``x0, x1, ...``.
    accuracy : float, optional
        Share of held-out points classified correctly (latent > 0); reported, not used.

    Raises
    ------
    ModelError
        If a shape does not fit, a value is not finite, an edge or threshold pair is reversed.

    Notes
    -----
    Smith, Grosse, Backes, Alvarez (2023), section 2; daskab/bound/METHOD.md, section 1.
    """

    centres: Array
    weights: Array
    lengthscale: Array
    lower: Array
    upper: Array
    variance: float = 1.0
    constant: float = 0.0
    latent_low: float | None = None
    latent_high: float | None = None
    input_names: tuple[str, ...] = ()
    accuracy: float | None = None
    digest: str = field(init=False, repr=False)

    def __init__(
        self,
        centres: ArrayLike,
        weights: ArrayLike,
        lengthscale: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        variance: float = 1.0,
        constant: float = 0.0,
        latent_low: float | None = None,
        latent_high: float | None = None,
        input_names: Sequence[str] = (),
        accuracy: float | None = None,
    ) -> None:
        c = _numbers("centres", centres, ndim=2)
        m, d = c.shape
        if m == 0 or d == 0:
            raise ModelError(f"centres: shape {c.shape} has no {'rows' if m == 0 else 'columns'}")
        scale = _numbers("lengthscale", lengthscale)
        if scale.ndim == 0:
            scale = np.full(d, float(scale))
        checked: dict[str, Any] = {
            "centres": c,
            "weights": _numbers("weights", weights, shape=(m,)),
            "lengthscale": _positive("lengthscale", _shaped("lengthscale", scale, (d,))),
            "lower": _numbers("lower", lower, shape=(d,)),
            "upper": _numbers("upper", upper, shape=(d,)),
            "variance": float(_positive("variance", _numbers("variance", variance, shape=()))),
            "constant": float(_numbers("constant", constant, shape=())),
            "latent_low": _optional("latent_low", latent_low),
            "latent_high": _optional("latent_high", latent_high),
            "input_names": _names(input_names, d),
            "accuracy": _optional("accuracy", accuracy),
        }
        for name, value in checked.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)
        self._check_box()
        self._check_distances()
        self._check_thresholds()
        with np.errstate(over="ignore"):
            total = float(np.sum(np.abs(self.weights)) * self.variance)
        if not total <= LARGEST_WEIGHT:
            raise ModelError(f"weights: their absolute sum times variance is {total:g}, more than {LARGEST_WEIGHT:g}")
        object.__setattr__(self, "digest", self._digest())

    @property
    def n_centres(self) -> int:
        """M."""
        return int(self.centres.shape[0])

    @property
    def n_inputs(self) -> int:
        """D."""
        return int(self.centres.shape[1])

    @property
    def delta(self) -> float | None:
        """Change of the latent a confident misclassification needs: latent_high - latent_low."""
        if self.latent_low is None or self.latent_high is None:
            return None
        return self.latent_high - self.latent_low

    def latent(self, X: ArrayLike) -> Array:
        """Latent mean at points.

        Parameters
        ----------
        X : array_like, shape (N, D)
            Points, in the model's own units; they need not lie in the box.

        Returns
        -------
        ndarray, shape (N,)

        Raises
        ------
        ModelError
            If X is not (N, D) or not finite.

        Examples
        --------
        >>> model = KernelExpansion([[0.0]], [2.0], 1.0, [0.0], [1.0])
        >>> model.latent([[0.0], [1.0]]).round(3).tolist()
        [2.0, 1.213]
        """
        points = _numbers("X", X, ndim=2)
        if points.shape[1] != self.n_inputs:
            raise ModelError(f"X: has {points.shape[1]} columns, the model {self.n_inputs} inputs")
        out = np.empty(points.shape[0])
        rows = max(1, 2_000_000 // max(1, self.n_centres * self.n_inputs))  # 16 MB of differences at a time
        for start in range(0, points.shape[0], rows):
            part = points[start : start + rows]
            t = np.sum(((part[:, None, :] - self.centres) / self.lengthscale) ** 2, axis=2)
            # One dot product a point: a batch's result must not depend on the batch.
            kernel = self.variance * np.exp(-0.5 * t)
            for k in range(part.shape[0]):
                out[start + k] = self.constant + float(np.sum(kernel[k] * self.weights))
        return out

    def replace(self, **changes: Any) -> KernelExpansion:
        """A copy with some constructor arguments changed, checked like any model."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return KernelExpansion(**kept | changes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The model as the arrays of the neutral ``.npz`` format, absent optional parts left out."""
        scale = self.lengthscale
        out: dict[str, NDArray[Any]] = {
            "centres": self.centres,
            "weights": self.weights,
            "lengthscale": scale[0] if np.all(scale == scale[0]) else scale,
            "variance": np.asarray(self.variance),
            "constant": np.asarray(self.constant),
            "lower": self.lower,
            "upper": self.upper,
            "input_names": np.asarray(self.input_names, dtype=np.str_),
        }
        for name in ("latent_low", "latent_high", "accuracy"):
            value = getattr(self, name)
            if value is not None:
                out[name] = np.asarray(value)
        return out

    def _digest(self) -> str:
        """SHA-256 over what the certificate depends on: every array's name, shape and little-endian bytes."""
        h = hashlib.sha256(b"daskab model 1\n")
        parts = self.arrays()
        parts["lengthscale"] = self.lengthscale
        parts.pop("accuracy", None)
        names = "\0".join(self.input_names)
        parts["input_names"] = np.frombuffer(names.encode(), dtype=np.uint8)
        for name in sorted(parts):
            a = np.ascontiguousarray(parts[name])
            little = a.astype(a.dtype.newbyteorder("<"), copy=False)
            if little.dtype.kind == "f":
                little = little + 0.0  # -0.0 and 0.0 are one number
            h.update(f"{name} {little.dtype.str} {little.shape}\n".encode())
            h.update(little.tobytes())
        return h.hexdigest()

    def _check_box(self) -> None:
        wrong = np.flatnonzero(self.lower > self.upper)
        if wrong.size:
            j = int(wrong[0])
            raise ModelError(
                f"lower: input {self.input_names[j]} (index {j}) has lower {self.lower[j]:g} above upper "
                f"{self.upper[j]:g}"
            )

    def _check_distances(self) -> None:
        with np.errstate(over="ignore"):
            reach = np.maximum(np.abs(self.centres - self.lower).max(axis=0), self.upper - self.lower)
            far = reach / self.lengthscale
        wrong = np.flatnonzero(~(far <= LARGEST_DISTANCE))
        if wrong.size:
            j = int(wrong[0])
            raise ModelError(
                f"lengthscale: input {self.input_names[j]} (index {j}) has {self.lengthscale[j]:g}, but its box and "
                f"centres reach over {reach[j]:g}; more than {LARGEST_DISTANCE:g} lengthscales"
            )

    def _check_thresholds(self) -> None:
        low, high = self.latent_low, self.latent_high
        if (low is None) != (high is None):
            raise ModelError("latent_low, latent_high: one is given without the other; give both or neither")
        if low is not None and high is not None and not low < high:
            raise ModelError(f"latent_low: {low:g} is not below latent_high {high:g}")
        if self.delta == np.inf:
            raise ModelError(f"latent_low, latent_high: {low:g} and {high:g} are too far apart")


def _numbers(name: str, value: object, *, ndim: int | None = None, shape: tuple[int, ...] | None = None) -> Array:
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
        _shaped(name, out, shape)
    bad = np.flatnonzero(~np.isfinite(out))
    if bad.size:
        where = np.unravel_index(int(bad[0]), out.shape) if out.ndim else ()
        at = f" at index {tuple(int(i) for i in where)}" if where else ""
        raise ModelError(f"{name}: {out.flat[bad[0]]}{at} is not a finite number")
    return out


def _shaped(name: str, value: Array, shape: tuple[int, ...]) -> Array:
    if value.shape != shape:
        raise ModelError(f"{name}: has shape {value.shape}, expected {shape}")
    return value


def _positive(name: str, value: Array) -> Array:
    bad = np.flatnonzero(~(value > 0))
    if bad.size:
        raise ModelError(f"{name}: {value.flat[bad[0]]:g} is not positive")
    return value


def _optional(name: str, value: float | None) -> float | None:
    return None if value is None else float(_numbers(name, value, shape=()))


def _names(names: Sequence[str], d: int) -> tuple[str, ...]:
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
