"""For users of the Adversarial Robustness Toolbox: a model as its classifier, an attack as its attack, and a proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr

from daskab.attack.ascent import value_gradient
from daskab.attack.points import attack_points
from daskab.bound.scaled import Scaled
from daskab.errors import DataError, ModelError, one_line
from daskab.model.checked import numbers
from daskab.model.expansion import KernelExpansion
from daskab.run.certificate import Certificate
from daskab.run.certify import certify

try:
    from art.attacks.attack import EvasionAttack
    from art.estimators.classification.classifier import ClassifierClassLossGradients
except ImportError as error:
    raise ImportError(
        f"daskab.art: needs the Adversarial Robustness Toolbox ({one_line(error)}); pip install 'daskab[art]'"
    ) from None

Array = NDArray[np.float64]


class KernelExpansionClassifier(ClassifierClassLossGradients):  # type: ignore[misc]  # its types are not looked at
    r"""A Gaussian-process classifier as a classifier of the Adversarial Robustness Toolbox, which can be certified.

    Its probabilities are :math:`\Phi(f(x))` of class 1 and :math:`\Phi(-f(x))` of class 0, with the latent mean f and
    the standard normal distribution function: they say on which side a point is, and how far, and are not the
    predictive probabilities, which the latent variance enters too. Gradients are exact.

    Parameters
    ----------
    model : KernelExpansion
        From `daskab.load_model`, an importer, or the ``model_`` of a fitted `daskab.GPClassifier`.

    Attributes
    ----------
    clip_values : tuple (lower, upper) of float or ndarray, shape (D,)
        The model's box; two numbers where it has the same edges for every input.
    input_shape : tuple
        (D,).

    Raises
    ------
    ModelError
        If ``model`` is not one.

    Notes
    -----
    It takes no defences before or after the model: what is certified is the model.
    """

    estimator_params = ("model",)

    def __init__(self, model: KernelExpansion) -> None:
        if not isinstance(model, KernelExpansion):
            raise ModelError(
                f"model: {type(model).__name__} is not a KernelExpansion; give model_ of a GPClassifier, or import it"
            )
        # The box is given below: the toolbox would round it to float32, and refuses inputs whose edges are equal.
        super().__init__(model=model, clip_values=None, preprocessing=None)
        self.nb_classes = 2

    @property
    def clip_values(self) -> tuple[Array, Array] | tuple[float, float]:
        """Lower and upper edges of the box: (D,) each, or numbers, as some attacks of the toolbox need them."""
        lower, upper = self.model.lower, self.model.upper
        if np.all(lower == lower[0]) and np.all(upper == upper[0]):
            return float(lower[0]), float(upper[0])
        return lower, upper

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one point."""
        return (self.model.n_inputs,)

    def predict(self, x: ArrayLike, **kwargs: Any) -> Array:
        """Probabilities of the two classes at points (N, D): (N, 2), rows summing to 1.

        Raises
        ------
        ModelError
            If x is not (N, D) or not finite.
        """
        latent = self.model.latent(x)
        return np.stack((ndtr(-latent), ndtr(latent)), axis=1)

    def class_gradient(self, x: ArrayLike, label: int | Sequence[int] | None = None, **kwargs: Any) -> Array:
        """Gradients of the classes' probabilities.

        Parameters
        ----------
        x : array_like, shape (N, D)
        label : int or sequence of int, shape (N,), optional
            The class, or that of each point. Default: both.

        Returns
        -------
        ndarray, shape (N, 2, D), or (N, 1, D) with ``label``

        Raises
        ------
        ModelError
            If x is not (N, D) or not finite.
        DataError
            If ``label`` is not of these.
        """
        latent, gradient = self._latent_gradient(x)
        density = np.exp(-0.5 * latent**2) / np.sqrt(2.0 * np.pi)
        of_one = (density[:, None] * gradient)[:, None, :]
        if label is None:
            return np.concatenate((-of_one, of_one), axis=1)
        of_label: Array = _signs("label", label, latent.size)[:, None, None] * of_one
        return of_label

    def loss_gradient(self, x: ArrayLike, y: ArrayLike, **kwargs: Any) -> Array:
        """Gradient (N, D) of the cross-entropy, minus the logarithm of the probability of ``y``.

        Parameters
        ----------
        x : array_like, shape (N, D)
        y : array_like, shape (N, 2) or (N,)
            Classes, one-hot or 0 and 1.

        Raises
        ------
        ModelError
            If x is not (N, D) or not finite.
        DataError
            If y is not such classes.
        """
        latent, gradient = self._latent_gradient(x)
        sign = _signs("y", y, latent.size)
        # Far on the wrong side, density and probability both vanish; their quotient does not.
        slope = np.exp(-0.5 * latent**2 - log_ndtr(sign * latent)) / np.sqrt(2.0 * np.pi)
        of_loss: Array = -(sign * slope)[:, None] * gradient
        return of_loss

    def certify(self, **options: Any) -> Certificate:
        """Prove how many inputs an attacker must change, anywhere in the box: `daskab.certify` of the model."""
        return certify(self.model, **options)

    def fit(self, x: ArrayLike, y: ArrayLike, **kwargs: Any) -> None:
        """Not here: a model is fitted before."""
        raise NotImplementedError("fit: the model is a fitted one; fit another, with daskab.GPClassifier")

    def _latent_gradient(self, x: ArrayLike) -> tuple[Array, Array]:
        """Latent mean (N,) and its gradient (N, D)."""
        model = self.model
        latent, points = model.latent(x), numbers("x", x)
        scaled, gradient = Scaled.of(model), np.empty_like(points)
        for k, point in enumerate((points - model.lower) / model.lengthscale):
            value_gradient(point, scaled.centres, scaled.amplitudes, gradient[k])
        return latent, gradient / model.lengthscale


