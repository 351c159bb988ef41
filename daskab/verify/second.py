"""A share of a certificate's bounds by the second path, what follows from the bounds, and how sure that makes it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from daskab.model.expansion import KernelExpansion
from daskab.recheck.problem import Problem, model_pair
from daskab.recheck.search import search
from daskab.run.certificate import Certificate
from daskab.verify.balls import Balls
from daskab.verify.checks import Check

MOST_NODES = 6000
"""Nodes for one bound: a few seconds with a hundred centres and thirty inputs."""

ONE_IN = 20
"""The share of wrong bounds that the last line speaks of."""


class Tally(NamedTuple):
    """What the second path came to."""

    n_inputs: int
    chosen: int  #: inputs, at random
    undecided: int  #: of those
    check: Check


def second_path(
    model: KernelExpansion, certificate: Certificate, balls: Balls, share: float, rng: np.random.Generator
) -> Tally:
    """Prove the bounds of a share of the inputs again, from the model alone, by code that proved none of them.

    A bound is refuted only by two points of the box that exceed it in ball arithmetic.
    """
    domain, names = model.domain, certificate.input_names
    d_all = len(names)
    chosen = np.sort(rng.permutation(d_all)[: math.ceil(share * d_all)]).tolist()
    nodes = 0
    undecided: list[str] = []
    for d in chosen:
        bound = float(certificate.upper_bound[d])
        inputs = domain.changes[d]
        if domain.group_of[inputs[0]] >= 0:
            undecided.append(names[d])  # there is no second path for several inputs at once
            continue
        finding = search(Problem.of(model, inputs[0]), bound, MOST_NODES)
        nodes += finding.nodes
        if finding.path is not None:
            x, x_prime = model_pair(model, inputs[0], finding.path.s, finding.path.e, finding.path.z)
            if balls.above(balls.latent(x_prime) - balls.latent(x), bound):
                said = f"input {names[d]} can change the latent by more than its bound {bound!r}"
                return Tally(d_all, len(chosen), len(undecided), Check("second path", False, said))
        if not finding.proved:
            undecided.append(names[d])
    said = f"{len(chosen) - len(undecided)} of {len(chosen)} bounds confirmed"
    if len(chosen) < d_all:
        said += f", of {d_all} there are (inputs at random)"
    if undecided:
        said += f"; {len(undecided)} not decided in at most {MOST_NODES} nodes each, {undecided[0]} first"
    said += f"; {nodes} nodes"
    return Tally(d_all, len(chosen), len(undecided), Check("second path", True, said))


def sum_anew(certificate: Certificate) -> Check:
    """Whether the bounds sum to what is certified, in rational arithmetic: no rounding at all."""
    low, high = certificate.latent_low, certificate.latent_high
    if low is None or high is None:
        return Check("sum", True, "the model has no thresholds, so no number of inputs follows from the bounds")
    if not np.all(np.isfinite(certificate.upper_bound)):
        return Check("sum", False, "a bound is not a finite number")
    delta, total = Fraction(high) - Fraction(low), Fraction(0)
    required = None
    for n, bound in enumerate(sorted(certificate.upper_bound.tolist(), reverse=True), 1):
        total += Fraction(bound)
        if total >= delta:
            required = n
            break
    claimed, by_sum = at_least(certificate.inputs_required, certificate), certificate.inputs_required_by_sum
    excluded = max(certificate.inputs_excluded_by_pairs, certificate.inputs_excluded_by_sets)
    proved = at_least(required, certificate)
    if at_least(by_sum, certificate) > proved or claimed > max(proved, excluded + 1):
        return Check(
            "sum", False, f"the bounds prove {proved} inputs, and {excluded} are excluded together: not {claimed}"
        )
    said = f"in rational numbers the bounds prove {proved} inputs"
    if claimed > proved:
        said += f"; that {claimed} are needed rests on the search over several inputs, which has no second path"
    return Check("sum", True, said)


def at_least(required: int | None, certificate: Certificate) -> int:
    """Inputs required, as a number: one more than there are where none suffice."""
    return len(certificate.input_names) + 1 if required is None else required


def how_sure(tally: Tally) -> Check:
    """How likely wrong bounds would have been met by a choice such as this one."""
    n, chosen, undecided = tally[:3]
    confirmed = chosen - undecided
    if not chosen:
        said = "no bound was proved a second time; --share or --all asks for it"
    elif confirmed == n:
        said = f"all {n} bounds are proved twice, by two programs that share no code"
    else:
        wrong = math.ceil(n / ONE_IN)
        said = f"a choice like this shows it with probability {met(n, 1, chosen, undecided):.2f} if one bound is wrong"
        if wrong > 1:
            said += f", {met(n, wrong, chosen, undecided):.2f} if one in {ONE_IN} is ({wrong} of {n})"
    return Check("how sure", True, said)


def met(n: int, wrong: int, chosen: int, undecided: int) -> float:
    """Probability that ``chosen`` of ``n`` at random hold more than ``undecided`` of the ``wrong``: one confirmed.

    The second path confirms no wrong bound, so what is wrong among the chosen must be among the undecided.
    """
    hidden = sum(math.comb(wrong, k) * math.comb(n - wrong, chosen - k) for k in range(min(undecided, chosen) + 1))
    return float(1 - Fraction(hidden, math.comb(n, chosen)))
