"""``daskab import``: a person's own estimator becomes a model; nothing is unpickled unasked; bad files are one line."""

from __future__ import annotations

import copy
import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from examples import Call
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, RationalQuadratic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from daskab import ModelError, from_sklearn, load_model
from daskab.model.importers.pickled import load_estimator

# Whatever is said to a person is said by daskab: no warning of a library may stand beside it.
pytestmark = pytest.mark.filterwarnings("error")

RNG = np.random.default_rng(0)
X = RNG.random((30, 2)) * [1.0, 1000.0]
Y = X[:, 0] + 1e-3 * X[:, 1] > 1.0


def fitted(labels: Any = Y, kernel: Any = None, **options: Any) -> Any:
    kernel = 2.0 * RBF(0.9) if kernel is None else kernel
    classifier = GaussianProcessClassifier(kernel, optimizer=None, **options)
    return make_pipeline(StandardScaler(), classifier).fit(X, labels)


ESTIMATOR = fitted()


def kept(path: str, estimator: Any = ESTIMATOR) -> str:
    Path(path).write_bytes(pickle.dumps(estimator))
    return path


WARNED = "daskab: warning: opening m.pkl runs the code in it, as --trust allows"


def test_an_estimator_becomes_a_model(call: Call) -> None:
    said = call("import", kept("m.pkl"), "-o", "m.npz", "--trust", "--names", "share,income")
    assert (said.code, said.err.splitlines()) == (0, [WARNED])
    first, box, confident, probes = said.out.splitlines()
    model = load_model("m.npz")
    assert model.digest == from_sklearn(ESTIMATOR, input_names=["share", "income"]).digest
    assert first == "m.npz (30 centres, 2 inputs)"
    assert box == f"  Box: share {X[:, 0].min():g} to {X[:, 0].max():g}, income {X[:, 1].min():g} to {X[:, 1].max():g}."
    assert confident == (
        f"  Confident: where the latent is at most {model.latent_low:.3f} or at least {model.latent_high:.3f}."
    )
    assert probes == "  At 20 points it says what scikit-learn says."


def test_options(call: Call) -> None:
    options = ["--lower", "-1,-2.5", "--upper", "2000", "--thresholds", "-0.5", "0.25"]
    assert call("import", kept("m.pkl"), "-o", "m.npz", "--trust", *options).code == 0
    model = load_model("m.npz")
    assert (model.lower.tolist(), model.upper.tolist()) == ([-1.0, -2.5], [2000.0, 2000.0])
    assert (model.latent_low, model.latent_high) == (-0.5, 0.25)
    assert call("import", "m.pkl", "-o", "m.npz", "--trust", "--percentile", "20").code == 0
    assert load_model("m.npz").digest == from_sklearn(ESTIMATOR, percentile=20.0).digest


def test_many_inputs_do_not_hide_the_rest(call: Call) -> None:
    wide = GaussianProcessClassifier(RBF(3.0), optimizer=None).fit(RNG.random((20, 9)), [0, 1] * 10)
    said = call("import", kept("m.pkl", wide), "-o", "m.npz", "--trust")
    assert said.out.splitlines()[1].endswith(" and 3 more.")


def test_several_classes(call: Call) -> None:
    labels = np.array(["low", "mid", "top"])[np.digitize(X[:, 0], [0.3, 0.7])]
    rest, pairs = fitted(labels), fitted(labels, multi_class="one_vs_one")
    said = call("import", kept("m.pkl", rest), "-o", "m.npz", "--trust", "--class", "mid")
    assert said.code == 0
    assert load_model("m.npz").digest == from_sklearn(rest, classes="mid").digest
    assert call("import", kept("m.pkl", pairs), "-o", "m.npz", "--trust", "--class", "low", "--class", "top").code == 0
    assert load_model("m.npz").digest == from_sklearn(pairs, classes=("low", "top")).digest
    said = call("import", "m.pkl", "-o", "m.npz", "--trust")
    assert said.code == 2
    assert said.err.splitlines()[1].endswith("'low', 'mid', 'top', one_vs_one: give two of them as classes")


