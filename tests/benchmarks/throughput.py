"""What limits the kernels: how many exponentials a second they take, beside a plain loop of nothing else.

    python tests/benchmarks/throughput.py

The sign bound takes one exp a centre, the quadratic two a positive and one a negative weight in each of three rounds.
Beside exp the quadratic touches every coordinate of every centre about twice a round, so its share of the plain loop
falls with the number of inputs: there memory and multiplications are the limit.
"""

from __future__ import annotations

import math
import time

import numpy as np

from daskab._compile import inner_kernel
from daskab.bound.item import WEIGHT, Item, item_of
from daskab.bound.reach import free_reach
from daskab.bound.transverse import ROUNDS, fill_reach, quadratic_bound, sign_bound


@inner_kernel
def plain(values: np.ndarray, times: int) -> float:
    """Sum of exp(-v) over the values, so many times over."""
    total = 0.0
    for k in range(times):
        for i in range(values.size):
            total += math.exp(-values[i] - 1e-9 * k)
    return total


@inner_kernel
def bounds(item: Item, times: int, quadratic: bool) -> float:
    """So many sign or quadratic bounds, each of other weights."""
    total = 0.0
    for k in range(times):
        item.term[WEIGHT, 0] += 1e-12 * k
        total += quadratic_bound(item, -1.0) if quadratic else sign_bound(item)
    return total


def main() -> None:
    """Print exponentials a second, in millions."""
    rng = np.random.default_rng(0)
    values = rng.random(1000)
    print(f"{'M':>6s}{'D':>6s}{'plain':>10s}{'sign':>10s}{'quadratic':>11s}  million exp/s")
    for m, d in ((4, 14), (100, 14), (400, 14), (4, 438), (100, 438)):
        made = item_of(rng.random((m, d)), np.ones(m), np.ones(d), free_reach(d), 0, 1)
        made.term[WEIGHT] = rng.normal(size=m)
        fill_reach(made)
        positive = int(np.sum(made.term[WEIGHT] > 0))
        cost = {"plain": 1000, "sign": m, "quadratic": ROUNDS * (m + positive)}
        calls = {
            "plain": lambda n: plain(values, n),
            "sign": lambda n, made=made: bounds(made, n, False),
            "quadratic": lambda n, made=made: bounds(made, n, True),
        }
        row = f"{m:6d}{d:6d}"
        for name, call in calls.items():
            call(2)
            times = max(2, int(2e7 / cost[name] / (1 if name != "quadratic" else 10)))
            begun = time.perf_counter()
            call(times)
            row += f"{cost[name] * times / (time.perf_counter() - begun) / 1e6:{11 if name == 'quadratic' else 10}.1f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
