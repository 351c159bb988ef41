"""Fewer centres for a fitted model: projection of the latent mode onto inducing points (method 1).

The certificate's cost grows with the number of centres M, and its tightness falls. This module replaces the N
training points of a dense model by m places Z, with weights by the deterministic training conditional (DTC)
and Z where the latent mode is most likely under it.

With U = K_XZ (N, m), A = K_ZZ (m, m), noise s, Sigma = s A + U'U and latent mode f (N,):

    weights                  w     = Sigma^-1 U'f
    covariance               S     = U A^-1 U' + s I
    quadratic form           f'S^-1 f = |f - U w|^2 / s + w'A w
    determinant              |S|   = s^(N-m) |Sigma| / |A|
    log N(f | 0, S)          = -(f'S^-1 f + log|S| + N log 2 pi) / 2

Sigma is never formed: its square root is the triangle R of the QR decomposition of [U; sqrt(s) chol(A)'],
which keeps the digits that U'U would lose at long lengthscales. No array is larger than N x max(m, D).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from daskab.errors import DataError, one_line

Array = NDArray[np.float64]

# Added to the diagonal of K_ZZ, relative to the variance: coinciding points stay solvable.
JITTER = 1e-8
# The noise, relative to the mean square of the mode: where it starts and how far it may go. A mode met to one
# part in a hundred is met: without that floor the climb goes on for digits that change no certificate.
NOISE_START = 1e-2
NOISE_BOUNDS = (1e-4, 10.0)
KMEANS_STARTS = 10
OTHER_STARTS = 3
MAX_STEPS = 500
LINE_SEARCH_FAILED = 2  # scipy's status; 1 is the step limit
TOLERANCE = 1e-6  # of the log likelihood a training point, between steps


def project(
    X: ArrayLike,
    latent_mode: ArrayLike,
    n_points: int,
    lengthscale: float | ArrayLike,
    variance: float,
    box: tuple[ArrayLike, ArrayLike],
    random_state: int | np.random.RandomState | None = 0,
) -> tuple[Array, Array, list[str]]:
    r"""Project a latent mode onto few inducing points, and find the places for them.

    The places Z and the noise s maximise the likelihood of the mode under the DTC,
    :math:`\log N(\hat f \mid 0, K_{XZ} K_{ZZ}^{-1} K_{ZX} + sI)`, by L-BFGS-B from k-means centres. The
    result is :math:`f(x) = k(x, Z)\,w`, :math:`w = (s K_{ZZ} + K_{ZX} K_{XZ})^{-1} K_{ZX} \hat f`. A step
    costs O(N m^2 + N m D); there are at most ``MAX_STEPS``. Running out of them is no failure: places
    short of the maximum make another model, and that one is certified as it stands. If the optimiser fails, it is
    begun again from ``OTHER_STARTS`` random choices of training points, and the best places seen are kept.

    Parameters
    ----------
    X : array_like, shape (N, D)
        Training points.
    latent_mode : array_like, shape (N,)
        Latent values to project, one for each training point.
    n_points : int
        m, from 1 to N.
    lengthscale : float or array_like, shape (D,)
        Of the EQ (RBF) kernel, in the units of each input; positive.
    variance : float
        Kernel variance, positive.
    box : tuple (lower, upper) of array_like, float or shape (D,)
        Z stays inside; in the units of each input.
    random_state : int, RandomState or None
        Seed of k-means, and of those choices.

    Returns
    -------
    Z : ndarray, shape (m, D)
        Inducing points, in the units of the inputs.
    weights : ndarray, shape (m,)
    notes : list of str
        What happened where the optimiser failed, and whether training points are too few to be different.

    Raises
    ------
    DataError
        If ``n_points`` is not between 1 and N, or the mode is not N finite values, not all of them zero.

    Notes
    -----
    DTC: Quinonero-Candela and Rasmussen (2005), "A unifying view of sparse approximate Gaussian process
    regression", section 5, with the latent mode as the targets; daskab/bound/METHOD.md, section 1.

    Examples
    --------
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> Z, weights, notes = project(X, np.sin(6.0 * X[:, 0]), 4, 0.5, 1.0, (0.0, 1.0))
    >>> Z.shape, weights.shape, notes
    ((4, 1), (4,), [])
    """
    scale = np.asarray(lengthscale, dtype=np.float64)
    points = np.asarray(X, dtype=np.float64) / scale
    f = np.asarray(latent_mode, dtype=np.float64)
    n, d = points.shape
    if not 1 <= n_points <= n:
        raise DataError(f"n_points: {n_points} is not from 1 to the {n} training points")
    if f.shape != (n,):
        raise DataError(f"latent_mode: has shape {f.shape}, expected ({n},)")
    power = float(np.mean(f**2))
    if not 0.0 < power < math.inf:
        raise DataError(f"latent_mode: its mean square {power:g} is not a positive finite number")
    lower, upper = (np.broadcast_to(np.asarray(edge, dtype=np.float64) / scale, (d,)) for edge in box)

    # One thread: with three or more, k-means adds partial sums in whatever order the threads finish.
    with threadpool_limits(limits=1):
        kmeans = KMeans(n_points, n_init=KMEANS_STARTS, random_state=random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # that points are alike is said below
            kmeans.fit(points)
        climb = _Climb(points, f, power, variance, lower, upper)
        notes = climb.with_fallback(kmeans.cluster_centers_, random_state)
        if (different := len(np.unique(points, axis=0))) < n_points:
            notes.append(f"inducing points: {n_points}, but only {different} training points are different")
        Z, noise = climb.best_places, climb.best_noise
        # Back in the inputs' units a rounded place may stand an ulp outside the box.
        places = np.clip(Z * scale, *(np.asarray(edge, dtype=np.float64) for edge in box))
        return places, dtc_weights(points, f, places / scale, noise, variance), notes


def dtc_weights(X: Array, f: Array, Z: Array, noise: float, variance: float) -> Array:
    """Weights (m,) of the DTC mean at given places Z (m, D); all places in units of the lengthscale."""
    return _Factors.of(X, f, Z, noise, variance).weights


def log_likelihood(X: Array, f: Array, Z: Array, noise: float, variance: float) -> tuple[float, Array, float]:
    r"""log N(f | 0, S) and its gradient; all places in units of the lengthscale.

    Parameters
    ----------
    X : ndarray, shape (N, D)
    f : ndarray, shape (N,)
    Z : ndarray, shape (m, D)
    noise : float
        s, positive.
    variance : float

    Returns
    -------
    value : float
    gradient_z : ndarray, shape (m, D)
    gradient_log_noise : float
        With respect to log s.

    Notes
    -----
    With a = S^-1 f = (f - U w) / s the derivatives are

    .. math:: \partial/\partial U = a w' - U \Sigma^{-1}, \quad
              \partial/\partial A = (A^{-1} - s \Sigma^{-1} - w w') / 2, \quad
              \partial/\partial s = (a'a - (N - m + s\,\mathrm{tr}(\Sigma^{-1} A)) / s) / 2,

    which follow from S by the Woodbury identity; the chain to Z is that of the EQ kernel,
    dk(x, z)/dz = k(x, z)(x - z).
    """
    n, m = X.shape[0], Z.shape[0]
    p = _Factors.of(X, f, Z, noise, variance)
    residual = f - p.cross @ p.weights
    a = residual / noise
    quadratic = float(residual @ a + p.weights @ p.among @ p.weights)
    logdet = (n - m) * math.log(noise) + 2.0 * float(
        np.sum(np.log(np.abs(np.diag(p.root)))) - np.sum(np.log(np.diag(p.chol)))
    )
    value = -0.5 * (quadratic + logdet + n * math.log(2.0 * math.pi))

    root_inverse = solve_triangular(p.root, np.eye(m))
    sigma_inverse = root_inverse @ root_inverse.T
    d_cross = np.outer(a, p.weights) - p.basis @ root_inverse.T
    d_among = 0.5 * (cho_solve((p.chol, True), np.eye(m)) - noise * sigma_inverse - np.outer(p.weights, p.weights))
    trace = n - m + noise * float(np.sum(sigma_inverse * p.among))
    d_log_noise = 0.5 * (noise * float(a @ a) - trace)

    pull = d_cross * p.cross  # (N, m)
    push = 2.0 * d_among * p.among  # (m, m); the diagonal, jitter included, meets z - z = 0
    gradient = pull.T @ X - pull.sum(axis=0)[:, None] * Z + push @ Z - push.sum(axis=1)[:, None] * Z
    return value, gradient, d_log_noise


@dataclass(frozen=True)
class _Factors:
    """What weights and likelihood share, in the module docstring's names: U, A, chol(A), Q's top, R, w."""

    cross: Array
    among: Array
    chol: Array
    basis: Array
    root: Array
    weights: Array

    @classmethod
    def of(cls, X: Array, f: Array, Z: Array, noise: float, variance: float) -> _Factors:
        n = X.shape[0]
        # Differences, not |x|^2 - 2 x.z + |z|^2: data far from the origin keeps its digits.
        cross = variance * np.exp(-0.5 * cdist(X, Z, "sqeuclidean"))
        among = variance * (np.exp(-0.5 * cdist(Z, Z, "sqeuclidean")) + JITTER * np.eye(Z.shape[0]))
        chol = cholesky(among, lower=True)
        basis, root = np.linalg.qr(np.vstack([cross, math.sqrt(noise) * chol.T]))
        weights = solve_triangular(root, basis[:n].T @ f)
        return cls(cross, among, chol, basis[:n], root, weights)


class _Climb:
    """Climbs of the likelihood by L-BFGS-B, and the best that any of them saw.

    Attributes
    ----------
    best_places : ndarray, shape (m, D)
    best_noise : float
    best_value : float
        The log likelihood of those; -inf before the first that is finite.
    """

    def __init__(self, X: Array, f: Array, power: float, variance: float, lower: Array, upper: Array) -> None:
        self.X, self.f, self.power, self.variance, self.lower, self.upper = X, f, power, variance, lower, upper
        # The climb's own coordinates are shares of the box: its steps then do not depend on anyone's units.
        self.width = np.where(upper > lower, upper - lower, 1.0)
        self.best_value = -math.inf

    def with_fallback(self, centres: Array, random_state: int | np.random.RandomState | None) -> list[str]:
        """Climb from k-means centres (m, D), and if that fails from elsewhere; notes of what happened."""
        start = np.clip(np.asarray(centres, dtype=np.float64), self.lower, self.upper)
        self.best_places, self.best_noise = start, NOISE_START * self.power
        trouble, begun, reached = *self.climb(start), self.best_value
        if not trouble:
            return []
        rng, others = check_random_state(random_state), 0
        for _ in range(OTHER_STARTS):
            rows = rng.choice(len(self.X), len(start), replace=False)
            others += not self.climb(np.clip(self.X[rows], self.lower, self.upper))[0]
        kept = "the k-means centres" if self.best_value == -math.inf else "the best places seen"
        return [
            f"inducing points: the optimiser stalled ({trouble}); of {OTHER_STARTS} other starts {others} came to an "
            f"end; kept {kept}, log likelihood {self.best_value:.6g} against {reached:.6g} of the first try and "
            f"{begun:.6g} at the k-means centres"
        ]

    def climb(self, start: Array) -> tuple[str, float]:
        """What went wrong, or nothing, on the way from places (m, D), and the log likelihood there."""
        n, (m, d) = self.X.shape[0], start.shape
        begun = -math.inf

        def unpacked(theta: Array) -> tuple[Array, float]:
            return self.lower + self.width * theta[:-1].reshape(m, d), math.exp(theta[-1])

        def objective(theta: Array) -> tuple[float, Array]:
            nonlocal begun
            places, noise = unpacked(theta)
            value, d_z, d_log_noise = log_likelihood(self.X, self.f, places, noise, self.variance)
            gradient = np.append((d_z * self.width).ravel(), d_log_noise)
            if not (math.isfinite(value) and np.all(np.isfinite(gradient))):
                raise FloatingPointError(f"log likelihood {value:g} or its gradient is not finite")
            begun = value if begun == -math.inf else begun
            if value > self.best_value:
                self.best_places, self.best_noise, self.best_value = places, noise, value
            return -value / n, -gradient / n

        edges = [(0.0, float(free)) for free in np.tile(self.upper > self.lower, m)]
        edges.append((math.log(NOISE_BOUNDS[0] * self.power), math.log(NOISE_BOUNDS[1] * self.power)))
        shares = ((start - self.lower) / self.width).ravel()
        try:
            result = minimize(
                objective,
                np.append(shares, math.log(NOISE_START * self.power)),
                jac=True,
                method="L-BFGS-B",
                bounds=edges,
                # The gradient's size says little over inputs of such different weight: stop by the value alone.
                options={"maxiter": MAX_STEPS, "maxfun": 2 * MAX_STEPS, "ftol": TOLERANCE, "gtol": 0.0},
            )
        except (np.linalg.LinAlgError, FloatingPointError, ValueError) as error:  # ValueError: scipy met a NaN
            return one_line(error), begun
        return (one_line(RuntimeError(result.message)) if result.status == LINE_SEARCH_FAILED else ""), begun
