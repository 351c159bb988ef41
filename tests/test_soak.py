"""A short form of the soak: adversarial models, every method, no bound below what an attack attains."""

from __future__ import annotations

import numpy as np
import pytest
from soak import adversarial, check


@pytest.mark.parametrize("seed", range(8))
def test_no_bound_lies_below_an_attack(seed: int) -> None:
    bounds = claimed = 0
    for k in range(60):
        rng = np.random.default_rng([seed, k, 77])
        model = adversarial(rng)
        taken, wrong, claims = check(model, rng)
        assert not wrong, f"seed {seed}, model {k}"
        bounds += taken
        claimed += claims
    assert bounds > 200
    assert claimed > 10
