"""The certificate of a model of another kernel, from those of its parts (sandwich/METHOD S1)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from daskab.bound.goals import trivial_bound
from daskab.bound.topn import largest_sums
from daskab.errors import IntegrityError
from daskab.run.aggregate import attack_of, certificate_of
from daskab.run.certificate import Certificate
from daskab.run.joint import Joint
from daskab.run.sandwich.layout import Sandwich
from daskab.run.sandwich.pairs import Pairs

Array = NDArray[np.float64]

SEALED = "certificate.json"


def sum_of(run: Sandwich, pairs: Pairs, parts: Sequence[Certificate]) -> Certificate:
    """Add up the parts' bounds, and say what follows for the model (sandwich/METHOD S1).

    Raises
    ------
    IntegrityError
        If the parts are others, or an attack does more than is proved: then daskab is wrong.
    """
    if [part.model_digest for part in parts] != [part.digest for part in run.parts.models]:
        raise IntegrityError(f"{run.folder}: certificates are not those of its parts")
    upper = np.array(
        [
            largest_sums([*each, 2.0 * run.parts.error], towards=math.inf)[-1]
            for each in np.array([p.upper_bound for p in parts]).T
        ]
    )
    open_inputs = min(sum(part.open_inputs for part in parts), upper.size)
    complete = all(part.complete for part in parts)
    return _certificate(run, pairs, upper, evidence_of(run, pairs, parts), complete=complete, open_inputs=open_inputs)


def before_parts(run: Sandwich, pairs: Pairs) -> Certificate:
    """What is certified before any part is begun: no change is more than all of the kernel going and coming."""
    upper = np.full(len(run.model.domain.changes), trivial_bound(run.model.variance * run.model.weights))
    return _certificate(run, pairs, upper, evidence_of(run, pairs, ()), complete=False, open_inputs=upper.size)


def _certificate(
    run: Sandwich, pairs: Pairs, upper: Array, evidence: str, *, complete: bool, open_inputs: int
) -> Certificate:
    model = run.model
    stays = [bool(np.all(model.domain.frozen[list(inputs)])) for inputs in model.domain.changes]
    upper[stays] = 0.0
    return certificate_of(
        run.folder,
        run.question,
        model,
        evidence,
        upper,
        pairs.attained(model),
        pairs.witnesses,
        attack_of(model, *pairs.attack) if np.all(np.isfinite(pairs.attack)) else None,
        Joint(),
        complete=complete,
        open_inputs=open_inputs,
    )


def check_sealed(run: Sandwich, certificate: Certificate) -> None:
    """Raise IntegrityError unless the certificate that was sealed is this one, to the byte."""
    path = run.folder / SEALED
    if path.read_bytes() != certificate.to_json().encode():
        raise IntegrityError(f"{path}: is not what its parts come to; remove it and run again")


def evidence_of(run: Sandwich, pairs: Pairs, parts: Sequence[Certificate]) -> str:
    """SHA-256 over all that such a certificate rests on."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part.to_json().encode()).digest())
    total = run.parts.total
    found = (pairs.witnesses.x, pairs.witnesses.moved_to, pairs.attack)
    for array in (total.scales, total.shares, np.array([run.parts.error]), *found):
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()
