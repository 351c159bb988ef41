"""How time grows with the number of centres, of inputs, and with the tolerance, on generated models.

    python tests/benchmarks/families.py [--most-seconds 120]

A model has centres drawn uniformly in [0, 1]^D, labels by the side of a random plane, and weights of the label's sign
between 0 and 1, as the dense Laplace approximation gives them; lengthscale sqrt(D) / 2. Seconds are those of the
kernels (attack, and bounds to the tolerance), after compilation, one core; R as in `bounds.py`.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from bounds import attack, full

from daskab import KernelExpansion
from daskab.bound.scaled import Scaled
from daskab.bound.topn import inputs_required, largest_sums

INPUTS = (10, 30, 100, 300, 1000)
CENTRES = (2, 5, 10, 30, 100, 300, 1000)
RTOLS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)


def family(m: int, d: int, seed: int = 0) -> KernelExpansion:
    """A model of the family with M centres and D inputs."""
    rng = np.random.default_rng([seed, m, d])
    centres = rng.random((m, d))
    side = np.where((centres - 0.5) @ rng.normal(size=d) > 0, 1.0, -1.0)
    side[:2] = 1.0, -1.0
    model = KernelExpansion(centres, side * rng.random(m), 0.5 * math.sqrt(d), np.zeros(d), np.ones(d))
    low, high = np.percentile(model.latent(rng.random((2000, d))), [5, 95])
    return model.replace(latent_low=float(low), latent_high=float(high))


def row(m: int, d: int, rtol: float) -> float:
    """Measure and print one model; seconds in all."""
    model = family(m, d)
    s = Scaled.of(model)
    begun = time.perf_counter()
    attained, points = attack(s)
    attacked = time.perf_counter()
    upper, n_open = full(model, s, (attained, points), rtol=rtol)
    ended = time.perf_counter()
    best = largest_sums(np.maximum(attained, 0.0), towards=-math.inf)
    n = inputs_required(best, float(model.delta or math.inf)) or d
    ratio = largest_sums(upper, towards=math.inf)[n - 1] / best[n - 1]
    print(
        f"{m:6d}{d:6d}{rtol:9.4f}{attacked - begun:10.3f}{ended - attacked:10.3f}{ratio:10.5f}{n_open:8d}", flush=True
    )
    return ended - begun


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most-seconds", type=float, default=120.0, help="a table ends after a row that took longer")
    given = parser.parse_args()
    row(5, 10, 0.002)
    row(30, 10, 0.002)
    tables = (
        ("inputs, 4 centres", [(4, d, 0.002) for d in INPUTS]),
        ("inputs, 100 centres", [(100, d, 0.002) for d in INPUTS]),
        ("centres, 20 inputs", [(m, 20, 0.002) for m in CENTRES]),
        ("centres, 100 inputs", [(m, 100, 0.002) for m in CENTRES]),
        ("tolerance, 4 centres, 100 inputs", [(4, 100, r) for r in RTOLS]),
        ("tolerance, 100 centres, 20 inputs", [(100, 20, r) for r in RTOLS]),
    )
    for title, rows in tables:
        print(f"\n{title}\n{'M':>6s}{'D':>6s}{'rtol':>9s}{'attack s':>10s}{'bound s':>10s}{'R':>10s}{'open':>8s}")
        for m, d, rtol in rows:
            if row(m, d, rtol) > given.most_seconds:
                break


if __name__ == "__main__":
    main()