class FewInputsAttack(EvasionAttack):  # type: ignore[misc]  # its types are not looked at
    """Confident misclassifications that change few inputs of given points: `daskab.attack_points`.

    Parameters
    ----------
    classifier : KernelExpansionClassifier
        Of a model with both thresholds.
    """

    _estimator_requirements = (KernelExpansionClassifier,)

    def __init__(self, classifier: KernelExpansionClassifier) -> None:
        super().__init__(estimator=classifier)

    def generate(self, x: ArrayLike, y: ArrayLike | None = None, **kwargs: Any) -> Array:
        """Adversarial points (N, D), in float64: rounded to float32 they might not be.

        Parameters
        ----------
        x : array_like, shape (N, D)
            Points of the box.
        y : array_like, shape (N, 2) or (N,), optional
            True classes, one-hot or 0 and 1. Default: those the classifier predicts.

        Returns
        -------
        ndarray, shape (N, D)
            A point is as it was given where it is not confidently of a class, is not of its true class to begin with,
            or nothing was found.

        Raises
        ------
        ModelError
            If the model has no thresholds, or x is not (N, D), not finite, or not in the box.
        DataError
            If y is not such classes.
        """
        model = self.estimator.model
        points = numbers("x", x, ndim=2)
        wanted = np.ones(points.shape[0], dtype=np.bool_)
        if y is not None:
            wanted = (_signs("y", y, points.shape[0]) > 0) == (model.latent(points) > 0)
        points[wanted] = attack_points(model, points[wanted]).points
        return points


def _signs(name: str, classes: ArrayLike, n: int) -> Array:
    """1 for class 1 and -1 for class 0, (n,); of one class for all, (n,) classes, or (n, 2) one-hot."""
    given = np.asarray(classes)
    if given.shape == (n, 2):
        one_hot = bool(np.all((given == 0) | (given == 1))) and bool(np.all(np.sum(given, axis=1) == 1))
        given = given[:, 1] if one_hot else np.full(n, np.nan)
    if given.shape not in {(), (n,), (n, 1)} or not np.all((given == 0) | (given == 1)):
        raise DataError(f"{name}: not one of the classes 0 and 1 for each of {n} points, nor one-hot")
    return np.where(np.broadcast_to(given.reshape(-1), (n,)) == 1, 1.0, -1.0)
