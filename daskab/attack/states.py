"""The states inputs are tried in, and pairs of points moved among them: attacks where the domain is more than a box, or
the kernel is a sum of EQs.

A block is an input, or the columns of a category; a state is a value it can have, or which column is on. With every
state's bumps at hand a state costs M multiplications, so all states of all blocks are gone through, over and over,
which a gradient cannot do where values are listed. Where any value will do, the best one is moved a little at a time
afterwards. Whatever is found is only a candidate: its value is taken again by `daskab.attack.attained`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskab._compile import inner_kernel, kernel
from daskab._elementary import exp, exp_each
from daskab.attack.line import grids_of
from daskab.bound.scaled import Scaled
from daskab.model.domain import Domain

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

SWEEPS = 30  #: over all blocks, most of one ascent
HALVINGS = 14  #: of the step by which free values are moved afterwards
FIRST_STEP = 0.1  #: lengthscales
RISE = 1e-9  #: share by which a sweep must improve for another to follow


class States(NamedTuple):
    """A scaled model, its inputs as B blocks with S states in all."""

    centres: Array  #: (M, D)
    amplitudes: Array  #: (M,)
    precision: Array  #: (M,) of each term, 1 / lengthscale^2 in the lengthscales of the coordinates
    width: Array  #: (D,)
    begin: Ints  #: (B + 1,) block b is of inputs member[begin[b] : begin[b + 1]]
    member: Ints  #: (D,)
    first: Ints  #: (B + 1,) and has states first[b] ... first[b + 1] - 1
    values: Array  #: (S, W) what its inputs are in each state; W inputs are the most a block has
    bumps: Array  #: (S, M)
    limit: Array  #: (B,) most an input may move, 0 if frozen; infinite where it does not matter
    free: Flags  #: (B,) whether the values in between will do as well


def states_of(scaled: Scaled, precision: Array, domain: Domain) -> States:
    """Of a model, or of a sum of models of different lengthscales, each with its own ``precision`` (M,)."""
    centres, width, reach = scaled.centres, scaled.width, scaled.reach
    grids = grids_of(centres, width, reach)
    blocks: list[tuple[int, ...]] = []
    per_block: list[Array] = []
    limit, free = [], []
    for inputs in domain.changes:
        k = domain.group_of[inputs[0]]
        if k >= 0 and domain.groups[k].kind != "free":
            on = np.eye(len(inputs)) * width[list(inputs)]
            blocks.append(inputs)
            per_block.append(on if domain.groups[k].kind == "exactly one" else np.vstack([on, np.zeros(len(inputs))]))
            limit.append(np.inf)
            free.append(False)
            continue
        for j in inputs:
            own, most = grids[j], 0.0 if domain.frozen[j] else reach.limit[j]
            if j not in domain.listed and 0.0 < most < np.inf:
                # What is a limit apart must be among what is tried.
                own = np.unique(np.clip(np.concatenate((own, own + most, own - most)), 0.0, width[j]))
            blocks.append((j,))
            per_block.append(own[:, None])
            limit.append(most)
            free.append(j not in domain.listed)
    widest = max(len(block) for block in blocks)
    table = np.zeros((sum(own.shape[0] for own in per_block), widest))
    bumps = np.empty((table.shape[0], centres.shape[0]))
    at = 0
    for block, own in zip(blocks, per_block, strict=True):
        rows = slice(at, at := at + own.shape[0])
        table[rows, : len(block)] = own
        squares = np.sum((own[:, None, :] - centres[:, list(block)]) ** 2, axis=2)
        bumps[rows] = exp_each(-0.5 * precision * squares)
    return States(
        centres,
        scaled.amplitudes,
        precision,
        width,
        np.concatenate(([0], np.cumsum([len(block) for block in blocks]))).astype(np.int64),
        np.concatenate(blocks).astype(np.int64),
        np.concatenate(([0], np.cumsum([own.shape[0] for own in per_block]))).astype(np.int64),
        table,
        bumps,
        np.array(limit),
        np.array(free),
    )


def blocks_of(states: States, inputs: tuple[int, ...]) -> Flags:
    """(B,) which blocks are of these inputs."""
    return np.array([states.member[states.begin[b]] in inputs for b in range(states.limit.size)])


@inner_kernel
def exponent(states: States, b: int, i: int, point: Array) -> float:
    """What block b adds to a centre's exponent at a point."""
    total = 0.0
    for at in range(states.begin[b], states.begin[b + 1]):
        j = states.member[at]
        step = point[j] - states.centres[i, j]
        total += 0.5 * step * step
    return float(states.precision[i]) * total


