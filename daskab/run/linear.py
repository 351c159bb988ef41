"""The certificate of a linear model: exact, made at once, without a run (linear/METHOD.md)."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np

from daskab._version import VERSION
from daskab.linear.exact import ExactLinear, fewest_that_sum_to, rounded_down, rounded_up
from daskab.linear.witness import at_largest, at_least, confident_pair
from daskab.model.linear import LinearModel
from daskab.run.certificate import LINEAR, Attack, Certificate, Witnesses
from daskab.run.plan import canonical_json

NO_EVIDENCE = hashlib.sha256().hexdigest()
"""The model is all that such a certificate rests on."""


def certify_linear(model: LinearModel) -> Certificate:
    """Find how many inputs an attacker must change to fool a linear classifier, anywhere in its box: exactly.

    Parameters
    ----------
    model : LinearModel
        From `daskab.fit_logistic`, or made of any linear classifier's numbers.

    Returns
    -------
    Certificate
        Of method ``linear``, as `daskab.certify` makes it of a Gaussian process, to be compared with that.
        ``upper_bound`` and ``attained`` (D,) are the same number rounded up and down, in the units of the latent.

    Raises
    ------
    BoundError
        If the attack that must exist is not found: a fault in daskab.

    Notes
    -----
    daskab/linear/METHOD.md.

    Examples
    --------
    >>> model = LinearModel([1.0, -2.0, 0.5], [0, 0, 0], [1, 1, 1], latent_low=-0.5, latent_high=0.75)
    >>> certificate = certify_linear(model)
    >>> certificate.inputs_required, certificate.exact, certificate.upper_bound.tolist()
    (1, True, [1.0, 2.0, 0.5])
    """
    linear = ExactLinear.of(model)
    changes, low, high = linear.changes, model.latent_low, model.latent_high
    by_sum, required, attack = None, None, None
    if low is not None and high is not None:
        by_sum = fewest_that_sum_to(Fraction(high) - Fraction(low), changes)
        if by_sum is not None and linear.reaches(low, high):
            required, attack = by_sum, _attack(linear, low, high, by_sum)
    asked = {"model_digest": model.digest, "method": LINEAR, "daskab": VERSION}
    return Certificate(
        model_digest=model.digest,
        daskab_version=VERSION,
        run_id=hashlib.sha256(canonical_json(asked).encode()).hexdigest()[:16],
        evidence_sha256=NO_EVIDENCE,
        method=LINEAR,
        slices=1,
        rtol=None,
        input_names=model.input_names,
        latent_low=low,
        latent_high=high,
        delta=model.delta,
        upper_bound=np.array([rounded_up(change) for change in changes]),
        attained=np.array([rounded_down(change) for change in changes]),
        inputs_required=required,
        inputs_required_by_sum=by_sum,
        inputs_required_at_best=by_sum,
        inputs_excluded_by_pairs=0,
        inputs_excluded_by_sets=0,
        open_pairs=0,
        open_sets=0,
        no_attack_exists=model.delta is not None and required is None,
        attack=attack,
        complete=True,
        open_inputs=0,
        witnesses=_witnesses(linear),
    )


def _attack(linear: ExactLinear, low: float, high: float, fewest: int) -> Attack:
    x, x_prime = confident_pair(linear, low, high, fewest)
    return Attack(
        n_inputs=int(np.sum(x != x_prime)),
        x=tuple(x.tolist()),
        x_prime=tuple(x_prime.tolist()),
        latent_x=float(linear.latent(x.tolist())),
        latent_x_prime=float(linear.latent(x_prime.tolist())),
    )


def _witnesses(linear: ExactLinear) -> Witnesses:
    """Every input from one of its edges to the other, the latent rising; all others are at their lower edge."""
    inputs = range(len(linear.lower))
    x = np.tile([float(edge) for edge in linear.lower], (len(linear.lower), 1))
    x[inputs, inputs] = [float(at_least(linear, j)) for j in inputs]
    return Witnesses(x, np.array([float(at_largest(linear, j)) for j in inputs]))
