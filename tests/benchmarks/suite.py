"""The whole service, store and all, on the problem suite: certified k, what the sum proves, R, seconds, memory.

    DASKAB_PROBLEMS=... python tests/benchmarks/suite.py [--only NAME ...] [--cluster WHERE]

R is against the suite's own attained values, at the number of inputs its table gives. The first model is certified
twice, so that compilation is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path

import numpy as np

import daskab


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--cluster", default="inline")
    given = parser.parse_args()
    folder = Path(os.environ["DASKAB_PROBLEMS"])
    table = json.loads((folder / "attained.json").read_text())
    names = [n for n in table if not given.only or n in given.only]
    begun = time.perf_counter()
    daskab.certify(daskab.load_model(folder / f"{names[0]}.npz"))
    print(f"first call, compilation included: {time.perf_counter() - begun:.1f} s")
    print(
        f"{'problem':30s} {'k':>4} {'sum':>4} {'best':>5} {'attack':>6} {'by':>5} "
        f"{'R':>8} {'seconds':>8} complete below"
    )
    total = 0.0
    for name in names:
        model = daskab.load_model(folder / f"{name}.npz")
        attained = np.asarray(table[name]["attained"])
        n = table[name]["k_attained"]
        begun = time.perf_counter()
        c = daskab.certify(model, cluster=given.cluster)
        seconds = time.perf_counter() - begun
        total += seconds
        ratio = np.sort(c.upper_bound)[::-1][:n].sum() / np.sort(attained)[::-1][:n].sum()
        below = int(np.sum(c.upper_bound < attained * (1 - 1e-12)))
        print(
            f"{name:30s} {c.inputs_required!s:>4} {c.inputs_required_by_sum!s:>4} {n:5d} {c.attack_inputs!s:>6} "
            f"{c.proved_by:>5} {ratio:8.5f} {seconds:8.2f} {c.complete!s:>8} {below:5d}",
            flush=True,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"total {total:.1f} s, peak memory of the client {peak:.0f} MiB")


if __name__ == "__main__":
    main()
