"""Verify a run that is made of others: each of them, what their kernels add up to, and what their bounds do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from daskab.errors import IncompleteError, IntegrityError
from daskab.run.driver import read_sealed
from daskab.run.executors import Executor
from daskab.run.sandwich.attacks import read_pairs
from daskab.run.sandwich.conclusion import SEALED, sum_of
from daskab.run.sandwich.layout import PARTS, Sandwich, open_sandwich
from daskab.sandwich.fit import FARTHEST
from daskab.sandwich.parts import farthest
from daskab.verify.balls import Balls
from daskab.verify.checks import Check
from daskab.verify.run import check_other_attacks, check_witnesses, verify_run
from daskab.verify.second import sum_anew

MOST_PIECES = 1_000_000
ROUNDED = 2.0**-48
"""Pieces of the distances looked at; share by which scales and shares of the parts are rounded, and more."""


def verify_sandwich(folder: Path, executor: Executor, *, share: float, seed: int) -> Iterator[Check]:
    """Verify a run of a model of another kernel than EQ; see `verify_run`, which its parts are verified by."""
    run = open_sandwich(folder)
    if not (folder / SEALED).exists():
        raise IncompleteError(f"{folder}: is not sealed; the command that began it goes on with it")
    pairs = read_pairs(folder, run.model)
    if pairs is None:
        raise IntegrityError(f"{folder}: what attacks found is lost or damaged; run again, which mends it")
    balls, rng = Balls(run.model), np.random.default_rng(seed)
    n = len(run.parts.models)
    yield Check("plan", True, f"{run.model.kernel} as a sum of {n} EQ kernels, each a part with a run of its own")
    yield check_kernel(run, balls)
    certificates = []
    for k, question in enumerate(run.questions(pairs), start=1):
        part = folder / PARTS / question.run_id
        try:
            for check in verify_run(part, executor, share=share, seed=seed):
                yield check._replace(name=f"part {k}, {check.name}")
            certificates.append(read_sealed(part, question))
        except IntegrityError as error:
            yield Check(f"part {k}", False, str(error))
            return
    certificate = sum_of(run, pairs, certificates)
    same = (folder / SEALED).read_bytes() == certificate.to_json().encode()
    said = "bounds of the parts added up anew, attacks evaluated anew: "
    yield Check("sums", same, said + ("the same certificate to the byte" if same else "another certificate"))
    yield sum_anew(certificate)
    yield from check_witnesses(run.model, certificate, balls, rng)
    yield check_other_attacks(run.model, certificate, rng, seed, run.parts.total)


def check_kernel(run: Sandwich, balls: Balls) -> Check:
    """Whether model and parts are nowhere farther apart than the run says, in ball arithmetic."""
    far = farthest(run.model)
    difference = Difference(run, balls)
    pieces, seen = [(0.0, min(far, FARTHEST))], 0
    if far > FARTHEST and not difference.beyond() <= difference.allowed:
        return Check("kernel", False, f"beyond {FARTHEST:g} lengthscales it may be farther from the sum than stated")
    while pieces and seen < MOST_PIECES:
        low, high = pieces.pop()
        seen += 1
        if difference.at_most(low, high) <= difference.allowed:
            continue
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        pieces += [(low, middle), (middle, high)]
    else:
        if not pieces:
            return Check("kernel", True, f"never farther from the sum than stated, in ball arithmetic on {seen} pieces")
    return Check("kernel", False, f"its distance from the sum is not proved to be what {run.folder.name} says")


class Difference:
    """A kernel less a sum of EQs, and its derivative, as balls."""

    def __init__(self, run: Sandwich, balls: Balls) -> None:
        self.arb = arb = balls.arb
        self.balls, self.kernel = balls, run.model.kernel
        self.terms = [(arb(s), arb(b)) for s, b in zip(*(values.tolist() for values in run.parts.total), strict=True)]
        size = sum((abs(arb(w)) for w in run.model.weights.tolist()), arb(0)) * arb(run.model.variance)
        shares = sum((share for _, share in self.terms), arb(1))
        # Without weights everything is 0, and nothing has to be near.
        self.allowed = arb(run.parts.error) / size - ROUNDED * shares if size > 0 else arb(math.inf)

    def at_most(self, low: float, high: float) -> Any:
        """A ball that is not below its size anywhere from low to high."""
        middle = (self.arb(low) + self.arb(high)) / 2
        half = (self.arb(high) - self.arb(low)) / 2
        return abs(self.value(middle)) + half * abs(self.slope(self.arb(middle.mid(), half.upper())))

    def value(self, r: Any) -> Any:
        """At a distance."""
        total = self.balls.kernel(r * r)
        for scale, share in self.terms:
            total -= share * (-((r / scale) ** 2) / 2).exp()
        return total

    def slope(self, r: Any) -> Any:
        """Its derivative in the distance."""
        if self.kernel == "exponential":
            total = -(-r).exp()
        elif self.kernel == "matern32":
            total = -3 * r * (-self.arb(3).sqrt() * r).exp()
        else:
            root = self.arb(5).sqrt() * r
            total = -5 * r * (1 + root) / 3 * (-root).exp()
        for scale, share in self.terms:
            total += share * r / scale**2 * (-((r / scale) ** 2) / 2).exp()
        return total

    def beyond(self) -> Any:
        """Both fall from `FARTHEST` on: what neither is above there."""
        r = self.arb(FARTHEST)
        return self.balls.kernel(r * r) + sum((b * (-((r / s) ** 2) / 2).exp() for s, b in self.terms), self.arb(0))
