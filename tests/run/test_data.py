"""The data of a job: each step as declared, and all of it recorded in the model."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from daskab import KernelExpansion, ModelError, load_model, save_model
from daskab.datasets import drop_constant, load, load_digits, rescale, split
from daskab.datasets.points import rescale_to_seen, two_classes
from daskab.run.data import DataOptions, prepared
from daskab.run.job import FittedModel, read_job
from daskab.run.models import fit, fit_key, job_models

WINE = DataOptions(source="wine", classes=("class_1", "class_0"), train_size=60, clip_percentile=2.0)
SPEC = FittedModel(name="m", lengthscale=1.5)


def test_the_digits_are_prepared_as_ever() -> None:
    options = DataOptions(source="digits", classes=(3, 5), train_size=200, min_std=0.02)
    wanted = split(drop_constant(rescale(load_digits((3, 5)), 0.0, 16.0), 0.02), 200, 0)
    for got, part in zip(prepared(options), wanted, strict=True):
        assert np.array_equal(got.X, part.X)
        assert np.array_equal(got.y, part.y)
        assert (got.input_names, got.class_names) == (part.input_names, ("3", "5"))


def test_a_table_is_scaled_by_its_clipped_range() -> None:
    train, test = prepared(WINE)
    wanted = split(drop_constant(rescale_to_seen(two_classes(load("wine"), WINE.groups), 2.0), 0.0), 60, 0)
    assert np.array_equal(train.X, wanted[0].X)
    assert np.array_equal(test.X, wanted[1].X)
    assert (train.X.min(), train.X.max()) == (0.0, 1.0)
    assert train.class_names == ("class_1", "class_0")
    assert (len(train.y), len(test.y)) == (60, 59 + 71 - 60)


def test_options_of_two_classes_need_not_say_them() -> None:
    options = DataOptions(source="breast-cancer", train_size=100, test_size=30)
    assert (options.pair, options.how, options.noun) == (("malignant", "benign"), "range", "input")
    whole, part = (prepared(o)[1] for o in (options.model_copy(update={"test_size": None}), options))
    assert np.array_equal(part.X, whole.X[:30])
    assert 0 < part.y.sum() < 30


def test_classes_that_count_as_one() -> None:
    options = DataOptions(source="digits", classes=([0, 1, 2, 3, 4], [5, 6, 7, 8, 9]), train_size=100)
    assert hash(options) == hash(options.model_copy())
    train, test = prepared(options)
    assert options.pair == ("0/1/2/3/4", "5/6/7/8/9") == train.class_names
    assert len(train.y) + len(test.y) == 1797
    assert train.y.sum() + test.y.sum() == 182 + 181 + 179 + 174 + 180


def test_pooled_digits() -> None:
    train, _ = prepared(DataOptions(source="digits", classes=("3", "5"), train_size=200, pool=4))
    assert train.image_shape == (4, 4)
    assert set(train.input_names) <= {f"r{r}c{c}" for r in range(4) for c in range(4)}
    assert train.span is not None
    assert set(train.span.ravel()) == {0.0, 16.0}


def test_a_model_remembers_what_it_was_made_of(tmp_path: Path) -> None:
    model = fit(WINE, SPEC)
    save_model(model, tmp_path / "m.npz")
    kept = load_model(tmp_path / "m.npz")
    assert kept.provenance == model.provenance is not None
    made_of = json.loads(kept.provenance or "")
    assert made_of["data"] == {
        "source": "wine",
        "classes": ["class_1", "class_0"],
        "train_size": 60,
        "test_size": None,
        "seed": 0,
        "pool": None,
        "deduplicate": False,
        "scale": "range",
        "clip_percentile": 2.0,
        "min_std": 0.0,
        "files": {},
    }
    assert made_of["licence"] == load("wine").attrs["licence"]
    assert (made_of["train_rows"], made_of["test_rows"]) == (60, 70)
    assert np.shape(made_of["zero_and_one"]) == (2, model.n_inputs)
    assert model.digest == model.replace(provenance=None).digest
    assert model.replace(constant=1.0).provenance is None
    assert model.replace(accuracy=0.5).provenance == model.provenance


def test_a_model_remembers_what_did_not_go_as_asked(tmp_path: Path) -> None:
    """Whether it is fitted now or was before; not as a warning as well."""
    (tmp_path / "wine.toml").write_text(
        'name = "w"\n[data]\nsource = "wine"\nclasses = ["class_0", "class_2"]\ntrain_size = 40\n'
        '[[model]]\nname = "m"\nlengthscale = 0.001\noptimise = true\n[[model]]\nname = "n"\nlengthscale = 1\n'
    )
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stalled, plain = job_models(read_job(tmp_path / "wine.toml"), tmp_path)
        assert stalled.notes[0].startswith("the optimiser of the marginal likelihood stalled at the given values (")
        assert (
            f"lengthscale {stalled.model.lengthscale[0]:.6g} and variance {stalled.model.variance:.6g}"
            in stalled.notes[0]
        )
        assert plain.notes == ()


@pytest.mark.parametrize("wrong", [np.array(3.0), np.array(["a", "b"])])
def test_a_provenance_that_is_no_text(tmp_path: Path, wrong: object) -> None:
    arrays = KernelExpansion([[0.5]], [1.0], 1.0, [0.0], [1.0]).arrays()
    np.savez(tmp_path / "m.npz", **{**arrays, "provenance": np.asarray(wrong)})
    with pytest.raises(ModelError, match=r"m\.npz: provenance: is not one text$"):
        load_model(tmp_path / "m.npz")


@pytest.mark.parametrize(
    "change",
    [
        {"source": "breast-cancer", "classes": None},
        {"classes": ("class_0", "class_1")},
        {"train_size": 61},
        {"test_size": 5},
        {"seed": 1},
        {"deduplicate": True},
        {"clip_percentile": 1.0},
        {"min_std": 0.1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_fit_has_another_key(change: dict[str, object]) -> None:
    assert fit_key(WINE, SPEC) == fit_key(WINE.model_copy(), SPEC)
    assert fit_key(DataOptions(**{**WINE.model_dump(), **change}), SPEC) != fit_key(WINE, SPEC)


def test_a_key_knows_the_files() -> None:
    options = DataOptions(source="mnist", classes=(0, 1), train_size=10)
    assert options.facts()["files"] == {file.name: file.sha256 for file in options.entry.files}


def test_a_job_names_its_classes_and_inputs(tmp_path: Path) -> None:
    (tmp_path / "wine.toml").write_text(
        'name = "w"\n[data]\nsource = "wine"\nclasses = ["class_0", "class_2"]\ntrain_size = 40\n'
        '[[model]]\nname = "m"\nlengthscale = 2\ninducing_points = 3\n'
    )
    (item,) = job_models(read_job(tmp_path / "wine.toml"), tmp_path)
    assert (item.classes, item.noun) == (("class_0", "class_2"), "input")
    assert item.model.input_names[0] == "alcohol"
    assert item.model.accuracy is not None