@inner_kernel
def score(f: float, fp: float, low: float, high: float) -> float:
    """What is made small: how far a pair misses the two levels, in squares; its change, negative, if they are one."""
    if low == high:
        return f - fp
    return max(0.0, f - low) ** 2 + max(0.0, high - fp) ** 2


@inner_kernel
def fill_rest(states: States, b: int, point: Array, total: Array, rest: Array) -> float:
    """Each term without its factor of block b; their sum with it."""
    f = 0.0
    for i in range(rest.size):
        own = exponent(states, b, i, point)
        # The exponent, not the factor, is taken apart: the factor alone may have underflowed.
        rest[i] = states.amplitudes[i] * exp(min(0.0, own - total[i]))
        f += rest[i] * exp(-own)
    return f


@inner_kernel
def latent_at(states: States, state: int, rest: Array) -> float:
    """f - c0 with the block of ``rest`` in a state."""
    f = 0.0
    for i in range(rest.size):
        f += rest[i] * states.bumps[state, i]
    return f


@inner_kernel
def enter(states: States, b: int, state: int, point: Array, total: Array) -> None:
    """Let block b of a point be in a state; ``total`` (M,) exponents follow."""
    for i in range(total.size):
        total[i] -= exponent(states, b, i, point)
    for at in range(states.begin[b], states.begin[b + 1]):
        point[states.member[at]] = states.values[state, at - states.begin[b]]
    for i in range(total.size):
        total[i] += exponent(states, b, i, point)


@inner_kernel
def fill_totals(states: States, point: Array, total: Array) -> None:
    """Exponents (M,) at a point."""
    for i in range(total.size):
        total[i] = 0.0
        for b in range(states.limit.size):
            total[i] += exponent(states, b, i, point)


@inner_kernel
def apart(states: States, u: int, v: int) -> float:
    """How far apart two states of an input are."""
    return abs(float(states.values[u, 0]) - float(states.values[v, 0]))


@inner_kernel
def best_pair(
    states: States, b: int, rest: Array, rest_p: Array, low: float, high: float, f: Array, fp: Array
) -> tuple[float, int, int]:
    """Least score with block b in one state in x and in another in x'; which they are. ``f``, ``fp`` are work space."""
    begin, end = states.first[b], states.first[b + 1]
    for k in range(begin, end):
        f[k - begin] = latent_at(states, k, rest)
        fp[k - begin] = latent_at(states, k, rest_p)
    least, u, v = np.inf, begin, begin
    limited = states.limit[b] < np.inf
    for k in range(begin, end):
        # Unless there is a limit each of the two is best alone: no state is tried that is worse for x.
        if not limited and f[k - begin] > f[u - begin]:
            continue
        for r in range(begin, end):
            if limited and apart(states, k, r) > states.limit[b]:
                continue
            found = score(f[k - begin], fp[r - begin], low, high)
            if found < least:
                least, u, v = found, k, r
    return least, u, v


@inner_kernel
def best_shared(states: States, b: int, rest: Array, rest_p: Array, low: float, high: float) -> tuple[float, int]:
    """Least score with block b in the same state in both points; which it is."""
    least, best = np.inf, states.first[b]
    for k in range(states.first[b], states.first[b + 1]):
        found = score(latent_at(states, k, rest), latent_at(states, k, rest_p), low, high)
        if found < least:
            least, best = found, k
    return least, best


