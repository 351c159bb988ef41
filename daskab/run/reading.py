"""A run read back for a report, sealed or not: nothing is written, a running one is not disturbed.

Of a run that is not sealed, what its finished tasks prove is drawn from the evidence as the driver would if it stopped
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskab.errors import IncompleteError, IntegrityError
from daskab.model.expansion import KernelExpansion
from daskab.run import joint
from daskab.run.aggregate import (
    UnitBounds,
    bounds_alone,
    change_bounds,
    conclude,
    done_records,
    enhanced_bound,
    goals_of,
    met_attack,
    several_attack,
    unit_bounds,
)
from daskab.run.certificate import Certificate, Witnesses
from daskab.run.driver import read_sealed
from daskab.run.plan import Question
from daskab.run.provenance import read_provenance
from daskab.run.records import Task, recorded
from daskab.run.sandwich.attacks import read_pairs
from daskab.run.sandwich.conclusion import SEALED, check_sealed, sum_of
from daskab.run.sandwich.layout import PARTS, is_sandwich, open_sandwich
from daskab.run.store import MISSING
from daskab.run.witnesses import attack_found, met_in_round
from daskab.run.workspace import Workspace, open_workspace


@dataclass(frozen=True, eq=False)
class Reading:
    """What is known of a run."""

    folder: Path
    question: Question
    model: KernelExpansion
    certificate: Certificate
    witnesses: Witnesses
    sealed: bool  #: whether the certificate is final

    @property
    def spent(self) -> dict[str, Any]:
        """What its provenance says of times and places; nothing where there is none."""
        return read_provenance(self.folder)


@dataclass(frozen=True, eq=False)
class RunReading(Reading):
    """The same of one that is not made of others."""

    space: Workspace
    units: UnitBounds  #: of every logical unit, before enhancements


@dataclass(frozen=True, eq=False)
class PartsReading(Reading):
    """The same of one that is."""

    parts: tuple[Reading, ...]
    error: float  #: no farther is the sum of its parts from its model


def read_run(folder: Path) -> Reading:
    """Read a run.

    Parameters
    ----------
    folder : of a run, sealed or not

    Returns
    -------
    Reading

    Raises
    ------
    IncompleteError
        If it is made of others, and none of them has been begun.
    IntegrityError
        If it is none, or what is read of it is damaged.
    """
    if is_sandwich(folder):
        return _of_parts(folder)
    if not (folder / "plan.json").exists():
        raise IntegrityError(f"{folder}: is not a run, there is no plan.json in it")
    space = open_workspace(folder)
    return _final(space) if space.certificate.exists() else _so_far(space)


def _final(space: Workspace) -> Reading:
    certificate = read_sealed(space.folder, space.plan.question)
    units = UnitBounds(space.evidence.read("bound"), space.evidence.read("status"))
    groups = done_records(space, [Task("groups", k) for k in range(len(space.model.domain.groups))])
    upper = change_bounds(space, bounds_alone(space, units), groups)
    if np.any(units.status == MISSING) or np.any(certificate.upper_bound > upper) or certificate.witnesses is None:
        raise IntegrityError(
            f"{space.evidence.path}: its bounds are not those of the certificate; "
            f"run again, after removing {space.certificate}"
        )
    return _of_run(space, certificate, certificate.witnesses, units, sealed=True)


def _so_far(space: Workspace) -> Reading:
    done = done_records(space, recorded(space.records))
    known = attack_found(space, done)
    n_rounds = space.laid_out("round")
    if space.plan.question.method == "adaptive":
        for number in range(n_rounds):
            known = met_in_round(space, done, number, known)
    units = unit_bounds(space, n_rounds, goals_of(space, known[0]), done)
    alone = bounds_alone(space, units)
    for number in range(space.laid_out("enhancement")):
        if all(task.key in done for task in space.tasks("enhancement", number)):
            d, _ = space.evidence.enhancement(number)
            alone[d] = min(alone[d], enhanced_bound(space, number))
    rounds = [joint.Search(*space.evidence.joint_round(number)[1:]) for number in range(space.laid_out("joint"))]
    together = joint.conclude(space, rounds, done)
    attack = met_attack(space.model, several_attack(space, done), together)
    certificate = conclude(space, units, alone, known, attack, together, done, all_done=False)
    assert certificate.witnesses is not None  # `conclude` gives them
    return _of_run(space, certificate, certificate.witnesses, units, sealed=False)


def _of_run(
    space: Workspace, certificate: Certificate, witnesses: Witnesses, units: UnitBounds, *, sealed: bool
) -> RunReading:
    return RunReading(space.folder, space.plan.question, space.model, certificate, witnesses, sealed, space, units)


def _of_parts(folder: Path) -> Reading:
    """Of a run that is made of others, from all of them as they are."""
    run, sealed = open_sandwich(folder), (folder / SEALED).exists()
    pairs = read_pairs(folder, run.model)
    parts = [] if pairs is None else [folder / PARTS / question.run_id for question in run.questions(pairs)]
    if sealed and (pairs is None or not all((part / SEALED).exists() for part in parts)):
        raise IntegrityError(
            f"{folder}: some of what its certificate was drawn from is lost; run again, which mends it"
        )
    if pairs is None or not all((part / "plan.json").exists() for part in parts):
        raise IncompleteError(f"{folder}: not all of its parts are begun; the command that began it goes on with it")
    readings = tuple(read_run(part) for part in parts)
    certificate = sum_of(run, pairs, [reading.certificate for reading in readings])
    if sealed:
        check_sealed(run, certificate)
    known = folder, run.question, run.model, certificate, pairs.witnesses, sealed
    return PartsReading(*known, readings, run.parts.error)
