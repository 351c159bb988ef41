"""A linear classifier on a box, with the two latent thresholds: what Gaussian-process models are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskab.errors import ModelError
from daskab.model.checked import (
    Array,
    check_box,
    check_thresholds,
    digest_of,
    freeze,
    names,
    numbers,
    optional,
    points_of,
)

# Above this a latent could overflow where it is evaluated.
LARGEST_LATENT = 1e150

UNCERTIFIED = ("accuracy", "provenance")
"""What the certificate does not depend on, and the digest therefore not either."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    r"""A latent that is linear in the inputs, on a box of them.

    .. math:: f(x) = b + \sum_{j=1}^{D} w_j x_j

    Parameters
    ----------
    coefficients : array_like, shape (D,)
        The w of the formula.
    lower, upper : array_like, shape (D,)
        Edges of the box of inputs the certificate speaks of; ``lower <= upper``.
    intercept : float
        The b of it.
    latent_low, latent_high : float, optional
        An input is *confidently* of class 0 where f <= latent_low, of class 1 where f >= latent_high.
    input_names : sequence of str, optional
        Default ``x0, x1, ...``.
    accuracy : float, optional
        Share of held-out points classified correctly (latent > 0); reported, not used.
    provenance : str, optional
        What the model was made of, in words or JSON; kept, not used.

    Raises
    ------
    ModelError
        If a shape does not fit, a value is not finite, or an edge or threshold pair is reversed.

    Notes
    -----
    The formula is meant in real numbers; the certificate is about that, not about how it is rounded. See
    daskab/linear/METHOD.md.

    Examples
    --------
    >>> LinearModel([2.0, -1.0], [0, 0], [1, 1], intercept=0.5).latent([[1.0, 0.5]]).tolist()
    [2.0]
    """

    coefficients: Array
    lower: Array
    upper: Array
    intercept: float = 0.0
    latent_low: float | None = None
    latent_high: float | None = None
    input_names: tuple[str, ...] = ()
    accuracy: float | None = None
    provenance: str | None = None
    digest: str = field(init=False, repr=False)

    def __init__(
        self,
        coefficients: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        intercept: float = 0.0,
        latent_low: float | None = None,
        latent_high: float | None = None,
        input_names: Sequence[str] = (),
        accuracy: float | None = None,
        provenance: str | None = None,
    ) -> None:
        w = numbers("coefficients", coefficients, ndim=1)
        if w.size == 0:
            raise ModelError("coefficients: there are none")
        checked: dict[str, Any] = {
            "coefficients": w,
            "lower": numbers("lower", lower, shape=w.shape),
            "upper": numbers("upper", upper, shape=w.shape),
            "intercept": float(numbers("intercept", intercept, shape=())),
            "latent_low": optional("latent_low", latent_low),
            "latent_high": optional("latent_high", latent_high),
            "input_names": names(input_names, w.size),
            "accuracy": optional("accuracy", accuracy),
            "provenance": provenance,
        }
        freeze(self, checked)
        check_box(self.lower, self.upper, self.input_names)
        check_thresholds(self.latent_low, self.latent_high)
        with np.errstate(over="ignore", invalid="ignore"):
            reach = float(np.sum(np.abs(w) * np.maximum(np.abs(self.lower), np.abs(self.upper)))) + abs(self.intercept)
        if not reach <= LARGEST_LATENT:
            raise ModelError(f"coefficients: the latent may be as large as {reach:g}, more than {LARGEST_LATENT:g}")
        object.__setattr__(self, "digest", self._digest())

    @property
    def n_inputs(self) -> int:
        """D."""
        return int(self.coefficients.size)

    @property
    def delta(self) -> float | None:
        """Change of the latent a confident misclassification needs: latent_high - latent_low."""
        if self.latent_low is None or self.latent_high is None:
            return None
        return self.latent_high - self.latent_low

    def latent(self, X: ArrayLike) -> Array:
        """Latent at points.

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
        """
        points = points_of("X", X, self.n_inputs)
        # A sum a point, no matrix product: a batch's result must not depend on the batch.
        latent: Array = np.sum(points * self.coefficients, axis=1) + self.intercept
        return latent

    def replace(self, **changes: Any) -> LinearModel:
        """A copy with some constructor arguments changed, checked like any model."""
        return LinearModel(**{f.name: getattr(self, f.name) for f in fields(self) if f.init} | changes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The model as the arrays of its ``.npz`` file, absent optional parts left out."""
        out: dict[str, NDArray[Any]] = {
            "coefficients": self.coefficients,
            "intercept": np.asarray(self.intercept),
            "lower": self.lower,
            "upper": self.upper,
            "input_names": np.asarray(self.input_names, dtype=np.str_),
        }
        for name in ("latent_low", "latent_high", *UNCERTIFIED):
            value = getattr(self, name)
            if value is not None:
                out[name] = np.asarray(value)
        return out

    def _digest(self) -> str:
        """SHA-256 over what the certificate depends on."""
        parts = {name: array for name, array in self.arrays().items() if name not in UNCERTIFIED}
        return digest_of("daskab linear model 1", parts, self.input_names)
