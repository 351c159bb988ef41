"""Fitting a logistic regression, the baseline that Gaussian-process models are compared with."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_X_y
from threadpoolctl import threadpool_limits

from daskab.errors import DataError
from daskab.model.linear import LinearModel
from daskab.model.thresholds import percentile_thresholds
from daskab.model.training import box_edges, check_finite, data_errors, two_classes

MAX_STEPS = 10_000


def fit_logistic(
    X: ArrayLike,
    y: ArrayLike,
    *,
    C: float = 1.0,
    box: tuple[ArrayLike, ArrayLike] | None = None,
    percentile: float = 5.0,
) -> LinearModel:
    r"""Fit a logistic regression with an L2 penalty; its latent is the log odds.

    Parameters
    ----------
    X : array_like, shape (N, D)
        Training points, finite.
    y : array_like, shape (N,)
        Labels, of exactly two values. The greater is the one of positive latent.
    C : float
        What the penalty :math:`|w|^2 / 2` is divided by, beside the summed log loss; positive.
    box : tuple (lower, upper) of array_like, float or shape (D,), optional
        The inputs the certificate speaks of. Default: the range of each input over the training points.
    percentile : float
        In percent, from 0 to below 50. The thresholds are this and the opposite percentile of the latent over the
        training points.

    Returns
    -------
    LinearModel

    Raises
    ------
    DataError
        If X and y do not fit together, are not finite, hold other than two classes, a parameter is out of range, or
        the optimiser does not converge.

    Notes
    -----
    As coded in scikit-learn, by L-BFGS.

    Examples
    --------
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> model = fit_logistic(X, X[:, 0] > 0.5)
    >>> (model.latent([[0.1], [0.9]]) > 0.0).tolist()
    [False, True]
    """
    if not 0.0 < C < np.inf:
        raise DataError(f"C: {C:g} is not a positive finite number")
    if not 0.0 <= percentile < 50.0:
        raise DataError(f"percentile: {percentile:g} is not from 0 to below 50")
    with data_errors("X, y"):
        points, labels = check_X_y(X, y, dtype=np.float64, ensure_all_finite=False)
    check_finite(points)
    _, target = two_classes(labels)
    lower, upper = box_edges(box, points)
    regression = LogisticRegression(C=C, max_iter=MAX_STEPS)
    # One thread: with more, matrix products may add in another order.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            regression.fit(points, target)
        except ConvergenceWarning:
            raise DataError(
                f"X: the logistic regression does not converge in {MAX_STEPS} steps; scale the inputs to a like size, "
                f"or take a smaller C than {C:g}"
            ) from None
    model = LinearModel(regression.coef_[0], lower, upper, float(regression.intercept_[0]))
    low, high = percentile_thresholds(model.latent(points), percentile)
    if not low < high:
        raise DataError(f"X: latent is {low:g} at nearly every point, which leaves no thresholds")
    return model.replace(latent_low=low, latent_high=high)
