"""A fitted Gaussian-process classifier of scikit-learn, alone or behind scalers (method 1)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.utils.validation import check_is_fitted

from daskab.errors import ModelError, one_line
from daskab.model.checked import Array, names, numbers
from daskab.model.expansion import KernelExpansion
from daskab.model.importers.assemble import Box, assemble, box_edges
from daskab.model.importers.sklearn_kernel import read_kernel
from daskab.model.importers.sklearn_scaling import check_clips, check_step, does_nothing, read_scaler, to_raw


def from_sklearn(
    estimator: Any,
    *,
    classes: Any = None,
    box: Box | None = None,
    thresholds: tuple[float, float] | None = None,
    percentile: float = 5.0,
    input_names: Sequence[str] = (),
) -> KernelExpansion:
    r"""A fitted scikit-learn Gaussian-process classifier as a model that can be certified.

    Its latent mean is :math:`f(x) = \sum_i (y_i - \pi_i)\, k(x_i, x)` over the training points, with labels y in
    {0, 1}; positive means the later of ``estimator.classes_``.

    Parameters
    ----------
    estimator : GaussianProcessClassifier or Pipeline
        Fitted; of two classes, or with ``classes``. Its kernel is an RBF or a Matern of nu 0.5, 1.5 or 2.5, of one or
        per-input lengthscales, times ConstantKernels if need be. In a pipeline StandardScaler and MinMaxScaler may come
        before it; the model, its box and its certificate are then about the raw columns.
    classes : label or pair of labels, optional
        Which of the binary classifiers inside one of several classes: a class against the rest (one_vs_rest), or one
        against another (one_vs_one). They are certified one by one, as
        ``[from_sklearn(estimator, classes=c) for c in estimator.classes_]`` or with
        ``itertools.combinations(estimator.classes_, 2)``.
    box : tuple (lower, upper) of float or array_like, shape (D,), optional
        The inputs the certificate speaks of, in raw columns. Default: the range of each column over the training
        points that the classifier holds, led back through the scalers.
    thresholds : tuple (latent_low, latent_high), optional
        What *confidently* means, as latents. Default: by ``percentile``.
    percentile : float
        In percent, from 0 to below 50: the thresholds are this and the opposite percentile of the latent mean over the
        (binary) classifier's training points.
    input_names : sequence of str, optional
        Default: the names of the columns it was fitted on, else ``x0, x1, ...``.

    Returns
    -------
    KernelExpansion
        With 20 probes: points of the box at which scikit-learn's own ``latent_mean_and_variance`` was asked.

    Raises
    ------
    ModelError
        If the estimator is not fitted or not such a one, if kernel or step is another (it is named), if a number is not
        finite, if the box leaves where MinMaxScaler clips, or if scikit-learn does not agree with the result.

    Notes
    -----
    Rasmussen and Williams (2006), algorithm 3.2, line 4, as in scikit-learn. One model is returned, never a
    collection: it is what can be saved, certified and named by its digest.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> model = from_sklearn(GaussianProcessClassifier(1.0 * RBF(0.3)).fit(X, X[:, 0] > 0.5), box=(0.0, 1.0))
    >>> model.n_centres, model.input_names
    (20, ('x0',))
    """
    try:
        steps, classifier = _opened(estimator)
        for name, step in steps:
            check_step(name, step)
        for name, step in [*steps, ("", classifier)]:
            _check_fitted(name, step)
        binary, seen = _binary(classifier, classes)
        d = seen.shape[1]
        scalings = [scaling for name, step in steps if (scaling := read_scaler(name, step, d)) is not None]
        centres = numbers("estimator: X_train_", binary.X_train_, ndim=2)
        target = numbers("estimator: y_train_", binary.y_train_, shape=centres.shape[:1])
        weights = target - numbers("estimator: pi_", binary.pi_, shape=centres.shape[:1])
        kernel, variance, lengthscale = read_kernel(binary.kernel_, d)
    except ModelError:
        raise
    except (AttributeError, TypeError, ValueError, LookupError) as error:  # edited, or kept from another version
        raise ModelError(
            f"estimator: {one_line(error)}; fit it again with the scikit-learn that is installed here"
        ) from error

    raw = to_raw(scalings, centres)
    lower, upper = box_edges(box, to_raw(scalings, seen))
    named = names(input_names if len(input_names) else _column_names(steps, classifier), d)
    for scaling in scalings:
        lengthscale = lengthscale / scaling.slope
    bare = KernelExpansion(raw, weights, lengthscale, lower, upper, variance=variance, input_names=named, kernel=kernel)
    check_clips(scalings, named, bare.lower, bare.upper)
    predict = _predictor([step for _, step in steps], binary)
    return assemble("scikit-learn", bare, raw, predict, thresholds, percentile)


def _opened(estimator: Any) -> tuple[list[tuple[str, Any]], GaussianProcessClassifier]:
    """The transformers before a classifier, in order, and the classifier; pipelines inside pipelines are opened."""
    *steps, (_, last) = _flat("", estimator)
    if not isinstance(last, GaussianProcessClassifier):
        kind = last if isinstance(last, str) else type(last).__name__
        inside = "; give its best_estimator_" if hasattr(last, "best_estimator_") else ""
        raise ModelError(
            f"estimator: {kind} is neither a GaussianProcessClassifier nor a Pipeline that ends in one{inside}"
        )
    return steps, last


def _flat(name: str, step: Any) -> list[tuple[str, Any]]:
    from sklearn.pipeline import Pipeline  # importing daskab does not need it

    if type(step) is not Pipeline:
        return [(name, step)]
    return [leaf for inner, part in step.steps for leaf in _flat(inner, part)] or [(name, step)]


def _check_fitted(name: str, step: Any) -> None:
    if does_nothing(step):
        return
    try:
        check_is_fitted(step)
    except NotFittedError:
        where = f" (step {name!r})" if name else ""
        raise ModelError(f"estimator: {type(step).__name__}{where} is not fitted; call fit first") from None


def _binary(classifier: GaussianProcessClassifier, wanted: Any) -> tuple[Any, Array]:
    """The binary classifier that is meant, and all points (N, D) the whole was fitted on."""
    labels = list(classifier.classes_)
    base = classifier.base_estimator_
    if len(labels) == 2:
        if wanted is not None:
            raise ModelError(f"classes: {wanted} given, but the estimator has only the two classes {_listed(labels)}")
        return base, _points(base)
    one_vs_one = classifier.multi_class == "one_vs_one"
    asked = list(wanted) if isinstance(wanted, tuple | list | np.ndarray) else [] if wanted is None else [wanted]
    found = sorted({k for k, label in enumerate(labels) for a in asked if a == label or str(a) == str(label)})
    if len(found) != len(asked) or len(found) != (2 if one_vs_one else 1):
        kind = "one_vs_one: give two of them" if one_vs_one else "one_vs_rest: give one of them"
        raise ModelError(f"classes: the estimator has {len(labels)} classes, {_listed(labels)}, {kind} as classes")
    parts = list(base.estimators_)
    if one_vs_one:
        pairs = list(combinations(range(len(labels)), 2))  # the order scikit-learn keeps them in
        return parts[pairs.index((found[0], found[1]))], np.concatenate([_points(part) for part in parts])
    return parts[found[0]], _points(parts[found[0]])


def _points(binary: Any) -> Array:
    return numbers("estimator: X_train_", binary.X_train_, ndim=2)


def _listed(labels: list[Any]) -> str:
    shown = [repr(str(label)) for label in labels[:10]]
    return ", ".join(shown) + (", ..." if len(labels) > 10 else "")


def _column_names(steps: list[tuple[str, Any]], classifier: GaussianProcessClassifier) -> Sequence[str]:
    for step in (*(step for _, step in steps), classifier):
        if hasattr(step, "feature_names_in_"):
            return [str(name) for name in step.feature_names_in_]
    return ()


def _predictor(steps: list[Any], binary: Any) -> Callable[[Array], Array]:
    """scikit-learn's own latent mean at raw points, its transformers included."""

    def predict(points: Array) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the points have no column names
            inputs: Any = points
            for step in steps:
                if not does_nothing(step):
                    inputs = step.transform(inputs)
            mean, _ = binary.latent_mean_and_variance(np.asarray(inputs))
            return np.asarray(mean)

    return predict
