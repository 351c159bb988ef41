"""The house rule: imports point one way only, and the mathematics knows nothing of the service."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import daskab

ROOT = Path(daskab.__file__).parent
ROOMS = [
    "_version",
    "_compile",
    "_elementary",
    "errors",
    "files",
    "datasets",
    "model",
    "linear",
    "bound",
    "sandwich",
    "joint",
    "attack",
    "recheck",
    "run",
    "art",
    "verify",
    "report",
    "cli",
]
PURE = {"linear", "bound", "sandwich", "joint", "attack", "recheck"}
# Weigh gigabytes and clash: `library` imports them, where a model of one is given.
HEAVY = {"GPy", "gpflow", "gpytorch", "tensorflow", "torch"}
FORBIDDEN_IN_PURE = {
    "dask",
    "distributed",
    "zarr",
    "xarray",
    "time",
    "datetime",
    "os",
    "pathlib",
    "json",
    "click",
}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module))
            if node.module == "daskab":
                found |= {f"daskab.{a.name}" for a in node.names}
    return found


def room(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


MODULES = [p for p in sorted(ROOT.rglob("*.py")) if p != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_up(path: Path) -> None:
    here = path.relative_to(ROOT).parts[0].removesuffix(".py")
    above = ROOMS[: ROOMS.index(here) + 1]
    for name in imports(path):
        if name.startswith("daskab."):
            assert room(name) in above, f"{path}: {here} may not import {name}"
        assert name.split(".")[0] not in HEAVY, f"{path}: imports {name}"
        if here in PURE:
            assert name.split(".")[0] not in FORBIDDEN_IN_PURE, f"{path}: {here} may not import {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "recheck").glob("*.py")), ids=lambda p: p.name)
def test_the_second_path_shares_nothing_with_the_first(path: Path) -> None:
    for name in imports(path):
        assert not name.startswith("daskab") or room(name) in {"errors", "model", "recheck"}, f"{path}: imports {name}"
        assert name.split(".")[0] != "numba", f"{path}: is compiled"


SAME_EVERYWHERE = {
    "math": "ceil copysign frexp fsum inf isfinite ldexp nan nextafter sqrt",
    "np": "abs all any arange argmax argsort array array_equal array_split asarray ascontiguousarray bool_ clip "
    "concatenate count_nonzero cumsum diff empty empty_like eye flatnonzero float64 full inf int64 intp isfinite isin "
    "linspace max maximum nan ones random ravel setdiff1d shape sort stack sum tile triu_indices unique vstack where "
    "zeros zeros_like",
}
"""Functions that IEEE 754 or their own code settle to the bit; exp and log are in `_elementary` for that reason."""

OF_THE_BITS = [
    ROOT / "_elementary.py",
    *(p for room in ("bound", "joint", "attack") for p in (ROOT / room).rglob("*.py")),
]


def machine_dependent(source: str) -> set[str]:
    """What in a module may come out otherwise on another processor."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.add("@")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            right = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
            ends = node.left, right
            whole = any(isinstance(n, ast.Constant) and isinstance(n.value, int) for n in ends)
            if not whole and not isinstance(node.right, ast.Name):
                found.add("**")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            allowed = SAME_EVERYWHERE.get(node.value.id)
            if allowed is not None and node.attr not in allowed.split():
                found.add(f"{node.value.id}.{node.attr}")
    return found


@pytest.mark.parametrize("path", OF_THE_BITS, ids=lambda p: str(p.relative_to(ROOT)))
def test_bits_do_not_depend_on_the_machine(path: Path) -> None:
    assert not machine_dependent(path.read_text())


def test_the_rule_of_the_bits_can_fail() -> None:
    source = "a @ b\nx ** 0.5\nmath.exp(1.0)\nnp.exp(x)\nnp.linalg.eigh(a)\nmath.sqrt(2.0) ** 2"
    assert machine_dependent(source) == {"@", "**", "math.exp", "np.exp", "np.linalg"}


def test_the_rule_can_fail(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from daskab.run.driver import Drive\nimport zarr\n")
    assert "daskab.run.driver" in imports(wrong)
    assert room("daskab.run.driver") not in ROOMS[: ROOMS.index("bound") + 1]


@pytest.mark.parametrize(
    ("module", "others"), [("daskab.run.tasks", {"distributed", "pydantic", "click"}), ("daskab.cli", {"distributed"})]
)
def test_a_process_loads_what_it_needs(module: str, others: set[str]) -> None:
    """Every worker and every command pays for what it imports, in seconds."""
    code = f"import {module}, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numba" in loaded
    assert not {"sklearn", "scipy.linalg", "scipy.optimize", "pandas", "xarray", *others} & set(loaded)


def test_every_public_name_is_there() -> None:
    assert {name for name in daskab.__all__ if getattr(daskab, name, None) is None} == set()
    assert {"attack_points", "certify", "datasets", "from_sklearn", "__version__"} <= set(daskab.__all__)
