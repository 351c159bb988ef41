"""A model of another kernel than EQ: a run for each part of it, and the certificate they come to (sandwich/METHOD)."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._version import VERSION
from daskab.attack.attacker import attacker
from daskab.attack.attained import attained_change
from daskab.bound.topn import inputs_required, largest_sums, lower_side
from daskab.errors import IntegrityError, ModelError
from daskab.files import make_folder, reaching, write_atomically
from daskab.model.expansion import KernelExpansion
from daskab.model.npz import UNREADABLE, load_model, save_model
from daskab.run.aggregate import attack_of
from daskab.run.certificate import Certificate, Witnesses
from daskab.run.driver import Outcome
from daskab.run.plan import Question, canonical_json
from daskab.sandwich.parts import Parts, parts_by, parts_of
from daskab.sandwich.sums import EQSum

Array = NDArray[np.float64]

SUM, PAIRS, MODEL, PARTS = "sum.json", "pairs.npz", "model.npz", "parts"
"""Of such a run: what is asked and how the kernel was replaced; the attacks; the model; the runs of its parts."""

NEAR = 0.02
"""Of what the n-th largest change attains: how far the bounds of all parts may stay above what those attain."""

LAZY = 0.5
"""Of how far a change is below the n-th largest: the same, for what does not matter."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """What the attacks on the model itself found."""

    witnesses: Witnesses  #: for each of its C changes
    attack: Array  #: (2, D) points of the attack of fewest changes; NaN if none was found

    def attained(self, model: KernelExpansion) -> Array:
        """What the witnesses attain (C,), rounded down."""
        pairs = map(self.witnesses.pair, range(len(model.domain.changes)))
        return np.array([attained_change(model, x, x_prime) for x, x_prime in pairs])


@dataclass(frozen=True, eq=False)
class Sandwich:
    """A run that is made of others."""

    folder: Path
    question: Question
    model: KernelExpansion
    parts: Parts
    pairs: Pairs

    @classmethod
    def of(cls, question: Question, model: KernelExpansion, runs: Path) -> Sandwich:
        """Lay it out in a directory of runs, or go on with what was laid out.

        Raises
        ------
        IntegrityError
            If what was laid out is damaged.
        """
        folder = runs / question.run_id
        with reaching(folder):
            if (folder / SUM).exists():
                return open_sandwich(folder, question)
            parts = parts_of(model)
            make_folder(folder)
            save_model(model, folder / MODEL)
            said = {"question": asdict(question), "scales": parts.total.scales.tolist()}
            said |= {"shares": parts.total.shares.tolist(), "error": parts.error}
            write_atomically(folder / SUM, canonical_json(said))
        return cls(folder, question, model, parts, pairs_in(folder, question, model, parts.total))

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is asked of each part: one-input bounds, near enough that all of them together are (METHOD S5)."""
        n = len(self.parts.models)
        slack = () if self.question.rtol is None else tuple(slack_of(self.model, self.pairs, n))
        budget = self.question.node_budget // n  # all parts together cost what one model may
        return tuple(
            replace(self.question, model_digest=part.digest, slack=slack, node_budget=budget)
            for part in self.parts.models
        )

    def conclude(self, outcomes: Sequence[Outcome]) -> Outcome:
        """What those of the parts come to together, in their order."""
        sealed = all(outcome.sealed for outcome in outcomes)
        certificate = certificate_of(self, [outcome.certificate for outcome in outcomes])
        text, path = certificate.to_json(), self.folder / "certificate.json"
        partial = self.folder / "certificate.incomplete.json"
        with reaching(self.folder):
            found = sealed and path.exists()
            if found and path.read_text(encoding="utf-8") != text:
                raise IntegrityError(f"{path}: is not what its parts come to; remove it and run again")
            if sealed:
                write_atomically(path, text)
                partial.unlink(missing_ok=True)
            else:
                write_atomically(partial, text)
        failures = tuple(failure for outcome in outcomes for failure in outcome.failures)
        return Outcome(certificate, self.folder, sealed=sealed, found=found, failures=failures)


def is_sandwich(folder: Path) -> bool:
    """Whether a run is one that is made of others."""
    return (folder / SUM).exists()


