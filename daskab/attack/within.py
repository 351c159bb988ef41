"""Attacks within a domain: one change, or as few as are found to cross both thresholds (method 6).

The counterpart of `single` and `several` where the domain is more than a box: frozen inputs, limits, listed values,
categories, and groups of inputs that count as one change; or where the kernel is another, taken as a sum of EQs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from daskab.attack.attained import crosses_thresholds
from daskab.attack.several import SeveralWitness
from daskab.attack.single import start_points
from daskab.attack.states import SWEEPS, States, blocks_of, polish, rate, settle, states_of
from daskab.bound.scaled import Scaled, to_model_units
from daskab.model.expansion import KernelExpansion
from daskab.model.kernels import EQ
from daskab.sandwich.sums import ONE_EQ, EQSum

Array = NDArray[np.float64]

AHEAD = 0.02  #: of the thresholds' distance: aiming beyond them keeps both ends' slopes alive
SHORT = 3  #: sweeps while the set still grows
BUDGET = 6e9  #: multiplications, about, after which nothing new is tried (some 10 s)


class Within:
    """A model of any domain and kernel, ready to be attacked.

    Parameters
    ----------
    model : KernelExpansion
    starts, seed : how many points are started from, and of which random ones
    total : the sum of EQs its kernel is taken as; what is found is evaluated with the kernel itself
    """

    def __init__(self, model: KernelExpansion, starts: int, seed: int, total: EQSum = ONE_EQ) -> None:
        self.model, self.scaled = model, Scaled.of(model.replace(kernel=EQ))
        self.states: States = states_of(*mixture_of(self.scaled, total), model.domain)
        points = start_points(self.scaled.centres, self.scaled.amplitudes, self.scaled.width, starts, seed)
        self.starts = self._scaled(model.domain.nearest(to_model_units(model, points)))
        self.changes = [blocks_of(self.states, inputs) for inputs in model.domain.changes]
        self.spent = 0.0

    def best_pair(self, inputs: tuple[int, ...]) -> tuple[Array, Array]:
        """The best pair of points (D,) of the domain found, in the model's units, that differ in these inputs."""
        moved = blocks_of(self.states, inputs)
        best, pair = np.inf, (self.starts[0], self.starts[0])
        for start in self.starts:
            x, x_prime = start.copy(), start.copy()
            settle(self.states, moved, x, x_prime, 0.0, 0.0, SWEEPS)
            polish(self.states, moved, x, x_prime, 0.0, 0.0)
            found = settle(self.states, moved, x, x_prime, 0.0, 0.0, SWEEPS)
            if found < best:
                best, pair = found, (x, x_prime)
        return self.in_domain(*pair, inputs)

    def fewest_changes(self, starts: Array | None = None) -> SeveralWitness | None:
        """The attack of fewest changes found, from these points (K, D) in the model's units and the search's own."""
        low, high = self.model.latent_low, self.model.latent_high
        assert low is not None  # as of `several.fewest_inputs`
        assert high is not None
        best: SeveralWitness | None = None
        given = self.starts[:0] if starts is None else self._scaled(self.model.domain.nearest(starts))
        for start in [*given, *self.starts]:
            found = self._from_start(start, low - self.model.constant, high - self.model.constant, best)
            if found is not None:
                best = found
            if self.spent > BUDGET or (best is not None and best.n_inputs == 1):
                break
        return best

    def in_domain(self, x: Array, x_prime: Array, inputs: Sequence[int]) -> tuple[Array, Array]:
        """Two scaled points as points of the model's domain that differ in these inputs at most."""
        a, b = to_model_units(self.model, x), to_model_units(self.model, x_prime)
        return self.model.domain.reconciled(a, np.where(x == x_prime, a, b), inputs)

    def _from_start(self, start: Array, low: float, high: float, best: SeveralWitness | None) -> SeveralWitness | None:
        """A better attack than the best so far, if growing a set from x = x' = start and dropping from it finds one."""
        margin = AHEAD * (high - low)
        aims = (low - margin, high + margin)
        x, x_prime = start.copy(), start.copy()
        settle(self.states, np.zeros(self.states.limit.size, dtype=np.bool_), x, x_prime, *aims, SHORT)
        chosen: list[int] = []
        witness = None
        most = len(self.changes) if best is None else best.n_inputs - 1
        while witness is None and len(chosen) < most:
            c = self._most_worth(x, x_prime, aims, chosen)
            if c is None:
                return None
            chosen.append(c)
            witness = self._try(x, x_prime, chosen, aims, SHORT)
        if witness is None:
            witness = self._try(x, x_prime, chosen, aims, SWEEPS)
        at = 0
        while witness is not None and len(chosen) > 1 and at < len(chosen) and self.spent <= BUDGET:
            fewer = chosen[:at] + chosen[at + 1 :]
            a, b = self._without(x, x_prime, fewer)
            found = self._try(a, b, fewer, aims, SWEEPS)
            at += 1
            if found is not None and found.n_inputs < witness.n_inputs:
                witness, chosen, x, x_prime, at = found, fewer, a, b, 0
        return witness

    def _most_worth(self, x: Array, x_prime: Array, aims: tuple[float, float], chosen: list[int]) -> int | None:
        worth = np.empty(self.states.limit.size)
        rate(self.states, x, x_prime, *aims, worth)
        of_changes = np.array([worth[blocks].sum() for blocks in self.changes])
        of_changes[chosen] = -1.0
        c = int(np.argmax(of_changes))
        return c if of_changes[c] > 0.0 else None

    def _try(
        self, x: Array, x_prime: Array, chosen: list[int], aims: tuple[float, float], sweeps: int
    ) -> SeveralWitness | None:
        """Move the pair within the chosen changes; the witness it makes, if it makes one."""
        moved = np.any([self.changes[c] for c in chosen], axis=0)
        inputs = [j for c in chosen for j in self.model.domain.changes[c]]
        self.spent += 4.0 * sweeps * self.states.bumps.size
        settle(self.states, moved, x, x_prime, *aims, sweeps)
        if sweeps > SHORT:
            polish(self.states, moved, x, x_prime, *aims)
            settle(self.states, moved, x, x_prime, *aims, sweeps)
        a, b = self.in_domain(x, x_prime, inputs)
        if not crosses_thresholds(self.model, a, b):
            return None
        latent = self.model.latent(np.stack([a, b]))
        return SeveralWitness(a, b, float(latent[0]), float(latent[1]), self.model.domain.n_changes(a, b))

    def _without(self, x: Array, x_prime: Array, chosen: list[int]) -> tuple[Array, Array]:
        """The pair with x' as x where it is not chosen to move."""
        inputs = [j for c in chosen for j in self.model.domain.changes[c]]
        b = x.copy()
        b[inputs] = x_prime[inputs]
        return x.copy(), b

    def _scaled(self, points: Array) -> Array:
        inside = (points - self.model.lower) / self.model.lengthscale
        return np.clip(inside, 0.0, self.scaled.width)


def mixture_of(scaled: Scaled, total: EQSum) -> tuple[Scaled, Array]:
    """Every term of every EQ of a sum (J M), as terms of one scaled model, and the precision of each."""
    j, (m, d) = total.scales.size, scaled.centres.shape
    centres = np.ascontiguousarray(np.tile(scaled.centres, (j, 1)))
    amplitudes = np.ravel(total.shares[:, None] * scaled.amplitudes)
    precision = np.ravel(np.tile((1.0 / (total.scales * total.scales))[:, None], (1, m)))
    return replace(scaled, centres=centres.reshape(j * m, d), amplitudes=amplitudes), precision
