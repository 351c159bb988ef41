"""Verify a sealed run: every digest, the witnesses in ball arithmetic, other attacks, a share of its bounds proved by
a second path, and a share of its tasks done anew.

Nothing is written into the run: what is done anew is done in a copy that is thrown away.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from daskab.attack.attacker import attacker
from daskab.attack.attained import attained_change, crosses_thresholds
from daskab.attack.difference import fewest_for_difference
from daskab.attack.several import SeveralWitness
from daskab.errors import IncompleteError, IntegrityError
from daskab.files import copy_here
from daskab.model.expansion import KernelExpansion
from daskab.run.aggregate import done_records, evidence_digest
from daskab.run.certificate import Certificate
from daskab.run.driver import Drive, read_sealed
from daskab.run.executors import Ended, Executor
from daskab.run.lease import LEASE, LOCK
from daskab.run.plan import numerics
from daskab.run.queue import answer
from daskab.run.records import Assignment, Record, recorded
from daskab.run.workspace import Workspace, open_workspace
from daskab.sandwich.sums import ONE_EQ, EQSum
from daskab.verify.balls import Balls
from daskab.verify.checks import Check
from daskab.verify.second import how_sure, second_path, sum_anew

Array = NDArray[np.float64]

MOST_BALLS = 3_000_000
"""Centres x inputs x points beyond which only some of the witnesses are evaluated: about a second and a half."""

MOST_ATTACKED = 40
STARTS = 16
"""Inputs attacked again, and starting points for each."""


def verify_run(folder: Path, executor: Executor, *, share: float, seed: int) -> Iterator[Check]:
    """Verify a run step by step.

    Parameters
    ----------
    folder : of a run with a sealed certificate
    executor : where tasks that are done anew run
    share : of the bounds that are proved a second time and of the tasks that are done anew, each at random; 0 to 1, at
        least one unless 0
    seed : of those choices and of the other attacks

    Yields
    ------
    Check
        As each is done. Where one does not hold nothing that the certificate says can be relied on.

    Raises
    ------
    IntegrityError
        If plan or model are missing, damaged, or do not fit each other.
    IncompleteError
        If the run is not sealed.
    DaskabError
        If ball arithmetic is not installed.
    """
    space = open_workspace(folder)
    if not space.certificate.exists():
        raise IncompleteError(f"{folder}: is not sealed; the command that began it goes on with it")
    balls = Balls(space.model)
    question, rng = space.plan.question, np.random.default_rng(seed)
    yield Check("plan", True, f"run {question.run_id} of model {question.model_digest[:16]}, which is the one stored")
    try:
        certificate = read_sealed(folder, question)
    except IntegrityError as error:
        yield Check("seal", False, str(error))
        return
    yield Check("seal", True, "the certificate is as it was sealed")
    done = done_records(space, recorded(space.records))
    yield check_records(space, certificate, done)
    yield from check_witnesses(space.model, certificate, balls, rng)
    yield check_other_attacks(space.model, certificate, rng, seed)
    tally = second_path(space.model, certificate, balls, share, np.random.default_rng([seed, 2]))
    yield tally.check
    yield sum_anew(certificate)
    yield do_anew(space, executor, list(done), share, rng)
    if tally.check.held:
        yield how_sure(tally)


def check_records(space: Workspace, certificate: Certificate, done: dict[str, Record]) -> Check:
    """Whether everything the certificate was drawn from is in the store as it was written.

    ``done`` are the records that fit the store. One that does not is no matter where an earlier try left it behind, as
    those that do then make up all the evidence that the certificate names.
    """
    tasks = recorded(space.records)
    unfit = [task.key for task in tasks if task.key not in done]
    if unfit and evidence_digest(space, done) != certificate.evidence_sha256:
        return Check("records", False, f"{len(unfit)} of {len(tasks)} do not fit the store, {unfit[0]} first")
    said = f"{len(done)}, each with the digest of what is stored"
    if unfit:
        said += f"; {len(unfit)} more, {unfit[0]} first, were left by an earlier try and count for nothing"
    others = sorted({path.name for path in space.records.glob("*.json")} - {f"{task.key}.json" for task in tasks})
    if others:
        said += f"; {len(others)} other files there count for nothing, {others[0]} first"
    return Check("records", True, said)


def check_witnesses(
    model: KernelExpansion, certificate: Certificate, balls: Balls, rng: np.random.Generator
) -> Iterator[Check]:
    """Whether every pair of points attains what the certificate says, in ball arithmetic."""
    most = max(1, MOST_BALLS // (2 * model.n_centres * model.n_inputs))
    names = certificate.input_names
    inputs = np.sort(rng.permutation(len(names))[:most])
    if certificate.witnesses is None:
        raise IntegrityError(f"run {certificate.run_id}: is sealed, but holds no witnesses")
    wrong = []
    for d in inputs.tolist():
        x, x_prime = certificate.witnesses.pair(d)
        change = balls.latent(x_prime) - balls.latent(x)
        # That 0 is attained needs no pair; and no ball tells that a point and itself are exactly 0 apart.
        attains = certificate.attained[d] == 0.0 or balls.at_least(change, certificate.attained[d])
        within = np.array_equal(x, x_prime) or balls.at_most(change, certificate.upper_bound[d])
        if not (model.domain.is_change(d, x, x_prime) and attains and within):
            wrong.append(names[d])
    said = f"{inputs.size} of {len(names)} in ball arithmetic: each attains its value and no more than its bound"
    if wrong:
        said = (
            f"the pair of input {wrong[0]} attains less than certified, or more than its bound, or is not in the domain"
        )
    yield Check("witnesses", not wrong, said)
    attack = certificate.attack
    if attack is None:
        return
    x, x_prime = np.array(attack.x), np.array(attack.x_prime)
    low, high = sorted((balls.latent(x), balls.latent(x_prime)), key=lambda ball: float(ball.mid()))
    held = (
        model.domain.n_changes(x, x_prime) == attack.n_inputs
        and model.domain.allows(x, x_prime)
        and balls.at_most(low, -math.inf if model.latent_low is None else model.latent_low)
        and balls.at_least(high, math.inf if model.latent_high is None else model.latent_high)
    )
    said = f"changes {attack.n_inputs} inputs and crosses both thresholds, in ball arithmetic"
    yield Check("attack", held, said if held else "does not do what the certificate says")


def check_other_attacks(
    model: KernelExpansion, certificate: Certificate, rng: np.random.Generator, seed: int, total: EQSum = ONE_EQ
) -> Check:
    """Whether attacks from other starting points, with the kernel as a ``total``, stay below what is certified."""
    names = certificate.input_names
    inputs = np.sort(rng.permutation(len(names))[:MOST_ATTACKED])
    attacks = attacker(model, STARTS, seed + 1, total)
    for d in inputs.tolist():
        if attained_change(model, *attacks.best_pair(model.domain.changes[d])) > certificate.upper_bound[d]:
            return Check("other attacks", False, f"input {names[d]} attains more than its bound")
    if model.delta is not None:
        found = attacks.fewest_changes()
        certified = len(names) + 1 if certificate.no_attack_exists else certificate.inputs_required or 0
        if found is not None and found.n_inputs < certified and crosses_thresholds(model, found.x, found.x_prime):
            return Check("other attacks", False, f"one changes {found.n_inputs} inputs where {certified} are certified")
        summed = certificate.inputs_required_by_sum or len(names) + 1
        far = fewest_for_difference(model, STARTS // 4, seed + 1, total)
        if far is not None and far.n_inputs < summed and moves_by(model, far, model.delta):
            said = f"one changes {far.n_inputs} inputs and the latent by {model.delta:g}, which the sum excludes"
            return Check("other attacks", False, said)
    return Check(
        "other attacks", True, f"{inputs.size} inputs attacked anew, and several at once: none beats its bound"
    )


def moves_by(model: KernelExpansion, pair: SeveralWitness, most: float) -> bool:
    """Whether the latents of two points are certainly farther apart than that, which rounding may hide."""
    return attained_change(model, pair.x, pair.x_prime) > most


class Anew:
    """An executor that does chosen tasks, and refuses any other: it would have to be done, so it is missing."""

    def __init__(self, inner: Executor, chosen: Sequence[str]) -> None:
        self.inner = inner
        self.name = inner.name
        self.chosen = set(chosen)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def run(self, assignments: Iterable[Assignment | None]) -> Iterator[Ended | None]:
        """Do the tasks for as long as they are chosen ones."""
        yield from self.inner.run(map(self.checked, assignments))

    def checked(self, given: Assignment | None) -> Assignment | None:
        """What is given, if that was chosen."""
        if given is not None and given.task.key not in self.chosen:
            raise IntegrityError(f"{given.task.key} is missing or damaged")
        return given


def do_anew(space: Workspace, executor: Executor, keys: Sequence[str], share: float, rng: np.random.Generator) -> Check:
    """Whether a share of the tasks of these keys, done anew, and all aggregated anew give the same certificate."""
    question = space.plan.question
    if question.numerics != numerics():
        changed = sorted(k for k, v in numerics().items() if question.numerics.get(k) != v)
        return Check("anew", False, f"cannot be done here: the run was made with another {', '.join(changed)}")
    count = min(len(keys), math.ceil(share * len(keys)))
    chosen = sorted(rng.permutation(keys)[:count].tolist())
    with tempfile.TemporaryDirectory(prefix="daskab-verify-") as scratch:
        copy = Path(scratch) / question.run_id
        copy_here(space.folder, copy, LOCK, LEASE, "certificate*.json")
        for key in chosen:
            (copy / "records" / f"{key}.json").unlink()
        try:
            outcome = answer(Drive(question, space.model, Path(scratch)), Anew(executor, chosen))
        except IntegrityError as error:
            return Check("anew", False, str(error))
        if not outcome.sealed:
            return Check("anew", False, "a task could not be done")
        same = outcome.certificate.to_json() == space.certificate.read_text(encoding="utf-8")
    done = f"{count} of {len(keys)} tasks done anew, all of them aggregated anew"
    return Check("anew", same, f"{done}: {'the same certificate to the byte' if same else 'another certificate'}")
