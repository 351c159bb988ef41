"""The projection onto inducing points: dense linear algebra, finite differences, its own promises."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgError
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from daskab.datasets import drop_constant, load_digits, rescale
from daskab.errors import DataError
from daskab.model import inducing
from daskab.model.inducing import JITTER, KMEANS_STARTS, NOISE_START, dtc_weights, log_likelihood, project
from daskab.model.laplace import GPClassifier

LENGTHSCALE = 1.5
VARIANCE = 1.7


def kernel(A, B, lengthscale=1.0):
    return VARIANCE * np.exp(-0.5 * cdist(A / lengthscale, B / lengthscale, "sqeuclidean"))


@pytest.fixture(scope="module")
def digits():
    """Points, latent mode of the dense classifier, and edges of the box."""
    data = rescale(drop_constant(load_digits((3, 5)), 0.5), 0.0, 16.0)
    X = data.X[:150]
    mode = GPClassifier(LENGTHSCALE, VARIANCE).fit(X, data.y[:150]).decision_function(X)
    return X, mode, X.min(axis=0), X.max(axis=0)


@pytest.fixture
def small():
    """Units of the lengthscale; more points than a dense check minds."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0.0, 2.0, (40, 3))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1], rng.uniform(0.0, 2.0, (5, 3))


def test_likelihood_is_that_of_the_dense_gaussian(small):
    X, f, Z = small
    among = kernel(Z, Z) + VARIANCE * JITTER * np.eye(len(Z))
    covariance = kernel(X, Z) @ np.linalg.solve(among, kernel(Z, X)) + 0.03 * np.eye(len(X))
    expected = multivariate_normal(np.zeros(len(X)), covariance).logpdf(f)
    assert log_likelihood(X, f, Z, 0.03, VARIANCE)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("noise", [1e-3, 0.1, 10.0])
def test_gradient_is_that_of_finite_differences(small, noise):
    X, f, Z = small

    def value(theta):
        return log_likelihood(X, f, theta[:-1].reshape(Z.shape), np.exp(theta[-1]), VARIANCE)[0]

    _, d_z, d_log_noise = log_likelihood(X, f, Z, noise, VARIANCE)
    analytic = np.append(d_z.ravel(), d_log_noise)
    theta = np.append(Z.ravel(), np.log(noise))
    steps = 1e-5 * np.eye(theta.size)
    numeric = [(value(theta + step) - value(theta - step)) / 2e-5 for step in steps]
    assert np.allclose(analytic, numeric, rtol=1e-6, atol=1e-7 * np.max(np.abs(analytic)))


def test_gradient_survives_coinciding_points(small):
    X, f, Z = small
    value, d_z, d_log_noise = log_likelihood(X, f, np.vstack([Z, Z[:2]]), 0.01, VARIANCE)
    assert np.isfinite([value, d_log_noise]).all()
    assert np.isfinite(d_z).all()
    # A copy of a point adds nothing that the point did not have.
    assert value == pytest.approx(log_likelihood(X, f, Z, 0.01, VARIANCE)[0], rel=1e-3)


def test_weights_solve_the_normal_equations(small):
    X, f, Z = small
    w = dtc_weights(X, f, Z, 0.2, VARIANCE)
    sigma = 0.2 * kernel(Z, Z) + kernel(Z, X) @ kernel(X, Z)
    assert np.allclose(sigma @ w, kernel(Z, X) @ f, rtol=1e-6)


def test_all_points_and_little_noise_reproduce_the_mode(digits):
    X, mode, _, _ = digits
    scaled = X / LENGTHSCALE
    w = dtc_weights(scaled, mode, scaled, 1e-10, VARIANCE)
    assert np.max(np.abs(kernel(scaled, scaled) @ w - mode)) < 1e-6 * np.max(np.abs(mode))


def test_long_lengthscale_keeps_the_weights_accurate(digits):
    """All kernel values within a thousandth of the variance: U'U alone would lose half the digits."""
    X, _, _, _ = digits
    scaled = X / 100.0
    Z = scaled[:6]
    truth = np.array([3.0, -2.0, 1.0, -4.0, 2.5, -0.5])
    f = kernel(scaled, Z) @ truth
    w = dtc_weights(scaled, f, Z, 1e-14, VARIANCE)
    assert np.allclose(kernel(scaled, Z) @ w, f, atol=1e-7)
    assert np.allclose(w, truth, rtol=1e-2)


def test_climb_ends_no_lower_than_k_means(digits):
    X, mode, lower, upper = digits
    Z, _, _ = project(X, mode, 4, LENGTHSCALE, VARIANCE, (lower, upper), 0)
    centres = KMeans(4, n_init=KMEANS_STARTS, random_state=0).fit(X / LENGTHSCALE).cluster_centers_
    noise = NOISE_START * np.mean(mode**2)

    def best(places):
        return max(log_likelihood(X / LENGTHSCALE, mode, places, noise * 2.0**k, VARIANCE)[0] for k in range(-7, 8))

    assert best(Z / LENGTHSCALE) > best(centres) + 10.0


def test_four_points_carry_most_of_the_mode(digits):
    X, mode, lower, upper = digits
    Z, w, _ = project(X, mode, 4, LENGTHSCALE, VARIANCE, (lower, upper), 0)
    residual = kernel(X, Z, LENGTHSCALE) @ w - mode
    assert np.std(residual) < 0.1 * np.std(mode)


