"""The soundness soak: many random and adversarial models, every bound against attacks on it. Run by hand.

    python tests/benchmarks/soak.py --models 100000 --seed 0
    python tests/benchmarks/soak.py --models 100000 --seed 0 --search pairs
    python tests/benchmarks/soak.py --models 100000 --seed 0 --search sets

For each model one input is attacked in both directions from many starts, and bounded by refinement with goals
below and above what the attack attains (a goal that is below must never be claimed), from good and bad starting
points, by fixed slices, and now and then by the grid. It prints the number of bounds, of violations, and of goals
claimed. With --search a search over several inputs is put to the test instead: the thresholds are what some pair of
points attains, so that the search must not exclude its number of inputs, or its set; the goals claimed are the
searches that exclude all smaller numbers, or the set with thresholds a little farther apart, where an attack has to
find nothing in it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from daskab import KernelExpansion
from daskab.attack.attained import attained_change
from daskab.attack.several import fewest_inputs
from daskab.attack.single import attack_input, start_points
from daskab.bound import sequences
from daskab.bound.contributions import input_table, slice_edges
from daskab.bound.fixed import fixed_units
from daskab.bound.grid import grid_units
from daskab.bound.nodes import BOUND
from daskab.bound.scaled import Scaled, to_model_units
from daskab.bound.units import bound_units, refine_nodes
from daskab.joint.attacks import Attacks
from daskab.joint.midpoint.nodes import EXCLUDED
from daskab.joint.midpoint.search import can_search, root_node, search_nodes
from daskab.joint.sets.search import root_nodes, search_sets

SHARES = (0.5, 0.9, 0.999, 1.0 - 1e-9, 1.002, 1.1)
SLICES = 3
NODES = 30
PAIR_NODES = 60
SET_NODES = 60


def adversarial(rng: np.random.Generator) -> KernelExpansion:
    """One model of a kind that has broken a bound somewhere."""
    kind = rng.choice(["plain", "clusters", "cancel", "outside", "short", "heavy", "plane", "duplicate", "long"])
    d = int(rng.integers(1, 61) if rng.random() < 0.3 else rng.integers(1, 9))
    m = int(rng.integers(1, 25) if rng.random() < 0.7 else rng.integers(1, 5))
    if rng.random() < 0.02:
        m = int(rng.integers(30, 90))
    centres = rng.random((m, d))
    weights = rng.normal(size=m) * 10.0 ** rng.uniform(-1, 1, m)
    scale = 10.0 ** rng.uniform(-1.0, 1.0) * np.sqrt(d) / 2
    if kind == "clusters":
        centres = np.round(rng.random((m, 1))) + 0.02 * rng.normal(size=(m, d))
    elif kind == "cancel" and m > 1:
        half = m // 2
        centres[half : 2 * half] = centres[:half] + 10.0 ** rng.uniform(-6, -1) * rng.normal(size=(half, d))
        weights[half : 2 * half] = -weights[:half] * (1.0 + 10.0 ** rng.uniform(-9, -1) * rng.normal(size=half))
    elif kind == "outside":
        centres += rng.normal(size=(m, d))
    elif kind == "short":
        scale = 10.0 ** rng.uniform(-2.0, -0.5)
    elif kind == "heavy":
        weights *= 10.0 ** rng.uniform(3, 6)
    elif kind == "plane":
        centres[:, : max(d - 2, 0)] = 0.3
    elif kind == "duplicate":
        centres[:] = centres[rng.integers(m, size=m)]
    elif kind == "long":
        scale = 10.0 ** rng.uniform(1.0, 2.5)
    if rng.random() < 0.2:
        weights = -np.abs(weights)
    lengthscale = scale * (10.0 ** rng.uniform(-0.3, 0.3, d) if rng.random() < 0.3 else np.ones(d))
    lower, upper = np.zeros(d), np.ones(d)
    if rng.random() < 0.1:
        upper[rng.integers(d)] = 0.0
    return KernelExpansion(centres, weights, lengthscale, lower, upper)


def check(model: KernelExpansion, rng: np.random.Generator) -> tuple[int, int, int]:
    """Bounds taken, bounds below an attained value, goals claimed, for one input of a model."""
    s = Scaled.of(model)
    dims = model.n_inputs
    d = int(rng.integers(dims))
    best = np.empty(dims + 1)
    starts = start_points(s.centres, s.amplitudes, s.width, 6, int(rng.integers(2**31)))
    attack_input(s.centres, s.amplitudes, s.width, d, starts, best)
    x = to_model_units(model, best[:dims])
    moved = best[:dims].copy()
    moved[d] = best[dims]
    x_prime = x.copy()
    x_prime[d] = to_model_units(model, moved)[d]
    attained = attained_change(model, x, x_prime)
    n = sequences.count(SLICES)
    edges = np.stack([slice_edges(w, SLICES) for w in s.width])
    tables = input_table(s.centres[:, d], s.amplitudes, s.width[d], SLICES)[:, None]
    point = best[None, :dims] if rng.random() < 0.7 else s.width[None] * rng.random((1, dims))
    taken = wrong = claimed = 0

    def judge(bound: float) -> None:
        nonlocal taken, wrong
        taken += 1
        if not bound >= attained:
            wrong += 1

    units = (2 * d * n, 2 * (d + 1) * n, sequences.ends(SLICES), edges, tables, point, d)
    fixed = bound_units(*units, s.centres, s.amplitudes, s.width, s.reach, np.zeros(dims))
    judge(fixed[:, BOUND].max())
    for share in rng.choice(SHARES, 2, replace=False):
        goal = np.full(dims, max(share * attained, 1e-11 * np.abs(s.amplitudes).sum()))
        nodes = bound_units(*units, s.centres, s.amplitudes, s.width, s.reach, goal)
        closed, _, frontier, _ = refine_nodes(
            nodes, n, s.centres, s.amplitudes, s.width, s.reach, goal, np.full(dims, NODES), np.full(dims, attained)
        )
        bound = max(closed.max(initial=0.0), frontier[:, BOUND].max(initial=0.0))
        judge(bound)
        claimed += bool(bound <= goal[0])
    scaled, level = (s.centres, s.amplitudes, s.width), np.full(dims, rng.choice([-1.0, 0.9, 1.0]) * attained)
    rows = 2 * d * n, 2 * (d + 1) * n, sequences.ends(SLICES)
    judge(fixed_units(*rows, tables, point, d, *scaled, level).max())
    if dims <= 12 and rng.random() < 0.1:
        judge(grid_units(*rows, tables, d, *scaled, 2, 20).max())
    return taken, wrong, claimed


def check_pairs(model: KernelExpansion, rng: np.random.Generator) -> tuple[int, int, int]:
    """Searches made, attacks excluded by one, searches that exclude everything smaller than the attack."""
    pair = best_pair(model, rng)
    if pair is None or not can_search(model.n_centres, model.n_inputs):
        return 0, 0, 0
    tight = at_thresholds(model, *pair)
    if rng.random() < 0.5:
        found = fewest_inputs(tight, starts=pair, n_starts=2)
        if found is not None:
            pair = found.x, found.x_prime
            tight = at_thresholds(model, *pair)
    n = int(np.sum(pair[0] != pair[1]))
    attacks = Attacks.of(tight, n)
    left = search_nodes(root_node(attacks), attacks, PAIR_NODES)[1]
    excluded = left[:, EXCLUDED].min(initial=n)
    return 1, int(excluded >= n), int(excluded == n - 1)


def check_sets(model: KernelExpansion, rng: np.random.Generator) -> tuple[int, int, int]:
    """Searches made, attacks excluded by one, sets excluded once the thresholds are a little farther apart."""
    pair = best_pair(model, rng, most=3)
    if pair is None:
        return 0, 0, 0
    inputs = np.flatnonzero(pair[0] != pair[1])
    tight = at_thresholds(model, *pair)
    n = inputs.size

    def excludes(asked: KernelExpansion) -> bool:
        attacks = Attacks.of(asked, n)
        return search_sets(root_nodes(inputs[None], attacks), attacks, SET_NODES)[1].shape[0] == 0

    wrong = int(excludes(tight))
    assert tight.delta is not None
    apart = rng.choice([1e-6, 0.01, 0.1, 0.5]) * tight.delta
    farther = tight.replace(latent_low=tight.latent_low - apart, latent_high=tight.latent_high + apart)
    if not excludes(farther):
        return 2, wrong, 0
    found = fewest_inputs(farther, starts=pair, n_starts=4)
    if found is not None:
        wrong += int(np.all(np.isin(np.flatnonzero(found.x != found.x_prime), inputs)))
    return 2, wrong, 1


def best_pair(
    model: KernelExpansion, rng: np.random.Generator, most: int | None = None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Of some random pairs that differ in a random number of inputs the one that differs most in latent."""
    d = model.n_inputs
    few = most is not None or rng.random() < 0.5
    n = int(rng.integers(1, min(d, most or 3) + 1)) if few else int(rng.integers(1, d + 1))
    best, pair = 0.0, None
    for _ in range(60):
        sides = rng.random((2, d))
        if rng.random() < 0.6:
            sides = np.round(sides)
        x, moved = model.lower + (model.upper - model.lower) * sides
        if rng.random() < 0.5:
            near = model.centres[rng.integers(model.n_centres)] + rng.normal(size=d) * model.lengthscale * rng.random()
            x = np.clip(near, model.lower, model.upper)
        x_prime = x.copy()
        chosen = rng.choice(d, n, replace=False)
        x_prime[chosen] = moved[chosen]
        change = float(np.diff(model.latent(np.stack([x, x_prime])))[0])
        if abs(change) > best:
            best, pair = abs(change), (x, x_prime) if change > 0 else (x_prime, x)
    return pair


def at_thresholds(model: KernelExpansion, x: np.ndarray, x_prime: np.ndarray) -> KernelExpansion:
    """The model with the latents of a pair as its thresholds."""
    low, high = model.latent(np.stack([x, x_prime])).tolist()
    return model.replace(latent_low=low, latent_high=high)


def main() -> None:
    """Run the soak and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--search", choices=["pairs", "sets"])
    given = parser.parse_args()
    put_to_the_test = {None: check, "pairs": check_pairs, "sets": check_sets}[given.search]
    begun = time.monotonic()
    total = np.zeros(3, dtype=np.int64)
    for k in range(given.models):
        rng = np.random.default_rng([given.seed, k])
        outcome = put_to_the_test(adversarial(rng), rng)
        total += outcome
        if outcome[1]:
            print(f"VIOLATION: seed {given.seed}, model {k}", flush=True)
    seconds = time.monotonic() - begun
    print(
        f"models {given.models} (seed {given.seed}), bounds {total[0]}, violations {total[1]}, "
        f"goals claimed {total[2]}, {seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