@kernel
def settle(states: States, moved: Flags, x: Array, x_prime: Array, low: float, high: float, sweeps: int) -> float:
    """Move a pair (D,), block by block, to states that make its score least; the two differ where ``moved`` (B,).

    What it comes to is returned, and is never worse than what the pair comes to as given.
    """
    m = states.amplitudes.size
    total, total_p, rest, rest_p = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    f_of, fp_of = np.empty(states.bumps.shape[0]), np.empty(states.bumps.shape[0])
    fill_totals(states, x, total)
    fill_totals(states, x_prime, total_p)
    now = np.inf
    for _ in range(sweeps):
        before = now
        for b in range(states.limit.size):
            f = fill_rest(states, b, x, total, rest)
            fp = fill_rest(states, b, x_prime, total_p, rest_p)
            now = score(f, fp, low, high)
            if moved[b] and states.limit[b] > 0.0:
                found, u, v = best_pair(states, b, rest, rest_p, low, high, f_of, fp_of)
            else:
                found, u = best_shared(states, b, rest, rest_p, low, high)
                v = u
            if found < now:
                now = found
                enter(states, b, u, x, total)
                enter(states, b, v, x_prime, total_p)
        if not before - now > RISE * abs(now):
            break
    return now


@kernel
def polish(states: States, moved: Flags, x: Array, x_prime: Array, low: float, high: float) -> float:
    """Move free values of a pair by ever smaller steps where that makes its score less; what it comes to."""
    m = states.amplitudes.size
    total, total_p, rest, rest_p = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    now = np.inf
    step = FIRST_STEP
    for _ in range(HALVINGS):
        fill_totals(states, x, total)
        fill_totals(states, x_prime, total_p)
        for b in range(states.limit.size):
            if not states.free[b]:
                continue
            f = fill_rest(states, b, x, total, rest)
            fp = fill_rest(states, b, x_prime, total_p, rest_p)
            now = score(f, fp, low, high)
            j = states.member[states.begin[b]]
            two = moved[b] and states.limit[b] > 0.0
            for way in range(6 if two else 2):
                sign = step if way % 2 == 0 else -step
                to, to_p = x[j], x_prime[j]
                if way < 4:
                    to = min(max(x[j] + sign, 0.0), states.width[j])
                if way < 2 or way > 3:
                    to_p = min(max(x_prime[j] + sign, 0.0), states.width[j])
                if abs(to - to_p) > states.limit[b] and two:
                    continue
                f = 0.0
                fp = 0.0
                for i in range(m):
                    c, half = states.centres[i, j], 0.5 * states.precision[i]
                    f += rest[i] * exp(-half * (to - c) * (to - c))
                    fp += rest_p[i] * exp(-half * (to_p - c) * (to_p - c))
                found = score(f, fp, low, high)
                if found < now:
                    now = found
                    for i in range(m):
                        c, half = states.centres[i, j], 0.5 * states.precision[i]
                        total[i] += half * ((to - c) * (to - c) - (x[j] - c) * (x[j] - c))
                        total_p[i] += half * ((to_p - c) * (to_p - c) - (x_prime[j] - c) * (x_prime[j] - c))
                    x[j] = to
                    x_prime[j] = to_p
        step *= 0.5
    return now


@kernel
def rate(states: States, x: Array, x_prime: Array, low: float, high: float, worth: Array) -> None:
    """Fill for every block (B,) by how much a pair's score falls if its two points may differ there."""
    m = states.amplitudes.size
    total, total_p, rest, rest_p = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    f_of, fp_of = np.empty(states.bumps.shape[0]), np.empty(states.bumps.shape[0])
    fill_totals(states, x, total)
    fill_totals(states, x_prime, total_p)
    for b in range(states.limit.size):
        worth[b] = 0.0
        if states.limit[b] == 0.0:
            continue
        fill_rest(states, b, x, total, rest)
        fill_rest(states, b, x_prime, total_p, rest_p)
        two = best_pair(states, b, rest, rest_p, low, high, f_of, fp_of)[0]
        worth[b] = max(best_shared(states, b, rest, rest_p, low, high)[0] - two, 0.0)
