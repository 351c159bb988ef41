"""A short form of the soak: adversarial models, every method, no bound below what an attack attains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from soak import adversarial, check, check_pairs, check_sets


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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("search", [check_pairs, check_sets])
def test_no_search_excludes_an_attack(search: Any, seed: int) -> None:
    searches = tight = 0
    for k in range(100):
        rng = np.random.default_rng([seed, k, 78])
        made, wrong, exact = search(adversarial(rng), rng)
        assert not wrong, f"seed {seed}, model {k}"
        searches += made
        tight += exact
    assert searches > 60
    assert tight > 20
