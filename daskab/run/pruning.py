"""The last nights are kept, and of older ones what is still needed; a run goes when nothing refers to it any more."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from daskab.errors import BusyError, IntegrityError
from daskab.files import remove_folder, storage_options
from daskab.run.lease import one_writer
from daskab.run.nights import CURRENT, Kept, Night, Nights, kept_in
from daskab.run.sandwich.layout import PARTS


@dataclass(frozen=True)
class Pruned:
    """What was removed: names of runs, and how many nights; or why nothing was."""

    runs: tuple[str, ...] = ()
    nights: int = 0
    why_not: str | None = None


def prune(nights: Nights, tonight: Night, keep: int) -> Pruned:
    """Keep the last nights, the one that ends now among them, and those with the last sealed result of its models.

    Nothing is removed while what refers to runs cannot be read. A run that a process is working on stays, and with it
    the night that refers to it.
    """
    shutil.rmtree(str(nights.folder / "removed"), ignore_errors=True)  # what a killed night was at
    with_last = {found[0] for model in tonight.models if (found := nights.last_sealed(model.label))}
    recent = {kept.number for kept in nights.past[-(keep - 1) :]}
    old = [kept for kept in nights.past if kept.number not in recent | with_last]
    if not old:
        return Pruned()
    runs = nights.folder.parent.parent
    try:
        needed = _referred_to(runs, nights, [kept for kept in nights.past if kept not in old]) | tonight.runs
    except IntegrityError as error:
        return Pruned(why_not=str(error))
    removed: list[str] = []
    for name in sorted(set[str]().union(*(kept.runs for kept in old)) - needed):
        if _remove(runs / name, nights.folder / "removed" / name):
            removed.append(name)
        else:
            needed.add(name)
            old = [kept for kept in old if name not in kept.runs]
    for kept in old:
        kept.path.unlink()
    return Pruned(tuple(removed), len(old))


def _referred_to(runs: Path, nights: Nights, kept: Iterable[Kept]) -> set[str]:
    """Runs that nights of any name, or sweeps, refer to; IntegrityError if it cannot be known."""
    others = [folder for folder in nights.folder.parent.iterdir() if folder.name != nights.folder.name]
    needed: set[str] = set()
    for one in (*kept, *(one for folder in others for one in kept_in(folder))):
        if one.night is None:
            raise IntegrityError(one.damage)
        needed |= one.runs
    for folder in others:
        if (folder / CURRENT).exists():
            needed |= Night.read(folder / CURRENT).runs
    return needed.union(*map(_of_sweep, (runs / "sweeps").glob("*.zarr")))


def _of_sweep(path: Path) -> set[str]:
    import xarray as xr  # here, for it takes half a second that only sweeps need

    try:
        with xr.open_zarr(str(path), storage_options=storage_options(path)) as sweep:
            return {str(name) for name in sweep["run"].values.ravel()}
    except Exception as error:  # zarr and xarray have many for what is damaged
        raise IntegrityError(f"{path}: cannot be read ({type(error).__name__})") from None


def _remove(folder: Path, aside: Path) -> bool:
    """Remove a run unless a process is working on it; whether it is gone."""
    if not folder.exists():
        return True
    try:
        with ExitStack() as held:
            parts = folder / PARTS
            for each in (folder, *(sorted(parts.iterdir()) if parts.is_dir() else ())):
                held.enter_context(one_writer(each))
            remove_folder(folder, aside)
    except BusyError:
        return False
    return True
