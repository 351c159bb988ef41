"""Whether certificates are the same to the byte on another processor: kernels, libm and NumPy held to the plainest.

Run by hand (some minutes: all kernels are compiled again): ``python tests/benchmarks/processors.py``. Exit code 1 if
any differs.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1]

PLAIN = {
    "NUMBA_CPU_NAME": "x86-64",
    "NUMBA_CPU_FEATURES": "",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
}


def certificates() -> list[str]:
    """Digests of the certificates of a few models, through both searches over several inputs and the fixed methods."""
    sys.path.insert(0, str(TESTS))
    from examples import mixed_model

    import daskab

    found = []
    for m, d, seed in ((30, 6, 1), (12, 9, 2), (6, 3, 3)):
        model = mixed_model(m, d, seed)
        for how in (
            {"node_budget": 2000, "set_nodes": 2000},
            {"method": "fixed"},
            {"method": "grid", "resolution": 20},
        ):
            text = daskab.certify(model, **({"slices": 5} | how)).to_json()
            found.append(f"{m} x {d} {how.get('method', 'adaptive')} {hashlib.sha256(text.encode()).hexdigest()}")
    return found


def asked(variables: dict[str, str]) -> list[str]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--child"]
    said = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


def main() -> int:
    if "--child" in sys.argv:
        print("\n".join(certificates()))
        return 0
    with tempfile.TemporaryDirectory() as cache:
        here, plain = asked({}), asked(PLAIN | {"NUMBA_CACHE_DIR": cache})
    for a, b in zip(here, plain, strict=True):
        print("same     " if a == b else "different", a if a == b else f"{a}\n          {b}")
    return int(here != plain)


if __name__ == "__main__":
    sys.exit(main())
