"""The certificate of a model of another kernel, from those of its parts (sandwich/METHOD S1)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from daskab.bound.topn import largest_sums
from daskab.errors import IntegrityError
from daskab.files import reaching, write_atomically
from daskab.run.aggregate import attack_of, certificate_of
from daskab.run.certificate import Certificate
from daskab.run.driver import Outcome
from daskab.run.joint import Joint
from daskab.run.lease import one_writer
from daskab.run.sandwich.layout import Sandwich

SEALED = "certificate.json"


def conclude(run: Sandwich, outcomes: Sequence[Outcome]) -> Outcome:
    """What the outcomes of its parts, in their order, come to together."""
    sealed = all(outcome.sealed for outcome in outcomes)
    certificate = sum_of(run, [outcome.certificate for outcome in outcomes])
    partial = run.folder / "certificate.incomplete.json"
    with reaching(run.folder), one_writer(run.folder):
        found = sealed and (run.folder / SEALED).exists()
        if found:
            check_sealed(run, certificate)
        elif sealed:
            write_atomically(run.folder / SEALED, certificate.to_json())
            partial.unlink(missing_ok=True)
        else:
            write_atomically(partial, certificate.to_json())
    failures = tuple(failure for outcome in outcomes for failure in outcome.failures)
    return Outcome(certificate, run.folder, sealed=sealed, found=found, failures=failures)


def sum_of(run: Sandwich, parts: Sequence[Certificate]) -> Certificate:
    """Add up the parts' bounds, and say what follows for the model (sandwich/METHOD S1).

    Raises
    ------
    IntegrityError
        If the parts are others, or an attack does more than is proved: then daskab is wrong.
    """
    model, pairs = run.model, run.pairs
    if [part.model_digest for part in parts] != [part.digest for part in run.parts.models]:
        raise IntegrityError(f"{run.folder}: certificates are not those of its parts")
    twice = 2.0 * run.parts.error
    upper = np.array(
        [largest_sums([*each, twice], towards=math.inf)[-1] for each in np.array([p.upper_bound for p in parts]).T]
    )
    stays = [bool(np.all(model.domain.frozen[list(inputs)])) for inputs in model.domain.changes]
    upper[stays] = 0.0
    return certificate_of(
        run.folder,
        run.question,
        model,
        evidence_of(run, parts),
        upper,
        pairs.attained(model),
        pairs.witnesses,
        attack_of(model, *pairs.attack) if np.all(np.isfinite(pairs.attack)) else None,
        Joint(),
        complete=all(part.complete for part in parts),
        open_inputs=min(sum(part.open_inputs for part in parts), upper.size),
    )


def check_sealed(run: Sandwich, certificate: Certificate) -> None:
    """Raise IntegrityError unless the certificate that was sealed is this one, to the byte."""
    path = run.folder / SEALED
    if path.read_bytes() != certificate.to_json().encode():
        raise IntegrityError(f"{path}: is not what its parts come to; remove it and run again")


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
