"""Attacks by difference alone: what a sum of one-input bounds excludes, and thresholds do not ask for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models

from daskab import KernelExpansion, ModelError, certify
from daskab.attack.attained import attained_change
from daskab.attack.difference import fewest_for_difference
from daskab.attack.several import fewest_inputs


def test_a_change_is_found_where_the_thresholds_are_not() -> None:
    """One input moves the latent by 1 at the far centre, but only from 2 to 3; the thresholds are at 0 and 0.9."""
    model = KernelExpansion(
        [[0.0, 5.0, 5.0], [9.0, 0.0, 0.0]], [1.0, 1.0], 1.0, [0] * 3, [10, 10, 10], latent_low=-0.9, latent_high=0.0
    )
    assert fewest_inputs(model) is None
    found = fewest_for_difference(model, 8, 0)
    assert found is not None
    assert found.n_inputs == 1
    assert attained_change(model, found.x, found.x_prime) >= 0.9


@settings(max_examples=10)
@given(model=models(max_centres=6, max_inputs=5, lengthscales=(0.2, 3.0), thresholds=True), seed=st.integers(0, 99))
def test_none_beats_the_sum(model: KernelExpansion, seed: int) -> None:
    found = fewest_for_difference(model, 4, seed)
    certificate = certify(model, pair_nodes=0, set_nodes=0, node_budget=200)
    across = fewest_inputs(model, seed=seed, n_starts=4)
    assert across is None or found is not None
    if found is None:
        return
    assert across is None or found.n_inputs <= across.n_inputs
    assert model.delta is not None
    assert np.count_nonzero(found.x != found.x_prime) == found.n_inputs
    if attained_change(model, found.x, found.x_prime) >= model.delta:
        assert certificate.inputs_required_by_sum is not None
        assert found.n_inputs >= certificate.inputs_required_by_sum


def test_it_needs_thresholds() -> None:
    with pytest.raises(ModelError, match="this attack needs both"):
        fewest_for_difference(KernelExpansion([[0.0]], [1.0], 1.0, [0], [1]), 4, 0)
