"""Side by side: what each bounding method makes of the same models, in one run.

    DASKAB_PROBLEMS=... python tests/benchmarks/bounds.py [--slices 10] [--only NAME ...]

For every problem and method: R = (sum of the n largest bounds) / (sum of the n largest attained), n the number of
inputs the attained values need; seconds; certified k. The first four use fixed slices and every sequence; "full" is
what `daskab.certify` does without its store, attack included.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from daskab import KernelExpansion, load_model
from daskab.attack.single import attack_input, start_points
from daskab.bound import sequences
from daskab.bound.climb import climb
from daskab.bound.contributions import DIRECTIONS, input_table, slice_edges
from daskab.bound.examine import start_climb
from daskab.bound.goals import goals
from daskab.bound.grid import grid_units
from daskab.bound.item import BEST, POINT, WEIGHT, Item, item_of
from daskab.bound.nodes import BOUND, UNIT
from daskab.bound.scaled import Scaled
from daskab.bound.shells import below_level
from daskab.bound.topn import inputs_required, largest_sums
from daskab.bound.transverse import fill_reach, quadratic_bound, sign_bound
from daskab.bound.units import bound_units, refine_nodes

Array = np.ndarray
Transverse = Callable[[Item, float], float]
RTOL = 0.002
MOST_ROUNDS = 6


def by_sign(item: Item, so_far: float) -> float:
    return float(sign_bound(item))


def by_quadratic(item: Item, so_far: float) -> float:
    return float(quadratic_bound(item, so_far))


def by_shells(item: Item, so_far: float) -> float:
    """Least level that passes, to 0.1 %; nothing below the largest bound so far is of interest."""
    item.axis[BEST] = 0.0
    start_climb(item)
    value = climb(item, 100)
    low, high = max(value, so_far, 1e-12), float(np.abs(item.term[WEIGHT]).sum()) * 1.01
    if so_far > value and below_level(item, so_far):
        return so_far
    while high > 1.001 * low:
        middle = math.sqrt(low * high) if high > 1.1 * low else 0.5 * (low + high)
        if below_level(item, middle):
            high = middle
        else:
            low = middle
    return high


def by_grid(s: Scaled, slices: int) -> Array:
    """Bound (D,) of every input by the paper's grid, at its default size: 50 lines along the diagonal, 2 components."""
    n, model = sequences.count(slices), (s.centres, s.amplitudes, s.width)
    out = np.zeros(s.width.size)
    for d in range(s.width.size):
        tables = input_table(s.centres[:, d], s.amplitudes, s.width[d], slices)[:, None]
        out[d] = grid_units(2 * d * n, 2 * (d + 1) * n, sequences.ends(slices), tables, d, *model, 2, 50).max()
    return out


def fixed(s: Scaled, slices: int, transverse: Transverse) -> Array:
    """Bound (D,) of every input by fixed slices and one transverse bound."""
    m, dims = s.centres.shape
    prefix = np.empty((slices + 1, m))
    out = np.zeros(dims)
    for d in range(dims):
        for sign, table in zip(DIRECTIONS, input_table(s.centres[:, d], s.amplitudes, s.width[d], slices), strict=True):
            item = item_of(s.centres, s.amplitudes, s.width, s.reach, d, sign)
            fill_reach(item)
            item.axis[POINT] = 0.5 * item.axis[0]
            sequences.fill_prefix(table, prefix)
            for first, last in sequences.ends(slices):
                sequences.sequence_weights(table, prefix, s.amplitudes, first, last, item.term[WEIGHT])
                out[d] = max(out[d], transverse(item, out[d]))
    return out


def attack(s: Scaled) -> tuple[Array, Array]:
    """Attained value (D,) and the point (D, D) it is attained at, for every input."""
    dims = s.width.size
    starts = start_points(s.centres, s.amplitudes, s.width, 16, 0)
    attained, points, best = np.empty(dims), np.empty((dims, dims)), np.empty(dims + 1)
    for d in range(dims):
        attained[d] = attack_input(s.centres, s.amplitudes, s.width, d, starts, best)
        points[d] = best[:dims]
    return attained, points


def full(
    model: KernelExpansion, s: Scaled, found: tuple[Array, Array], slices: int = 4, rtol: float = RTOL
) -> tuple[Array, int]:
    """Bound (D,) of every input, refined in rounds towards what the attack found, and the nodes left open."""
    attained, points = found
    goal = goals(attained, s.amplitudes, model.delta, rtol)
    dims, n = s.width.size, sequences.count(slices)
    edges = np.stack([slice_edges(w, slices) for w in s.width])
    tables = np.stack([input_table(s.centres[:, d], s.amplitudes, s.width[d], slices) for d in range(dims)], axis=1)
    units = (0, 2 * dims * n, sequences.ends(slices), edges, tables, points, 0)
    nodes = bound_units(*units, s.centres, s.amplitudes, s.width, s.reach, goal)
    out = np.zeros(dims)
    for _ in range(MOST_ROUNDS):
        closed, _, frontier, _ = refine_nodes(
            nodes, n, s.centres, s.amplitudes, s.width, s.reach, goal, np.full(dims, 256), attained
        )
        np.maximum.at(out, nodes[:, UNIT].astype(int) // (2 * n), closed)
        nodes = frontier
        if not len(nodes):
            return out, 0
    np.maximum.at(out, nodes[:, UNIT].astype(int) // (2 * n), nodes[:, BOUND])
    return out, len(nodes)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    folder = Path(os.environ["DASKAB_PROBLEMS"])
    methods: dict[str, Callable[[KernelExpansion, Scaled], Array]] = {
        "sign": lambda model, s: fixed(s, given.slices, by_sign),
        "grid": lambda model, s: by_grid(s, given.slices),
        "quadratic": lambda model, s: fixed(s, given.slices, by_quadratic),
        "shells": lambda model, s: fixed(s, given.slices, by_shells),
        "full": lambda model, s: full(model, s, attack(s))[0],
    }
    print(f"R, seconds, k; fixed: {given.slices} slices; full: rtol {RTOL}")
    print(f"{'problem':30s}" + "".join(f"{name:>24s}" for name in methods))
    paths = [p for p in sorted(folder.glob("*.npz")) if not given.only or p.stem in given.only]
    for model in (load_model(paths[0]),):
        for method in methods.values():
            method(model, Scaled.of(model))  # compiles
    for path in paths:
        model = load_model(path)
        s = Scaled.of(model)
        attained = attack(s)[0]
        delta = float(model.delta or np.inf)
        n = inputs_required(largest_sums(np.maximum(attained, 0.0), towards=-math.inf), delta) or model.n_inputs
        best = np.sort(attained)[::-1][:n].sum()
        row = f"{path.stem:30s}"
        for method in methods.values():
            begun = time.perf_counter()
            upper = method(model, s)
            seconds = time.perf_counter() - begun
            k = inputs_required(largest_sums(upper, towards=math.inf), delta)
            row += f"{np.sort(upper)[::-1][:n].sum() / best:12.4f}{seconds:8.2f}{k if k is not None else '-':>4}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
