"""Fitting: a binary GP classifier by Laplace's approximation, dense or on inducing points (method 1)."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils.validation import check_is_fitted, validate_data

from daskab.errors import DataError, one_line
from daskab.model.expansion import KernelExpansion
from daskab.model.inducing import project
from daskab.model.marginal import Climber
from daskab.model.thresholds import percentile_thresholds
from daskab.model.training import box_edges, check_finite, data_errors, two_classes

Array = NDArray[np.float64]

# The optimiser may move lengthscale and variance this far from the given values, up or down.
OPTIMISE_FACTOR = 1e3

MODE_MISSED = 1e-4
"""At the mode the latent gives the probabilities it was made from; further off than this is told."""


class GPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Binary Gaussian-process classifier with the EQ (RBF) kernel, whose latent mean can be certified.

    The latent mean is :math:`f(x) = k(x, X)\,(t - \pi)`, with labels t in {0, 1} and
    :math:`\pi = \sigma(\hat f)` at the mode of the latent posterior. With ``inducing_points`` it is replaced
    by its projection onto that many places, and all that follows, thresholds included, is the projection's.

    Parameters
    ----------
    lengthscale : float
        Of the kernel, in the units of the inputs; positive.
    variance : float
        Of the kernel; positive.
    optimise : bool
        Choose lengthscale and variance by the Laplace marginal likelihood, from the given values and within a
        factor of 1000 of them.
    inducing_points : int, optional
        m, from 1 to N. Without it the model is dense: its centres are the training points.
    box : tuple (lower, upper) of array_like, float or shape (D,), optional
        The inputs the certificate speaks of. Default: the range of each input over the training points.
    percentile : float
        In percent, from 0 to below 50. The thresholds are this and the opposite percentile of the certified
        model's latent mean over the training points.
    random_state : int, RandomState or None
        Seed of the inducing points' start.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        The two labels, sorted. The second is the one of positive latent mean.
    model_ : KernelExpansion
        What is certified. Its inputs are named after the columns when X is a data frame.
    lengthscale_, variance_ : float
        The kernel's, given or optimised.
    notes_ : tuple of str
        What did not go as asked, such as an optimiser that stalled and what was kept instead; mostly empty.
    n_features_in_ : int
        D.
    feature_names_in_ : ndarray of str, shape (D,)
        Only when X is a data frame with string column names.

    Notes
    -----
    Laplace's approximation: Rasmussen and Williams (2006), algorithms 3.1, 3.2 (line 4) and 5.1, as coded in
    scikit-learn. Percentile thresholds: Smith, Grosse, Backes, Alvarez (2023), section 2.

    Examples
    --------
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> classifier = GPClassifier(lengthscale=0.3).fit(X, X[:, 0] > 0.5)
    >>> classifier.predict([[0.1], [0.9]]).tolist()
    [False, True]
    >>> classifier.model_.n_centres
    20
    """

    classes_: NDArray[Any]
    model_: KernelExpansion
    lengthscale_: float
    variance_: float
    notes_: tuple[str, ...]
    n_features_in_: int

    def __init__(
        self,
        lengthscale: float = 1.0,
        variance: float = 1.0,
        optimise: bool = False,
        inducing_points: int | None = None,
        box: tuple[ArrayLike, ArrayLike] | None = None,
        percentile: float = 5.0,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.lengthscale = lengthscale
        self.variance = variance
        self.optimise = optimise
        self.inducing_points = inducing_points
        self.box = box
        self.percentile = percentile
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to labelled points.

        Parameters
        ----------
        X : array_like, shape (N, D)
            Training points, finite.
        y : array_like, shape (N,)
            Labels, of exactly two values.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If X and y do not fit together, are not finite, hold other than two classes, a parameter is out of
            range, or nothing finite comes of it.

        Warns
        -----
        ConvergenceWarning
            Of each of the ``notes_``.
        """
        with data_errors("X, y"):
            points, labels = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
        check_finite(points)
        self.classes_, target = two_classes(labels)
        self._check_parameters(points.shape[0])
        lower, upper = box_edges(self.box, points)

        centres = points
        weights, mode, notes = self._laplace(points, target)
        if self.inducing_points is not None:
            centres, weights, of_projection = project(
                points,
                mode,
                self.inducing_points,
                self.lengthscale_,
                self.variance_,
                (lower, upper),
                self.random_state,
            )
            notes += of_projection
        latent = self._expansion(centres, weights, lower, upper).latent(points)
        low, high = percentile_thresholds(latent, self.percentile)
        if not low < high:
            raise DataError(f"X: latent mean is {low:g} at nearly every point, which leaves no thresholds")
        self.model_ = self._expansion(centres, weights, lower, upper, low, high)
        self.notes_ = tuple(notes)
        for note in notes:
            warnings.warn(note, ConvergenceWarning, stacklevel=2)
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """Latent mean at points.

        Parameters
        ----------
        X : array_like, shape (N, D)
            Points, finite; they need not lie in the box.

        Returns
        -------
        ndarray, shape (N,)

        Raises
        ------
        DataError
            If X does not fit the model or is not finite.
        """
        check_is_fitted(self)
        with data_errors("X"):
            points = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        check_finite(points)
        return self.model_.latent(points)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class of points: the second where the latent mean is positive.

        Parameters
        ----------
        X : array_like, shape (N, D)

        Returns
        -------
        ndarray, shape (N,)

        Raises
        ------
        DataError
            If X does not fit the model or is not finite.
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(np.intp)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _laplace(self, points: Array, target: NDArray[np.intp]) -> tuple[Array, Array, list[str]]:
        """Dense weights t - pi and latent mode, both (N,), and notes; sets the kernel's two values."""
        reach = np.array([1.0 / OPTIMISE_FACTOR, OPTIMISE_FACTOR])
        amplitude = ConstantKernel(self.variance, self.variance * reach)
        shape = RBF(self.lengthscale, self.lengthscale * reach)
        climber = Climber(points, self.random_state)
        dense = GaussianProcessClassifier(amplitude * shape, optimizer=climber if self.optimise else None)
        with warnings.catch_warnings(), np.errstate(all="ignore"):  # what overflows is found below
            warnings.simplefilter("ignore", ConvergenceWarning)  # of the range's edges, which the climber tells
            try:
                fitted = dense.fit(points, target).base_estimator_
            except (np.linalg.LinAlgError, ValueError) as error:
                if isinstance(error, DataError):
                    raise
                given = f"lengthscale {self.lengthscale:g} and variance {self.variance:g}"
                raise DataError(f"X: nothing comes of {given} ({one_line(error)}); give values that fit it") from None
        self.variance_ = float(fitted.kernel_.k1.constant_value)
        self.lengthscale_ = float(fitted.kernel_.k2.length_scale)
        weights = np.asarray(fitted.y_train_ - fitted.pi_, dtype=np.float64)
        mode = fitted.kernel_(points) @ weights
        missed = float(np.max(np.abs(expit(mode) - fitted.pi_)))
        if not missed <= MODE_MISSED:
            climber.notes.append(
                f"the search for the latent mode stopped short of it: probabilities are off by up to {missed:.2g}; "
                "a smaller variance may help"
            )
        return weights, mode, climber.notes

    def _expansion(
        self,
        centres: Array,
        weights: Array,
        lower: Array,
        upper: Array,
        low: float | None = None,
        high: float | None = None,
    ) -> KernelExpansion:
        return KernelExpansion(
            centres,
            weights,
            self.lengthscale_,
            lower,
            upper,
            variance=self.variance_,
            latent_low=low,
            latent_high=high,
            input_names=getattr(self, "feature_names_in_", ()),
        )

    def _check_parameters(self, n: int) -> None:
        for name in ("lengthscale", "variance"):
            value = getattr(self, name)
            if not 0.0 < value < np.inf:
                raise DataError(f"{name}: {value:g} is not a positive finite number")
        if not 0.0 <= self.percentile < 50.0:
            raise DataError(f"percentile: {self.percentile:g} is not from 0 to below 50")
        m = self.inducing_points
        if m is not None and not (isinstance(m, Integral) and 1 <= m <= n):
            raise DataError(f"inducing_points: {m} is not a whole number from 1 to the {n} training points")
