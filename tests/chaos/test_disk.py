"""Chaos: the disk fills up in mid-run, for real, on a small file system of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples import PATIENCE, mixed_model, run_folder, start

from daskab import save_model

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="needs root to mount a tmpfs"),
]

SMALL = ("certify", "small.npz", "--method", "fixed", "--slices", "2", "--runs", "disk/small")
LARGE = ("certify", "large.npz", "--method", "fixed", "--slices", "20", "--json", "--runs", "disk/large")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with a sealed run on it, and room for about half of another."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "none", folder], check=True)
    try:
        save_model(mixed_model(4, 3), tmp_path / "small.npz")
        save_model(mixed_model(20, 12), tmp_path / "large.npz")
        assert call(tmp_path, *SMALL)[0] == 0
        used = shutil.disk_usage(folder).used
        assert call(tmp_path, *LARGE)[0] == 0
        needed = shutil.disk_usage(folder).used - used
        shutil.rmtree(folder / "large")
        subprocess.run(["mount", "-o", f"remount,size={used + needed // 2}", folder], check=True)
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def call(folder: Path, *args: str) -> tuple[int, str, str]:
    running = start(*args, cwd=folder, group=True)
    out, err = running.communicate(timeout=PATIENCE)
    return running.returncode, out, err


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("cluster", ["inline", pytest.param("processes", marks=pytest.mark.long)])
def test_a_full_disk_is_one_line_and_what_was_sealed_stays(cluster: str, disk: Path, tmp_path: Path) -> None:
    before = contents(disk / "small")
    code, out, err = call(tmp_path, *LARGE, "--cluster", cluster)
    assert (code, out) == (3, "")
    assert len(err.splitlines()) == 1, err
    assert err.startswith(f"daskab: disk/large/{run_folder(disk / 'large').name}"), err
    assert "No space left on device" in err
    assert contents(disk / "small") == before
    assert not (run_folder(disk / "large") / "certificate.json").exists()
    # With room again the same command goes on and comes to what it comes to in peace.
    subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
    code, out, err = call(tmp_path, *LARGE, "--cluster", cluster)
    assert (code, err) == (0, "")
    assert out == call(tmp_path, *LARGE[:-1], "elsewhere")[1]


def test_a_sealed_run_on_a_disk_that_is_read_only_is_found_and_verified(tmp_path: Path) -> None:
    save_model(mixed_model(4, 3), tmp_path / "small.npz")
    sealed = call(tmp_path, *SMALL)
    runs = tmp_path / "disk" / "small"
    subprocess.run(["mount", "--bind", runs, runs], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", runs], check=True)
        assert call(tmp_path, *SMALL) == sealed
        code, out, err = call(tmp_path, "verify", str(run_folder(runs)))
        assert (code, err) == (0, "")
        assert out.endswith(": verified\n")
        code, out, err = call(tmp_path, *SMALL, "--set-nodes", "0", "--rtol", "0.1", "--method", "adaptive")
        assert (code, out) == (2, "")
        assert "Read-only file system" in err
    finally:
        subprocess.run(["umount", "--lazy", runs], check=True)
