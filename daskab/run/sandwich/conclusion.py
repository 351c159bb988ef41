"""The certificate of a model of another kernel, from those of its parts (sandwich/METHOD S1)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from daskab._version import VERSION
from daskab.bound.topn import inputs_required, largest_sums, lower_side
from daskab.errors import IntegrityError
from daskab.files import reaching, write_atomically
from daskab.run.aggregate import attack_of
from daskab.run.certificate import Certificate
from daskab.run.driver import Outcome
from daskab.run.lease import one_writer
from daskab.run.sandwich.layout import Sandwich


def conclude(run: Sandwich, outcomes: Sequence[Outcome]) -> Outcome:
    """What the outcomes of its parts, in their order, come to together."""
    sealed = all(outcome.sealed for outcome in outcomes)
    certificate = certificate_of(run, [outcome.certificate for outcome in outcomes])
    text, path = certificate.to_json(), run.folder / "certificate.json"
    partial = run.folder / "certificate.incomplete.json"
    with reaching(run.folder), one_writer(run.folder):
        found = sealed and path.exists()
        if found and path.read_bytes() != text.encode():
            raise IntegrityError(f"{path}: is not what its parts come to; remove it and run again")
        if sealed and not found:
            write_atomically(path, text)
            partial.unlink(missing_ok=True)
        elif not sealed:
            write_atomically(partial, text)
    failures = tuple(failure for outcome in outcomes for failure in outcome.failures)
    return Outcome(certificate, run.folder, sealed=sealed, found=found, failures=failures)


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