def open_sandwich(folder: Path, question: Question | None = None) -> Sandwich:
    """Read one back, checking that its parts are those of its model.

    Raises
    ------
    IntegrityError
        If it is damaged, or is not of ``question``.
    """
    asked, total, error = read_sum(folder)
    try:
        model = load_model(folder / MODEL)
    except ModelError as failed:
        raise IntegrityError(f"{failed}; move the run away") from None
    if asked.run_id != folder.name or (question is not None and asked != question):
        raise IntegrityError(f"{folder / SUM}: answers another question than the one asked; move the run away")
    if model.digest != asked.model_digest:
        raise IntegrityError(f"{folder / MODEL}: is not the model that was asked about; move the run away")
    shaped = total.scales.ndim == 1 and total.scales.shape == total.shares.shape
    if not (shaped and total.scales.size and np.all(total.scales > 0.0) and np.all(total.shares > 0.0)):
        raise IntegrityError(f"{folder / SUM}: scales and shares are not positive numbers; move the run away")
    parts = parts_by(model, total)
    # Proved anew here, where the last bits may come out otherwise; a stored one that is far less proves too much.
    if not parts.error * (1.0 - 1e-9) <= error < math.inf:
        raise IntegrityError(f"{folder / SUM}: its error is {error!r}, below the {parts.error!r} proved; move it away")
    pairs = pairs_in(folder, asked, model, total)
    return Sandwich(folder, asked, model, replace(parts, error=max(error, parts.error)), pairs)


def slack_of(model: KernelExpansion, pairs: Pairs, n_parts: int) -> Array:
    """How far (D,) the bound of each part may stay above what it attains, from what the model itself attains."""
    attained = pairs.attained(model)
    level = float(attained.max(initial=0.0))
    if model.delta is not None:
        n = inputs_required(largest_sums(attained, towards=-math.inf), model.delta)
        level = model.delta / attained.size if n is None else float(np.sort(attained)[-n])
    of_changes = np.maximum(NEAR * level, LAZY * (level - attained)) / n_parts
    slack = np.empty(model.n_inputs)
    for inputs, most in zip(model.domain.changes, of_changes.tolist(), strict=True):
        slack[list(inputs)] = most
    return slack


def pairs_in(folder: Path, question: Question, model: KernelExpansion, total: EQSum) -> Pairs:
    """The attacks of a run, made if they are not there."""
    with reaching(folder):
        pairs = read_pairs(folder, model)
        if pairs is None:
            pairs = attacked(model, question, total)
            write_pairs(folder, pairs)
    return pairs


class Sum(NamedTuple):
    """What is asked, and how the kernel was replaced."""

    question: Question
    total: EQSum
    error: float


def read_sum(folder: Path) -> Sum:
    """What was written down when such a run was laid out.

    Raises
    ------
    IntegrityError
        If it cannot be read.
    """
    try:
        said = json.loads((folder / SUM).read_text(encoding="utf-8"))
        total = EQSum(np.array(said["scales"], dtype=np.float64), np.array(said["shares"], dtype=np.float64))
        return Sum(Question(**said["question"]), total, float(said["error"]))
    except (OSError, ValueError, TypeError, LookupError) as failed:
        raise IntegrityError(f"{folder / SUM}: not readable ({failed}); move the run away") from None


def attacked(model: KernelExpansion, question: Question, total: EQSum) -> Pairs:
    """Attack everything that counts as one change, then several at once from the strongest."""
    attacks = attacker(model, question.attack_starts, question.attack_seed, total)
    found = [attacks.best_pair(inputs) for inputs in model.domain.changes]
    x = np.array([pair[0] for pair in found])
    x_prime = np.array([pair[1] for pair in found])
    several = np.full((2, model.n_inputs), np.nan)
    moved_to = x_prime if model.domain.groups else np.diagonal(x_prime).copy()
    pairs = Pairs(Witnesses(x, moved_to), several)
    if model.delta is None:
        return pairs
    strongest = np.argsort(-pairs.attained(model), kind="stable")[: question.attack_starts]
    fewest = attacks.fewest_changes(x[strongest])
    if fewest is None or attack_of(model, fewest.x, fewest.x_prime) is None:
        return pairs
    return Pairs(pairs.witnesses, np.stack([fewest.x, fewest.x_prime]))


