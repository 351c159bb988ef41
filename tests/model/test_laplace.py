"""The classifier against scikit-learn's own latent mean, its estimator checks and its error messages."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from daskab.datasets import drop_constant, load_digits, rescale, split
from daskab.errors import DataError
from daskab.model.laplace import GPClassifier


@pytest.fixture(scope="module")
def digits():
    return split(rescale(drop_constant(load_digits((3, 5)), 0.5), 0.0, 16.0), 150, seed=0)


def reference(lengthscale, variance, train):
    kernel = ConstantKernel(variance) * RBF(lengthscale)
    return GaussianProcessClassifier(kernel, optimizer=None).fit(train.X, train.y).base_estimator_


@pytest.mark.parametrize(("lengthscale", "variance"), [(1.5, 1.0), (4.0, 2.5)])
def test_latent_mean_is_that_of_scikit_learn(digits, lengthscale, variance):
    train, test = digits
    classifier = GPClassifier(lengthscale, variance).fit(train.X, train.y)
    expected, _ = reference(lengthscale, variance, train).latent_mean_and_variance(test.X)
    assert np.max(np.abs(classifier.decision_function(test.X) - expected)) < 1e-10
    assert np.array_equal(classifier.predict(test.X), expected > 0)
    assert classifier.score(test.X, test.y) > 0.95


def test_dense_model_holds_the_training_points(digits):
    train, _ = digits
    model = GPClassifier(1.5).fit(train.X, train.y).model_
    assert np.array_equal(model.centres, train.X)
    assert np.array_equal(model.lower, train.X.min(axis=0))
    assert np.array_equal(model.upper, train.X.max(axis=0))
    assert model.accuracy is None


@pytest.mark.parametrize("inducing_points", [None, 4])
@pytest.mark.parametrize("percentile", [5.0, 20.0])
def test_thresholds_are_those_of_the_certified_model(digits, inducing_points, percentile):
    train, _ = digits
    classifier = GPClassifier(1.5, inducing_points=inducing_points, percentile=percentile)
    model = classifier.fit(train.X, train.y).model_
    low, high = np.percentile(model.latent(train.X), [percentile, 100.0 - percentile])
    assert (model.latent_low, model.latent_high) == (low, high)


def test_sparse_thresholds_are_not_those_of_the_dense_model(digits):
    train, _ = digits
    dense = GPClassifier(1.5).fit(train.X, train.y).model_
    sparse = GPClassifier(1.5, inducing_points=1).fit(train.X, train.y).model_
    assert sparse.n_centres == 1
    assert abs(sparse.latent_high - dense.latent_high) > 0.05


def test_sparse_model_classifies_nearly_as_well(digits):
    train, test = digits
    dense = GPClassifier(1.5).fit(train.X, train.y)
    sparse = GPClassifier(1.5, inducing_points=4).fit(train.X, train.y)
    assert sparse.score(test.X, test.y) > dense.score(test.X, test.y) - 0.02


@pytest.mark.parametrize("inducing_points", [None, 5])
def test_two_fits_give_the_same_bits(digits, inducing_points):
    train, _ = digits
    first, second = (
        GPClassifier(1.5, inducing_points=inducing_points, random_state=1).fit(train.X, train.y).model_
        for _ in range(2)
    )
    assert first.digest == second.digest


def test_optimising_raises_the_marginal_likelihood(digits):
    train, _ = digits
    classifier = GPClassifier(1.0, optimise=True).fit(train.X, train.y)
    found = reference(classifier.lengthscale_, classifier.variance_, train)
    given = reference(1.0, 1.0, train)
    assert found.log_marginal_likelihood_value_ > given.log_marginal_likelihood_value_ + 1.0
    assert classifier.model_.variance == classifier.variance_
    assert (classifier.model_.lengthscale == classifier.lengthscale_).all()
    assert (classifier.lengthscale, classifier.variance) == (1.0, 1.0)


def test_labels_may_be_any_two_values(digits):
    train, test = digits
    names = np.array(["ham", "spam"])[train.y.astype(int)]
    classifier = GPClassifier(1.5).fit(train.X, names)
    assert classifier.classes_.tolist() == ["ham", "spam"]
    assert np.array_equal(classifier.predict(test.X) == "spam", classifier.decision_function(test.X) > 0)
    assert classifier.model_.digest == GPClassifier(1.5).fit(train.X, train.y).model_.digest


def test_box_may_be_numbers_or_arrays(digits):
    train, _ = digits
    d = train.X.shape[1]
    model = GPClassifier(1.5, box=(0.0, np.linspace(0.5, 1.0, d))).fit(train.X, train.y).model_
    assert np.array_equal(model.lower, np.zeros(d))
    assert np.array_equal(model.upper, np.linspace(0.5, 1.0, d))


def test_inducing_points_keep_to_the_box(digits):
    train, _ = digits
    model = GPClassifier(1.5, inducing_points=3, box=(0.1, 0.6)).fit(train.X, train.y).model_
    assert model.centres.min() >= 0.1
    assert model.centres.max() <= 0.6


def test_columns_of_a_data_frame_name_the_inputs(digits):
    pandas = pytest.importorskip("pandas")
    train, _ = digits
    frame = pandas.DataFrame(train.X, columns=list(train.input_names))
    classifier = GPClassifier(1.5).fit(frame, train.y)
    assert classifier.model_.input_names == train.input_names
    classifier.fit(train.X, train.y)
    assert classifier.model_.input_names[:2] == ("x0", "x1")


def test_fitted_classifier_survives_pickling(digits):
    train, test = digits
    classifier = GPClassifier(1.5, inducing_points=3).fit(train.X, train.y)
    again = pickle.loads(pickle.dumps(classifier))
    assert again.model_.digest == classifier.model_.digest
    assert np.array_equal(again.decision_function(test.X), classifier.decision_function(test.X))


X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
Y = np.array([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lengthscale": 0.0}, "lengthscale: 0 is not a positive finite number"),
        ({"lengthscale": np.nan}, "lengthscale: nan is not a positive finite number"),
        ({"variance": -1.0}, "variance: -1 is not a positive finite number"),
        ({"percentile": 50.0}, "percentile: 50 is not from 0 to below 50"),
        ({"inducing_points": 0}, "inducing_points: 0 is not a whole number from 1 to the 4 training points"),
        ({"inducing_points": 5}, "inducing_points: 5 is not a whole number from 1 to the 4 training points"),
        (
            {"inducing_points": 2.5},
            "inducing_points: 2.5 is not a whole number from 1 to the 4 training points",
        ),
        ({"box": (1.0, 0.0)}, "box: input 0 has edges 1 and 0, not finite lower <= upper"),
        ({"box": (0.0, [1.0, np.inf])}, "box: input 1 has edges 0 and inf, not finite lower <= upper"),
        ({"box": (0.0, [1.0] * 3)}, "box: is not a pair (lower, upper), each a number or of shape (2,)"),
        ({"box": 3.0}, "box: is not a pair (lower, upper), each a number or of shape (2,)"),
    ],
)
def test_parameter_errors(parameters, message):
    with pytest.raises(DataError) as caught:
        GPClassifier(**parameters).fit(X, Y)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("points", "labels", "message"),
    [
        (
            np.array([[0.0, np.nan], [1.0, 0.0]]),
            [0, 1],
            "X: nan at row 0, column 1; NaN and inf are not accepted",
        ),
        (np.array([0.0, 1.0]), [0, 1], "X, y: Expected 2D array, got 1D array instead"),
        (X, [0, 1, 1], "X, y: Found input variables with inconsistent numbers of samples: [4, 3]"),
        (
            X,
            [0, 1, 2, 0],
            "y: Only binary classification is supported. The type of the target is multi",
        ),
        (
            X,
            [0.5, 1.5, 0.5, 2.5],
            "y: Only binary classification is supported. The type of the target is cont",
        ),
        (X, [1, 1, 1, 1], "y: holds 1 class, 1; expected 2"),
        (X, [0.0, np.nan, 1.0, 1.0], "X, y: Input y contains NaN."),
        (np.ones((4, 2)), Y, "X: latent mean is 0 at nearly every point, which leaves no thresholds"),
    ],
)
def test_data_errors(points, labels, message):
    with pytest.raises(DataError) as caught:
        GPClassifier().fit(points, labels)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_prediction_checks_its_points():
    with pytest.raises(NotFittedError):
        GPClassifier().predict(X)
    classifier = GPClassifier().fit(X, Y)
    with pytest.raises(DataError, match="X: X has 1 features, but GPClassifier is expecting 2 features"):
        classifier.predict(X[:, :1])
    with pytest.raises(DataError, match="X: inf at row 0, column 1"):
        classifier.decision_function([[0.0, np.inf]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the marginal likelihood is highest")  # on the toy data of the checks
@parametrize_with_checks([GPClassifier(), GPClassifier(inducing_points=3), GPClassifier(optimise=True)])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    with threadpool_limits(limits=1):  # many threads on small matrices wait for each other where cores are shared
        check(estimator)
