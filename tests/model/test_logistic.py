"""Fitting the logistic regression: scikit-learn's numbers, thresholds of its own latent, complaints in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from daskab import DataError, certify_linear, fit_logistic
from daskab.datasets import drop_constant, load_digits, rescale, split

X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
Y = np.array([0, 0, 1, 1])


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_it_is_the_regression_of_scikit_learn(C: float) -> None:
    train, test = split(rescale(drop_constant(load_digits((3, 5)), 0.5), 0.0, 16.0), 150, seed=0)
    model = fit_logistic(train.X, train.y, C=C, box=(0.0, 1.0), percentile=10.0)
    expected = LogisticRegression(C=C).fit(train.X, train.y).decision_function(test.X)
    assert np.allclose(model.latent(test.X), expected, atol=1e-3)
    assert np.mean((model.latent(test.X) > 0.0) == test.y) > 0.95
    assert [model.latent_low, model.latent_high] == np.percentile(model.latent(train.X), [10.0, 90.0]).tolist()
    assert (model.lower.max(), model.upper.min()) == (0.0, 1.0)
    certificate = certify_linear(model)
    assert certificate.exact
    assert 1 < certificate.inputs_required < train.X.shape[1]
    assert fit_logistic(train.X, train.y, C=C, box=(0.0, 1.0), percentile=10.0).digest == model.digest


def test_the_box_is_the_points_own_by_default() -> None:
    model = fit_logistic(X + 2.0, ["b", "b", "a", "a"])
    assert (model.lower.tolist(), model.upper.tolist()) == ([2.0, 2.0], [3.0, 3.0])
    assert model.coefficients[1] < 0.0  # b is the greater label


@pytest.mark.parametrize(
    ("points", "labels", "options", "message"),
    [
        (X, Y, {"C": 0.0}, "C: 0 is not a positive finite number"),
        (X, Y, {"C": np.nan}, "C: nan is not a positive finite number"),
        (X, Y, {"percentile": 50.0}, "percentile: 50 is not from 0 to below 50"),
        (X, Y, {"box": (1.0, 0.0)}, "box: input 0 has edges 1 and 0, not finite lower <= upper"),
        (X, [1, 1, 1, 1], {}, "y: holds 1 class, 1; expected 2"),
        (X, [0, 1, 2, 0], {}, "y: Only binary classification is supported. The type of the target is multiclass."),
        (np.where(X > 0.0, np.inf, X), Y, {}, "X: inf at row 1, column 0; NaN and inf are not accepted"),
        (X[:3], Y, {}, "X, y: Found input variables with inconsistent numbers of samples: [3, 4]"),
        (np.ones((4, 2)), Y, {}, "X: latent is "),
    ],
)
def test_errors_name_the_field_and_the_value(
    points: np.ndarray, labels: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError) as caught:
        fit_logistic(points, labels, **options)
    assert str(caught.value).startswith(message)


def test_what_does_not_converge_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskab.model.logistic.MAX_STEPS", 2)
    with pytest.raises(DataError, match=r"does not converge in 2 steps; scale the inputs .* smaller C than 1e"):
        fit_logistic(X * [1.0, 1e4], [0, 1, 1, 1], C=1e6)