def test_places_stay_in_the_box(digits):
    X, mode, lower, upper = digits
    Z, _, _ = project(X, mode, 5, LENGTHSCALE, VARIANCE, (lower, upper), 0)
    assert (Z >= lower).all()
    assert (Z <= upper).all()
    Z, _, _ = project(X, mode, 5, LENGTHSCALE, VARIANCE, (0.2, 0.7), 0)
    assert Z.min() >= 0.2
    assert Z.max() <= 0.7


def test_units_of_the_inputs_do_not_matter(digits):
    """Powers of two change no digit, so the result must be the same to the last bit."""
    X, mode, lower, upper = digits
    units = 2.0 ** (np.arange(X.shape[1]) % 7)
    Z, w, _ = project(X, mode, 3, LENGTHSCALE, VARIANCE, (lower, upper), 0)
    Z_raw, w_raw, _ = project(X * units, mode, 3, LENGTHSCALE * units, VARIANCE, (lower * units, upper * units), 0)
    assert np.array_equal(Z_raw, Z * units)
    assert np.array_equal(w_raw, w)


def test_frozen_input_stays(digits):
    X, mode, lower, upper = digits
    low, high = lower.copy(), upper.copy()
    low[3] = high[3] = 0.25
    Z, _, _ = project(X, mode, 3, LENGTHSCALE, VARIANCE, (low, high), 0)
    assert (Z[:, 3] == 0.25).all()


def test_same_seed_same_bits(digits):
    X, mode, lower, upper = digits
    first, second = (project(X, mode, 6, LENGTHSCALE, VARIANCE, (lower, upper), 5) for _ in range(2))
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_more_points_than_distinct_rows():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 4, axis=0)
    mode = np.repeat([1.0, -1.0, 0.5], 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z, w, notes = project(X, mode, 5, 1.0, VARIANCE, (0.0, 1.0), 0)
    assert notes == ["inducing points: 5, but only 3 training points are different"]
    assert np.isfinite(w).all()
    assert np.allclose(kernel(X, Z) @ w, mode, atol=0.05)


ERRORS = [LinAlgError("not positive definite"), None]


def breaking(monkeypatch, at, error):
    """Breaks the likelihood at some of its evaluations, by an exception or by a NaN; what it saw at the others."""
    seen = []
    count = iter(range(10**9))

    def breaks(*arguments):
        value, d_z, d_log_noise = log_likelihood(*arguments)
        if at(next(count)):
            if error is not None:
                raise error
            value = np.nan
        else:
            seen.append((value, arguments[2] * LENGTHSCALE))
        return value, d_z, d_log_noise

    monkeypatch.setattr(inducing, "log_likelihood", breaks)
    return seen


@pytest.mark.parametrize("error", ERRORS)
def test_a_failing_optimiser_begins_again_elsewhere(digits, monkeypatch, error):
    X, mode, lower, upper = digits[0][:60], digits[1][:60], *digits[2:]
    seen = breaking(monkeypatch, lambda number: number == 4, error)
    Z, w, notes = project(X, mode, 4, LENGTHSCALE, VARIANCE, (lower, upper), 0)
    best = max(seen, key=lambda pair: pair[0])
    assert best[0] > max(value for value, _ in seen[:4]) + 10.0
    assert np.allclose(Z, best[1], rtol=1e-12)
    assert np.isfinite(w).all()
    (note,) = notes
    why = "not positive definite" if error else "log likelihood nan or its gradient is not finite"
    assert note.startswith(
        f"inducing points: the optimiser stalled ({why}); of 3 other starts 3 came to an end; kept the"
    )


@pytest.mark.parametrize("error", ERRORS)
def test_if_it_fails_there_too_the_best_seen_is_left(digits, monkeypatch, error):
    X, mode, lower, upper = digits
    seen = breaking(monkeypatch, lambda number: number >= 4, error)
    with pytest.warns(ConvergenceWarning, match="of 3 other starts 0 came to an end; kept the best places seen"):
        classifier = GPClassifier(LENGTHSCALE, VARIANCE, inducing_points=4, box=(lower, upper)).fit(X, mode > 0)
    best = max(seen, key=lambda pair: pair[0])[1]
    assert len(seen) == 4
    assert np.allclose(classifier.model_.centres, best, rtol=1e-12)
    assert len(classifier.notes_) == 1


def test_optimiser_that_never_starts_leaves_the_k_means_centres(digits, monkeypatch):
    X, mode, lower, upper = digits
    breaking(monkeypatch, lambda number: True, ERRORS[0])
    Z, _, notes = project(X, mode, 4, LENGTHSCALE, VARIANCE, (lower, upper), 0)
    assert "0 came to an end; kept the k-means centres" in notes[0]
    centres = KMeans(4, n_init=KMEANS_STARTS, random_state=0).fit(X / LENGTHSCALE).cluster_centers_
    assert np.allclose(Z, centres * LENGTHSCALE, rtol=1e-9)


@pytest.mark.parametrize(
    ("n_points", "mode", "message"),
    [
        (0, np.ones(3), "n_points: 0 is not from 1 to the 3 training points"),
        (4, np.ones(3), "n_points: 4 is not from 1 to the 3 training points"),
        (1, np.ones(2), "latent_mode: has shape (2,), expected (3,)"),
        (1, np.zeros(3), "latent_mode: its mean square 0 is not a positive finite number"),
        (1, np.array([1.0, np.nan, 0.0]), "latent_mode: its mean square nan is not a positive finite number"),
    ],
)
def test_errors_name_the_field_and_the_value(n_points, mode, message):
    with pytest.raises(DataError) as caught:
        project(np.eye(3), mode, n_points, 1.0, 1.0, (0.0, 1.0))
    assert str(caught.value) == message
