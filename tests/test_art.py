"""The Adversarial Robustness Toolbox uses our models and our attack as its own; where it is not, it is asked for."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from examples import mixed_model
from scipy.stats import norm

import daskab
from daskab import KernelExpansion

installed = pytest.mark.skipif(
    importlib.util.find_spec("art") is None, reason="needs the extra art: adversarial-robustness-toolbox"
)

MODEL = mixed_model(m=5, d=4, seed=3)
X = MODEL.lower + (MODEL.upper - MODEL.lower) * np.random.default_rng(0).random((40, 4))
LOW, HIGH = (float(v) for v in np.percentile(MODEL.latent(X), [30, 70]))
MODEL = MODEL.replace(latent_low=LOW, latent_high=HIGH)

UNIT: dict[str, Any] = {"lower": np.zeros(4), "upper": np.ones(4), "lengthscale": 0.5}


def wrapped(model: KernelExpansion = MODEL) -> Any:
    from daskab.art import KernelExpansionClassifier

    return KernelExpansionClassifier(model)


def slopes(function: Any, x: np.ndarray) -> np.ndarray:
    """Central differences of a function of points (N, D) with values (N, ...): (N, ..., D)."""
    out = []
    for j in range(x.shape[1]):
        step = 1e-5 * MODEL.lengthscale[j] * np.eye(x.shape[1])[j]
        out.append((function(x + step) - function(x - step)) / (2.0 * step[j]))
    return np.stack(out, axis=-1)


def test_without_the_toolbox_one_line_names_the_extra() -> None:
    code = "import sys; sys.modules['art'] = None; import daskab.art"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    last = said.stderr.splitlines()[-1]
    assert last.startswith("ImportError: daskab.art: needs the Adversarial Robustness Toolbox (")
    assert last.endswith("); pip install 'daskab[art]'")


@installed
def test_probabilities_are_of_the_latent_mean() -> None:
    classifier = wrapped()
    found = classifier.predict(X)
    assert found[:, 1] == pytest.approx(norm.cdf(MODEL.latent(X)), abs=1e-15)
    assert found.sum(axis=1) == pytest.approx(np.ones(40), abs=1e-15)
    assert (classifier.nb_classes, classifier.input_shape) == (2, (4,))
    assert np.array_equal(classifier.clip_values, (MODEL.lower, MODEL.upper))


@installed
def test_gradients_are_those_of_probabilities_and_of_the_loss() -> None:
    classifier = wrapped()
    both = classifier.class_gradient(X)
    assert both == pytest.approx(slopes(classifier.predict, X), rel=1e-5, abs=1e-7)
    assert np.array_equal(classifier.class_gradient(X, label=1), both[:, 1:])
    labels = np.arange(40) % 2
    one_each = classifier.class_gradient(X, label=labels.tolist())
    assert np.array_equal(one_each[:, 0], both[np.arange(40), labels])
    loss = slopes(lambda x: -np.log(classifier.predict(x)[np.arange(40), labels]), X)
    assert classifier.loss_gradient(X, labels) == pytest.approx(loss, rel=1e-5, abs=1e-7)
    assert np.array_equal(classifier.loss_gradient(X, np.eye(2)[labels]), classifier.loss_gradient(X, labels))


@installed
def test_the_gradient_of_a_loss_does_not_vanish_far_off() -> None:
    far = KernelExpansion([[0.0]], [1.0], 1.0, [0.0], [2.0], variance=100.0)
    assert np.all(wrapped(far).loss_gradient([[1.0]], [0]) < -1000.0)


@installed
def test_attacks_of_the_toolbox_take_it() -> None:
    from art.attacks.evasion import FastGradientMethod, HopSkipJump, SaliencyMapMethod

    edges = wrapped()
    numbers = wrapped(MODEL.replace(centres=(MODEL.centres - MODEL.lower) / (MODEL.upper - MODEL.lower), **UNIT))
    assert numbers.clip_values == (0.0, 1.0)
    free = np.random.default_rng(1).random((4, 4))
    for attack, x in (
        (FastGradientMethod(edges, norm=np.inf, eps=0.2), X[:4]),
        (HopSkipJump(edges, max_iter=2, max_eval=50, init_eval=10, verbose=False), X[:4]),
        (SaliencyMapMethod(numbers, theta=0.2, gamma=1.0, verbose=False), free),
    ):
        found = attack.generate(x=x)
        assert found.shape == (4, 4)
        assert np.any(found != x.astype(found.dtype))


@installed
def test_our_attack_is_one_of_the_toolbox() -> None:
    from art.attacks.attack import EvasionAttack

    from daskab.art import FewInputsAttack

    attack = FewInputsAttack(wrapped())
    assert isinstance(attack, EvasionAttack)
    found = attack.generate(x=X)
    expected = daskab.attack_points(MODEL, X)
    assert np.array_equal(found, expected.points)
    assert expected.n_inputs.any()
    # Of those that are not of the class they are said to be, none is attacked.
    labels = (MODEL.latent(X) > 0).astype(int)
    assert np.array_equal(attack.generate(X, labels), found)
    assert np.array_equal(attack.generate(X, np.eye(2)[labels]), found)
    assert np.array_equal(attack.generate(X, 1 - labels), X)


@installed
def test_it_is_certified() -> None:
    found = wrapped().certify(method="fixed", slices=3)
    assert isinstance(found, daskab.Certificate)
    same = daskab.certify(MODEL, method="fixed", slices=3)
    assert (found.inputs_required, found.upper_bound.tolist()) == (same.inputs_required, same.upper_bound.tolist())


@installed
def test_inputs_that_cannot_change() -> None:
    upper = np.where(np.arange(4) == 2, MODEL.lower, MODEL.upper)
    classifier = wrapped(MODEL.replace(upper=upper))
    assert np.array_equal(classifier.clip_values[1], upper)


@installed
def test_refusals() -> None:
    from art.exceptions import EstimatorError

    from daskab.art import FewInputsAttack

    classifier = wrapped()
    with pytest.raises(daskab.ModelError, match="str is not a KernelExpansion"):
        wrapped("model")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="fit"):
        classifier.fit(X, np.zeros(40))
    with pytest.raises(EstimatorError):
        FewInputsAttack(MODEL)
    for y in (np.full(40, 2), np.zeros(39), np.ones((40, 2)), np.full(40, np.nan)):
        with pytest.raises(daskab.DataError, match="y: not one of the classes"):
            classifier.loss_gradient(X, y)
    with pytest.raises(daskab.ModelError, match="needs both"):
        FewInputsAttack(wrapped(MODEL.replace(latent_low=None, latent_high=None))).generate(X)
