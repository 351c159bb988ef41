"""The model that is certified: a kernel expansion on a box, with the two latent thresholds (method 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    positive,
    shaped,
)
from daskab.model.domain import Domain, Input, restricted
from daskab.model.kernels import EQ, KernelName, checked_kernel, profile
from daskab.model.probes import mismatch

# Above this, sums of M terms could overflow before their error bound is taken.
LARGEST_WEIGHT = 1e150

# In lengthscales, between a centre or an edge of the box and its lower edge: squares must not overflow.
LARGEST_DISTANCE = 1e100

# What the latent is made of. A copy with another of these is another function, to which probes no longer apply.
FUNCTION = {"centres", "weights", "lengthscale", "variance", "constant", "kernel"}

# What the certificate does not depend on, and the digest therefore not either.
UNCERTIFIED = ("accuracy", "probe_points", "probe_latents", "provenance")


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    r"""Latent mean of a binary GP classifier with the EQ (RBF) or a Matern kernel, on a box of inputs.

    .. math:: f(x) = c_0 + \sum_{i=1}^{M} \alpha_i\, v\, k\!\left(r_i\right), \quad
              r_i^2 = \sum_{j=1}^{D} \frac{(x_j - c_{ij})^2}{l_j^2}, \quad k(r) = e^{-r^2 / 2} \text{ for EQ}

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
    probe_points : array_like, shape (P, D), optional
        Points at which the library the model was imported from was asked.
    probe_latents : array_like, shape (P,), optional
        The latent mean it gave there; this model's must agree.
    provenance : str, optional
        What the model was made of, in words or JSON; kept, not used.
    domain : mapping of str to array_like, optional
        What an attacker can do beside the box, as the arrays of the neutral format; told in words to `restrict`.
    kernel : {"eq", "exponential", "matern32", "matern52"}
        Default EQ. The others are Matern 1/2, 3/2 and 5/2 (`daskab.model.kernels`), bounded as sums of EQs.

    Raises
    ------
    ModelError
        If a shape does not fit, a value is not finite, an edge or threshold pair is reversed, or a probe disagrees.

    Notes
    -----
    The probes are no part of the digest: they witness the function, and do not change it. So a model has the digest,
    and finds the runs, of the same numbers given by hand.

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
    probe_points: Array | None = None
    probe_latents: Array | None = None
    provenance: str | None = None
    kernel: KernelName = EQ
    domain: Domain = field(kw_only=True)
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
        probe_points: ArrayLike | None = None,
        probe_latents: ArrayLike | None = None,
        provenance: str | None = None,
        domain: Domain | Mapping[str, Any] | None = None,
        kernel: str = EQ,
    ) -> None:
        c = numbers("centres", centres, ndim=2)
        m, d = c.shape
        if m == 0 or d == 0:
            raise ModelError(f"centres: shape {c.shape} has no {'rows' if m == 0 else 'columns'}")
        scale = numbers("lengthscale", lengthscale)
        if scale.ndim == 0:
            scale = np.full(d, float(scale))
        checked: dict[str, Any] = {
            "centres": c,
            "weights": numbers("weights", weights, shape=(m,)),
            "lengthscale": positive("lengthscale", shaped("lengthscale", scale, (d,))),
            "lower": numbers("lower", lower, shape=(d,)),
            "upper": numbers("upper", upper, shape=(d,)),
            "variance": float(positive("variance", numbers("variance", variance, shape=()))),
            "constant": float(numbers("constant", constant, shape=())),
            "latent_low": optional("latent_low", latent_low),
            "latent_high": optional("latent_high", latent_high),
            "input_names": names(input_names, d),
            "accuracy": optional("accuracy", accuracy),
            **_probes(probe_points, probe_latents, d),
            "provenance": provenance,
            "kernel": checked_kernel(kernel),
        }
        freeze(self, checked)
        check_box(self.lower, self.upper, self.input_names)
        self._check_distances()
        given = domain.arrays() if isinstance(domain, Domain) else domain or {}
        object.__setattr__(self, "domain", Domain.read(given, self.lower, self.upper, self.input_names))
        check_thresholds(self.latent_low, self.latent_high)
        with np.errstate(over="ignore"):
            total = float(np.sum(np.abs(self.weights)) * self.variance)
        if not total <= LARGEST_WEIGHT:
            raise ModelError(f"weights: their absolute sum times variance is {total:g}, more than {LARGEST_WEIGHT:g}")
        object.__setattr__(self, "digest", self._digest())
        self._check_probes()

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

    @property
    def largest_latent(self) -> float:
        """|c0| + v sum |alpha|, which no latent mean exceeds in size: rounding is in proportion to it."""
        return abs(self.constant) + self.variance * float(np.sum(np.abs(self.weights)))

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
        points = points_of("X", X, self.n_inputs)
        out = np.empty(points.shape[0])
        rows = max(1, 2_000_000 // max(1, self.n_centres * self.n_inputs))  # 16 MB of differences at a time
        for start in range(0, points.shape[0], rows):
            part = points[start : start + rows]
            t = np.sum(((part[:, None, :] - self.centres) / self.lengthscale) ** 2, axis=2)
            # One dot product a point: a batch's result must not depend on the batch.
            kernel = self.variance * profile(self.kernel, 0.5 * t)
            for k in range(part.shape[0]):
                out[start + k] = self.constant + float(np.sum(kernel[k] * self.weights))
        return out

    def replace(self, **changes: Any) -> KernelExpansion:
        """A copy with some constructor arguments changed, checked like any model.

        Probes and provenance are left out where the latent may be another: they are about the function it was.
        """
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        if not FUNCTION.isdisjoint(changes):
            kept |= {"probe_points": None, "probe_latents": None, "provenance": None}
        return KernelExpansion(**kept | changes)

    def restrict(
        self,
        *,
        frozen: Iterable[Input] = (),
        max_change: Mapping[Any, float] | None = None,
        values: Mapping[Any, ArrayLike] | None = None,
        integers: Iterable[Input] = (),
        groups: Mapping[str, Iterable[Input]] | None = None,
        categories: Mapping[str, Iterable[Input]] | None = None,
        at_most_one: bool = False,
    ) -> KernelExpansion:
        """The model with what its inputs can be, and an attacker do, told in words; what was told before is forgotten.

        Parameters
        ----------
        frozen : inputs, by name or place, that an attacker cannot change
        max_change : for some inputs the most they may change, in their units
        values : for some inputs the only values they have, in their units
        integers : inputs that are whole numbers
        groups : names, and for each the inputs that count as one change together: the colours of a pixel, a patch
        categories : names, and for each the columns of a one-hot code, at their upper edge or their lower one
        at_most_one : whether none of a category's columns may be at its upper edge, as where the first was dropped

        Raises
        ------
        ModelError
            If an input does not exist, a value lies outside its box, or an input is in two groups.

        Examples
        --------
        >>> model = KernelExpansion([[0.0, 0.0]], [1.0], 1.0, [0, 0], [1, 1], input_names=["age", "rate"])
        >>> model.restrict(frozen=["age"]).domain.frozen.tolist()
        [True, False]
        """
        arrays = restricted(
            self.input_names,
            self.lower,
            self.upper,
            frozen=frozen,
            max_change=max_change or {},
            values=values or {},
            integers=integers,
            groups=groups or {},
            categories=categories or {},
            at_most_one=at_most_one,
        )
        return self.replace(domain=arrays)

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
            **self.domain.arrays(),
        }
        if self.kernel != EQ:
            out["kernel"] = np.asarray(self.kernel)
        for name in ("latent_low", "latent_high", *UNCERTIFIED):
            value = getattr(self, name)
            if value is not None:
                out[name] = np.asarray(value)
        return out

    def _digest(self) -> str:
        """SHA-256 over what the certificate depends on."""
        parts = self.arrays() | {"lengthscale": self.lengthscale}
        for name in UNCERTIFIED:
            parts.pop(name, None)
        return digest_of("daskab model 1", parts, self.input_names)

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

    def _check_probes(self) -> None:
        if self.probe_points is None or self.probe_latents is None:
            return
        wrong = mismatch(self.latent, self.largest_latent, self.probe_points, self.probe_latents)
        if wrong:
            raise ModelError(f"{wrong}; the numbers were changed after the import: import the model again")


def _probes(points: ArrayLike | None, latents: ArrayLike | None, d: int) -> dict[str, Array | None]:
    if points is None and latents is None:
        return {"probe_points": None, "probe_latents": None}
    if points is None or latents is None:
        raise ModelError("probe_points, probe_latents: one is given without the other; give both or neither")
    at = points_of("probe_points", points, d)
    return {"probe_points": at, "probe_latents": numbers("probe_latents", latents, shape=(at.shape[0],))}