def write_pairs(folder: Path, pairs: Pairs) -> None:
    """Keep what attacks found."""
    content = io.BytesIO()
    np.savez(content, x=pairs.witnesses.x, moved_to=pairs.witnesses.moved_to, attack=pairs.attack)
    write_atomically(folder / PAIRS, content.getvalue())


def read_pairs(folder: Path, model: KernelExpansion) -> Pairs | None:
    """What attacks found; None where that is not known, or no longer readable: they are made again."""
    try:
        with (folder / PAIRS).open("rb") as handle:
            kept = np.load(handle, allow_pickle=False)
            x, moved_to, attack = kept["x"], kept["moved_to"], kept["attack"]
    except (*UNREADABLE, LookupError):
        return None
    c, d = len(model.domain.changes), model.n_inputs
    if x.shape != (c, d) or moved_to.shape != ((c, d) if model.domain.groups else (d,)) or attack.shape != (2, d):
        return None
    whole = all(array.dtype == np.float64 for array in (x, moved_to, attack))
    return Pairs(Witnesses(x, moved_to), attack) if whole and np.all(np.isfinite([*x])) else None


def certificate_of(run: Sandwich, parts: Sequence[Certificate]) -> Certificate:
    """Add up the parts' bounds, and say what follows for the model (sandwich/METHOD S1).

    Raises
    ------
    IntegrityError
        If the parts are others, or an attack does more than is proved: then daskab is wrong.
    """
    q, model = run.question, run.model
    if [part.model_digest for part in parts] != [part.digest for part in run.parts.models]:
        raise IntegrityError(f"{run.folder}: certificates are not those of its parts")
    twice = 2.0 * run.parts.error
    upper = np.array(
        [largest_sums([*each, twice], towards=math.inf)[-1] for each in np.array([p.upper_bound for p in parts]).T]
    )
    stays = [bool(np.all(model.domain.frozen[list(inputs)])) for inputs in model.domain.changes]
    upper[stays] = 0.0
    names, attained = model.domain.change_names(model.input_names), run.pairs.attained(model)
    attack = attack_of(model, *run.pairs.attack) if np.all(np.isfinite(run.pairs.attack)) else None
    if not np.all(upper >= attained):
        c = int(np.flatnonzero(~(upper >= attained))[0])
        raise IntegrityError(
            f"{run.folder}: {names[c]} attains {attained[c]!r}, above its bound {upper[c]!r}; "
            "this is a fault in daskab, please report it with the run directory"
        )
    by_sum, at_best = None, None
    if model.delta is not None:
        by_sum = inputs_required(largest_sums(upper, towards=math.inf), lower_side(model.delta))
        at_best = inputs_required(largest_sums(attained, towards=-math.inf), model.delta)
    if attack is not None and (by_sum is None or attack.n_inputs < by_sum):
        raise IntegrityError(
            f"{run.folder}: an attack changes {attack.n_inputs} inputs where {by_sum} were certified; "
            "this is a fault in daskab, please report it with the run directory"
        )
    open_inputs = min(sum(part.open_inputs for part in parts), upper.size)
    return Certificate(
        model_digest=q.model_digest,
        daskab_version=VERSION,
        run_id=q.run_id,
        evidence_sha256=evidence_of(run, parts),
        method=q.method,
        slices=q.slices,
        rtol=q.rtol,
        input_names=names,
        latent_low=model.latent_low,
        latent_high=model.latent_high,
        delta=model.delta,
        upper_bound=upper,
        attained=attained,
        inputs_required=by_sum,
        inputs_required_by_sum=by_sum,
        inputs_required_at_best=at_best,
        inputs_excluded_by_pairs=0,
        inputs_excluded_by_sets=0,
        open_pairs=0,
        open_sets=0,
        no_attack_exists=model.delta is not None and by_sum is None,
        attack=attack,
        complete=all(part.complete for part in parts),
        open_inputs=open_inputs,
        witnesses=run.pairs.witnesses,
    )


def evidence_of(run: Sandwich, parts: Sequence[Certificate]) -> str:
    """SHA-256 over all that such a certificate rests on."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part.to_json().encode()).digest())
    total, pairs = run.parts.total, run.pairs
    found = (pairs.witnesses.x, pairs.witnesses.moved_to, pairs.attack)
    for array in (total.scales, total.shares, np.array([run.parts.error]), *found):
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()
