"""The neutral model file: bit-equal there and back, never half-written, never unpickled."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models

from daskab import KernelExpansion, ModelError, load_model, save_model


def same(a: KernelExpansion, b: KernelExpansion) -> bool:
    for name in ("centres", "weights", "lengthscale", "lower", "upper"):
        if getattr(a, name).tobytes() != getattr(b, name).tobytes():
            return False
    others = ("variance", "constant", "latent_low", "latent_high", "input_names", "accuracy", "digest")
    return all(getattr(a, name) == getattr(b, name) for name in others)


@settings(max_examples=30)
@given(model=models(thresholds=True), accuracy=st.none() | st.floats(0, 1), constant=st.floats(-1e3, 1e3))
def test_there_and_back(
    model: KernelExpansion, accuracy: float | None, constant: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "there_and_back.npz"
    model = model.replace(accuracy=accuracy, constant=constant)
    for changed in (model, model.replace(latent_low=None, latent_high=None)):
        save_model(changed, path)
        assert same(load_model(path), changed)


def test_names_of_any_script(tmp_path: Path) -> None:
    model = KernelExpansion([[0.5, 0.5]], [1.0], [1.0, 2.0], [0, 0], [1, 1], input_names=["größe", "年齢 (y)"])
    save_model(model, tmp_path / "m.npz")
    assert same(load_model(str(tmp_path / "m.npz")), model)


def minimal() -> dict[str, Any]:
    return {
        "centres": np.array([[0.5, 0.25]]),
        "weights": np.array([1.0]),
        "lengthscale": np.array(2.0),
        "lower": np.zeros(2),
        "upper": np.ones(2),
    }


def test_optional_keys_may_be_absent_and_others_are_ignored(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", **minimal(), X_train=np.ones((5, 2)), note=np.array("by hand"))
    model = load_model(tmp_path / "m.npz")
    assert same(model, KernelExpansion([[0.5, 0.25]], [1.0], 2.0, [0, 0], [1, 1]))
    assert (model.variance, model.constant, model.latent_low, model.accuracy) == (1.0, 0.0, None, None)
    assert model.input_names == ("x0", "x1")


def test_compressed_files_and_other_number_types(tmp_path: Path) -> None:
    arrays = minimal() | {"lower": np.zeros(2, dtype=np.int64), "weights": np.ones(1, dtype=np.float32)}
    np.savez_compressed(tmp_path / "m.npz", **arrays)
    assert same(load_model(tmp_path / "m.npz"), KernelExpansion([[0.5, 0.25]], [1.0], 2.0, [0, 0], [1, 1]))


@pytest.mark.parametrize("key", ["centres", "weights", "lengthscale", "lower", "upper"])
def test_required_keys(key: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", **{k: v for k, v in minimal().items() if k != key})
    with pytest.raises(ModelError, match=rf"m\.npz: lacks {key}$"):
        load_model(tmp_path / "m.npz")


def test_an_error_names_the_file_and_the_field(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", **minimal() | {"upper": np.full(2, -1.0)})
    with pytest.raises(ModelError, match=r"m\.npz: lower: input x0 \(index 0\) has lower 0 above upper -1$"):
        load_model(tmp_path / "m.npz")


class Bomb:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return (os.mkdir, (str(self.trace),))


@pytest.mark.parametrize("key", ["centres", "weights", "input_names", "accuracy", "note"])
def test_nothing_is_unpickled(key: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    bomb = np.empty(1, dtype=object)
    bomb[0] = Bomb(trace)
    np.savez(tmp_path / "m.npz", **minimal() | {key: bomb})
    if key == "note":
        load_model(tmp_path / "m.npz")
    else:
        with pytest.raises(ModelError, match="Object arrays cannot be loaded"):
            load_model(tmp_path / "m.npz")
    assert not trace.exists()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_file_is_a_model_error_or_a_model(save: Callable[..., None], tmp_path: Path) -> None:
    """A zip checks most bytes, but not all: whatever is read, nothing but a ModelError may come of it."""
    path = tmp_path / "m.npz"
    model = KernelExpansion([[0.5, 0.25], [0.1, 0.9]], [1.0, -1.0], 2.0, [0, 0], [1, 1], latent_low=0, latent_high=1)
    save(path, **model.arrays())
    content = path.read_bytes()
    refusals: list[str] = []
    for at in range(0, len(content), 9):
        for damaged in (content[:at], content[:at] + bytes([content[at] ^ 0x80]) + content[at + 1 :]):
            path.write_bytes(damaged)
            try:
                load_model(path)
            except ModelError as error:
                refusals.append(str(error))
    assert len(refusals) > len(content) // 9
    assert all(message.isprintable() for message in refusals)


def test_saving_replaces_a_file_as_a_whole(tmp_path: Path) -> None:
    one = KernelExpansion([[0.5]], [1.0], 1.0, [0.0], [1.0])
    save_model(one, tmp_path / "m.npz")
    save_model(one.replace(weights=[2.0]), tmp_path / "m.npz")
    assert load_model(tmp_path / "m.npz").weights.tolist() == [2.0]
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    one = KernelExpansion([[0.5]], [1.0], 1.0, [0.0], [1.0])
    target = tmp_path / "m.npz"
    target.mkdir()  # nothing can be moved over a folder
    with pytest.raises(OSError, match=r"m\.npz"):
        save_model(one, target)
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]
    assert target.is_dir()


def test_a_save_that_stops_halfway_leaves_no_partial_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    large = KernelExpansion(rng.random((500, 20)), rng.random(500), 1.0, np.zeros(20), np.ones(20))
    save_model(large.replace(weights=-large.weights), tmp_path / "m.npz")
    before = (tmp_path / "m.npz").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))  # as a full disk would
    try:
        with pytest.raises(OSError, match="File too large"):
            save_model(large, tmp_path / "m.npz")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "m.npz").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]


def test_saving_to_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        save_model(KernelExpansion([[0.5]], [1.0], 1.0, [0.0], [1.0]), tmp_path / "absent" / "m.npz")