@pytest.mark.parametrize("compress", [0, 3, ("gzip", 3), ("bz2", 3), ("xz", 3)])
def test_files_of_joblib(compress: Any, call: Call) -> None:
    joblib.dump(ESTIMATOR, "m.joblib", compress=compress)
    assert call("import", "m.joblib", "-o", "m.npz", "--trust").code == 0
    assert load_model("m.npz").digest == from_sklearn(ESTIMATOR).digest


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_files_of_every_protocol(protocol: int, tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(ESTIMATOR, protocol))
    estimator, notes = load_estimator(tmp_path / "m.pkl", trust=True)
    assert from_sklearn(estimator).digest == from_sklearn(ESTIMATOR).digest
    assert notes == []


class Bomb:
    """Leaves a trace where it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return (os.mkdir, ("trace",))


def test_nothing_is_unpickled_unasked(call: Call) -> None:
    said = call("import", kept("m.pkl", Bomb()), "-o", "m.npz")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "daskab: m.pkl: is not opened, since opening a pickle runs whatever code is in it; if it is your own, "
        "say --trust\n"
    )
    assert not Path("trace").exists()
    assert call("certify", "m.pkl").code == 2
    assert not Path("trace").exists()
    # The warning is true.
    said = call("import", "m.pkl", "-o", "m.npz", "--trust")
    assert said.code == 2
    assert said.err.splitlines()[0] == WARNED
    assert Path("trace").exists()
    assert not Path("m.npz").exists()


def test_a_file_of_another_version(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sklearn.base.__version__", "1.2.3")
        kept("m.pkl")
    said = call("import", "m.pkl", "-o", "m.npz", "--trust")
    assert said.code == 0
    assert said.err.splitlines()[0] == WARNED
    assert "1.2.3" in said.err
    assert all(line.startswith("daskab: warning: ") for line in said.err.splitlines())


# Files that are none.


def deep() -> bytes:
    return b"\x80\x04" + b"(" * 100_000


CONTENTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "m.pkl: is empty"),
    "text": (b"age,income\n1,2\n", "m.pkl: not a pickle that can be opened here ("),
    "zeros": (bytes(1000), "m.pkl: not a pickle that can be opened here ("),
    "utf-16": ("größe".encode("utf-16"), "m.pkl: not a pickle that can be opened here ("),
    "zip": (b"PK\x03\x04rest", "m.pkl: is a zip archive, not a pickled estimator; an .npz model needs no import"),
    "damaged gzip": (b"\x1f\x8b\x08\x00rest", "m.pkl: not a pickle that can be opened here ("),
    "says it is huge": (
        b"\x80\x04\x8e" + (2**62).to_bytes(8, "little"),
        "m.pkl: not a pickle that can be opened here (",
    ),
    "a frame too long": (b"\x80\x04\x95" + b"\xff" * 8, "m.pkl: not a pickle that can be opened here ("),
    "marks without end": (deep(), "m.pkl: not a pickle that can be opened here ("),
    "unknown module": (b"cno_such_module_here\nThing\n.", "m.pkl: not a pickle that can be opened here (No module nam"),
    "a name of two lines": (b"cos\n\x00a\xc3\xa9\x07\n.", "m.pkl: not a pickle that can be opened here ("),
    "a number": (pickle.dumps(3), "estimator: int is neither a GaussianProcessClassifier nor a Pipeline that ends in"),
    "an array": (pickle.dumps(X), "estimator: ndarray is neither a GaussianProcessClassifier nor a Pipeline that ends"),
    "unfitted": (pickle.dumps(StandardScaler()), "estimator: StandardScaler is neither a GaussianProcessClassifier"),
    "kernel": (
        pickle.dumps(fitted(kernel=RationalQuadratic())),
        "kernel: RationalQuadratic is not supported; daskab certifies one RBF or Matern",
    ),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_files_that_are_none(name: str, call: Call) -> None:
    content, message = CONTENTS[name]
    Path("m.pkl").write_bytes(content)
    said = call("import", "m.pkl", "-o", "m.npz", "--trust")
    assert (said.code, said.out) == (2, "")
    *warned, line = said.err.splitlines()
    assert warned == ([] if name in ("empty", "zip") else [WARNED])
    assert line.startswith(f"daskab: {message}")
    assert line.isprintable()
    assert not Path("m.npz").exists()


def test_a_huge_file(call: Call) -> None:
    with open("m.pkl", "wb") as handle:
        handle.truncate(2**40)  # of zeros, which take no room
    said = call("import", "m.pkl", "-o", "m.npz", "--trust")
    assert said.code == 2
    assert len(said.err.splitlines()) == 2


@pytest.mark.parametrize("dump", [pickle.dump, joblib.dump])
def test_a_damaged_file_is_one_line_or_a_model(dump: Callable[..., Any], tmp_path: Path) -> None:
    buffer = io.BytesIO()
    dump(ESTIMATOR, buffer)
    content = buffer.getvalue()
    path = tmp_path / "m.pkl"
    refusals: list[str] = []
    for at in range(0, len(content), 29):
        path.write_bytes(content[:at])
        with pytest.raises(ModelError) as caught:
            load_estimator(path, trust=True)
        refusals.append(str(caught.value))
    assert all(message.isprintable() for message in refusals)


@pytest.mark.parametrize(
    ("name", "value"),
    [("classes_", 3), ("classes_", []), ("base_estimator_", None), ("n_features_in_", "x"), ("multi_class", 1)],
)
def test_an_edited_estimator_is_one_line_or_a_model(name: str, value: Any, call: Call) -> None:
    estimator = copy.deepcopy(ESTIMATOR)
    setattr(estimator[-1], name, value)
    said = call("import", kept("m.pkl", estimator), "-o", "m.npz", "--trust")
    assert said.code in (0, 2)
    assert len(said.err.splitlines()) == (1 if said.code == 0 else 2)


def other_than_files(folder: Path) -> dict[str, Path]:
    (folder / "folder").mkdir()
    os.mkfifo(folder / "fifo")
    return {
        "absent: no such file": folder / "absent",
        "folder: is a directory, expected a pickled estimator": folder / "folder",
        "fifo: is no ordinary file": folder / "fifo",
    }


@pytest.mark.parametrize("trust", [[], ["--trust"]])
def test_what_is_no_file(trust: list[str], call: Call, tmp_path: Path) -> None:
    for message, path in other_than_files(tmp_path).items():
        said = call("import", path.name, "-o", "m.npz", *trust)
        assert said.code == 2
        assert said.err == f"daskab: {message}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Missing option '-o' / '--output'."),
        (["-o", "no/m.npz"], "no/m.npz: there is no such directory to write it in"),
        (["-o", "m.pkl"], "m.pkl: is the estimator itself; write the model elsewhere"),
        (["-o", "m.npz", "--lower", "0"], "--lower, --upper: one is given without the other; give both or neither"),
        (
            ["-o", "m.npz", "--lower", "0,a", "--upper", "1"],
            "--lower: '0,a' is not a number, or numbers with commas between them",
        ),
        (["-o", "m.npz", "--thresholds", "0"], "Option '--thresholds' requires 2 arguments."),
    ],
)
def test_wrong_options(options: list[str], message: str, call: Call) -> None:
    said = call("import", "--trust", kept("m.pkl"), *options)
    assert (said.code, said.err) == (2, f"daskab: {message}\n")
    assert pickle.loads(Path("m.pkl").read_bytes()) is not None


def test_boxes_that_do_not_fit(call: Call) -> None:
    for lower, upper, message in [
        ("0,1,2", "3", "box: is not a pair (lower, upper), each a number or of shape (2,)"),
        ("5", "3", "lower: input x0 (index 0) has lower 5 above upper 3"),
        ("0", "nan", "box: nan is not a finite number"),
    ]:
        said = call("import", kept("m.pkl"), "-o", "m.npz", "--trust", "--lower", lower, "--upper", upper)
        assert (said.code, said.err.splitlines()) == (2, [WARNED, f"daskab: {message}"])
