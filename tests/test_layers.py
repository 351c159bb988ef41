"""The house rule: imports point one way only, and the mathematics knows nothing of the service."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import daskab

ROOT = Path(daskab.__file__).parent
ROOMS = [
    "_version",
    "_compile",
    "errors",
    "datasets",
    "model",
    "bound",
    "joint",
    "attack",
    "recheck",
    "run",
    "verify",
    "report",
    "cli",
]
PURE = {"bound", "joint", "attack", "recheck"}
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
        if here in PURE:
            assert name.split(".")[0] not in FORBIDDEN_IN_PURE, f"{path}: {here} may not import {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "recheck").glob("*.py")), ids=lambda p: p.name)
def test_the_second_path_shares_nothing_with_the_first(path: Path) -> None:
    for name in imports(path):
        assert not name.startswith("daskab") or room(name) in {"model", "recheck"}, f"{path}: imports {name}"
        assert name.split(".")[0] != "numba", f"{path}: is compiled"


def test_the_rule_can_fail(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from daskab.run.driver import run_question\nimport zarr\n")
    assert "daskab.run.driver" in imports(wrong)
    assert room("daskab.run.driver") not in ROOMS[: ROOMS.index("bound") + 1]
