"""What importers compute, on numbers that the real libraries left behind: none of them is needed here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fixtures.agree import by_hand
from fixtures.record import Case, read

import daskab
from daskab import KernelExpansion, ModelError
from daskab.model.importers.latent import Latent, imported, kernel_columns, per_column, which_output
from daskab.model.importers.variational import variational_weights
from daskab.model.probes import mismatch

CASES = {f"{name}: {case}": value for name in ("gpflow", "gpy", "gpytorch") for case, value in read(name).items()}
VARIATIONAL = [name for name, case in CASES.items() if "jitter" in case]


def weights(case: Case, **changes: Any) -> np.ndarray:
    if "weights" in case:
        return np.asarray(case["weights"])
    parts = ("centres", "mean", "lengthscale", "variance", "jitter", "whitened")
    return variational_weights("eq", **{part: case[part] for part in parts} | changes)


def model(case: Case, **changes: Any) -> KernelExpansion:
    parts = {part: case[part] for part in ("centres", "lengthscale", "variance", "constant")}
    lower, upper = case["points"].min(axis=0), case["points"].max(axis=0)
    return KernelExpansion(weights=weights(case, **changes), lower=lower, upper=upper, **parts)


@pytest.mark.parametrize("name", CASES)
def test_the_expansion_is_what_the_library_predicted(name: str) -> None:
    case = CASES[name]
    expansion = model(case)
    off = np.max(np.abs(expansion.latent(case["points"]) - case["latents"]))
    assert off < 1e-13 * expansion.largest_latent


@pytest.mark.parametrize("name", VARIATIONAL)
@pytest.mark.parametrize("factor", [1e-3, 0.1, 0.99, 1.01, 10.0, 1e3])
def test_another_jitter_is_seen(name: str, factor: float) -> None:
    """1e-3 for 1e-6 is the classic mistake."""
    case = CASES[name]
    wrong = model(case, jitter=case["jitter"] * factor)
    assert mismatch(wrong.latent, wrong.largest_latent, case["points"], case["latents"])


@pytest.mark.parametrize("name", VARIATIONAL)
def test_whitened_for_unwhitened_is_seen(name: str) -> None:
    case = CASES[name]
    wrong = model(case, whitened=not case["whitened"])
    assert mismatch(wrong.latent, wrong.largest_latent, case["points"], case["latents"])


def test_no_cholesky_factor() -> None:
    twice = np.zeros((2, 3))
    with pytest.raises(ModelError) as caught:
        variational_weights("eq", twice, np.ones(2), np.ones(3), 1.0, 0.0, whitened=True)
    assert str(caught.value) == (
        "model: the kernel of its inducing points, with a jitter of 0, has no Cholesky factor; what the library would "
        "do then is not certified: raise its jitter, or drop inducing points that coincide"
    )


# What every importer does with what it read.


@pytest.fixture
def case() -> Case:
    return CASES["gpytorch: whitened float64"]


def asked(case: Case) -> Callable[[np.ndarray], np.ndarray]:
    return lambda points: model(case).latent(points)


def made(case: Case, X: Any = None, box: Any = None, thresholds: Any = None, names: Any = (), **changes: Any) -> Any:
    given = {part: case[part] for part in ("centres", "lengthscale", "variance", "constant")}
    given |= {"weights": weights(case), "columns": slice(None), "predict": asked(case)}
    return imported("Some", Latent(**given | changes), X, box, thresholds, 5.0, names)


def test_the_certificate_is_that_of_the_same_numbers_given_by_hand(case: Case) -> None:
    model = made(case, X=case["points"])
    assert model.probe_points is not None
    other = by_hand(model)
    assert other.probe_points is None
    assert other.digest == model.digest
    options: dict[str, Any] = {"method": "fixed", "slices": 3}
    assert daskab.certify(model, **options).to_json() == daskab.certify(other, **options).to_json()


def test_without_training_points_box_and_thresholds_are_asked_for(case: Case) -> None:
    model = made(case, box=(0.0, 1.0), thresholds=(-1.0, 1.0))
    assert (model.lower.tolist(), model.upper.tolist()) == ([0.0] * 3, [1.0] * 3)
    assert (model.latent_low, model.latent_high) == (-1.0, 1.0)
    for given in ({}, {"box": (0.0, 1.0)}, {"thresholds": (-1.0, 1.0)}):
        with pytest.raises(ModelError) as caught:
            made(case, **given)
        assert str(caught.value) == (
            "X: the model does not hold the points it was trained on; give them as X, or give both box and thresholds"
        )


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((9, 2)), "X: has shape (9, 2), expected points of 3 columns"),
        (np.zeros((0, 3)), "X: has shape (0, 3), expected points of 3 columns"),
        (np.zeros(3), "X: has shape (3,), expected 2 dimensions"),
        ([[0.0, np.nan, 0.0]], "X: nan at index (0, 1) is not a finite number"),
        ([["a", "b", "c"]], "X: holds <U1 values, expected real numbers"),
    ],
)
def test_points_that_are_none(X: Any, message: str, case: Case) -> None:
    with pytest.raises(ModelError) as caught:
        made(case, X=X)
    assert str(caught.value) == message


def test_columns_that_the_kernel_does_not_see(case: Case) -> None:
    """The model is of those it sees, in its order; the library is asked at points of all columns."""
    wide = np.random.default_rng(0).random((12, 5))
    columns = np.array([4, 0, 2])
    wide[:, columns] = case["centres"]
    wider = {"X": wide, "centres": wide, "columns": columns, "predict": lambda p: asked(case)(p[:, columns])}
    model = made(case, **wider)
    assert model.input_names == ("x4", "x0", "x2")
    assert model.lower.tolist() == wide[:, columns].min(axis=0).tolist()
    assert made(case, names="abc", **wider).input_names == ("a", "b", "c")


def test_which_columns() -> None:
    for columns, seen in ((None, [0, 1, 2]), ([0, 1, 2], [0, 1, 2]), ([2, 0], [2, 0])):
        assert np.arange(3)[kernel_columns(columns, 3)].tolist() == seen
    for wrong in ([0, 0], [3], [-1], [0.5]):
        with pytest.raises(ModelError) as caught:
            kernel_columns(wrong, 3)
        assert str(caught.value) == f"kernel: active_dims {wrong} are not different columns from 0 to 2"


def test_lengthscales() -> None:
    assert per_column("l", 2, 3).tolist() == [2.0, 2.0, 2.0]
    assert per_column("l", [[[1.0, 2.0]]], 2).tolist() == [1.0, 2.0]
    for wrong, message in (([1.0, 2.0], "l: has shape (2,), expected (3,)"), (-1.0, "l: -1 is not positive")):
        with pytest.raises(ModelError) as caught:
            per_column("l", wrong, 3)
        assert str(caught.value) == message


def test_which_output() -> None:
    assert which_output(1, None) == 0
    assert which_output(3, 2) == which_output(3, np.arange(3)[2]) == 2
    for count, wrong, message in (
        (1, 0, "output: 0 given, but the model has only one output"),
        (3, None, "output: the model has 3 outputs: give one of 0 to 2 as output"),
        (3, 3, "output: the model has 3 outputs: give one of 0 to 2 as output"),
        (3, -1, "output: the model has 3 outputs: give one of 0 to 2 as output"),
    ):
        with pytest.raises(ModelError) as caught:
            which_output(count, wrong)
        assert str(caught.value) == message


def test_weights_that_cancel_to_a_few_digits(case: Case) -> None:
    """Two points that all but coincide, with weights of a thousand million: probes would show nothing smaller."""
    centres, large = np.vstack([case["centres"], case["centres"][:1] + 1e-9]), np.append(weights(case), 1e9)
    large[0] -= 1e9
    with pytest.raises(ModelError) as caught:
        made(case, X=case["points"], centres=centres, weights=large)
    said = str(caught.value)
    assert said.startswith("Some: its weights add up to a latent of 3.4e+09, where ")
    assert said.endswith(". Drop points that nearly coincide, or raise the jitter and fit it again")


def test_a_library_that_disagrees_or_fails(case: Case) -> None:
    with pytest.raises(ModelError, match=r"^Some: probe \d+: the latent is .*; nothing is imported\. "):
        made(case, X=case["points"], weights=weights(case) * (1 + 1e-6))

    def fails(points: np.ndarray) -> np.ndarray:
        raise RuntimeError("size mismatch,\ngot 3")

    with pytest.raises(ModelError) as caught:
        made(case, X=case["points"], predict=fails)
    assert str(caught.value) == "Some itself cannot predict with it (size mismatch, got 3)"


@pytest.mark.parametrize("name", ["GPy", "gpflow", "gpytorch"])
def test_a_library_that_is_not_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModelError) as caught:
        getattr(daskab, f"from_{name.lower()}")(object())
    said = str(caught.value)
    assert said.startswith(f"{name}: cannot be imported here (")
    assert said.endswith(f"); pip install 'daskab[{name.lower()}]'")
    assert said.isprintable()
