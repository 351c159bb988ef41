"""The search over sets: which sets, what a node's corners bound, and what it excludes (METHOD J7)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import at_thresholds
from strategies import models

from daskab import KernelExpansion, certify
from daskab.attack.attained import crosses_thresholds
from daskab.attack.several import fewest_inputs
from daskab.bound.climb import mixture
from daskab.bound.item import POINT, WEIGHT
from daskab.bound.reach import free_reach
from daskab.bound.scaled import to_model_units
from daskab.joint.attacks import Attacks
from daskab.joint.midpoint.search import root_node, search_nodes
from daskab.joint.sets import candidates as candidate_sets
from daskab.joint.sets.candidates import candidates
from daskab.joint.sets.moves import EITHER, choose_corners, choose_set, corner_weights, load, moves_of, raise_weights
from daskab.joint.sets.nodes import FIRST, FOUND, SPLIT, box_at, cells_at
from daskab.joint.sets.search import pair_in, root_nodes, search_sets

ctx.prec = 150


def dense(seed: int, m: int = 30, d: int = 6, lengthscale: float = 0.8) -> KernelExpansion:
    """More directions between the centres than the search over pairs goes into."""
    rng = np.random.default_rng(seed)
    bare = KernelExpansion(rng.random((m, d)), rng.normal(size=m), lengthscale, np.zeros(d), np.ones(d))
    low, high = np.percentile(bare.latent(rng.random((400, d))), [4, 96])
    return bare.replace(latent_low=float(low), latent_high=float(high))


def excluded(model: KernelExpansion, n: int, allowance: int = 3000) -> bool:
    sets = np.array(list(itertools.combinations(range(model.n_inputs), n)))
    attacks = Attacks.of(model, n)
    return search_sets(root_nodes(sets, attacks), attacks, allowance)[1].shape[0] == 0


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 1.0 / 3.0, 1e-300]), min_size=1, max_size=8),
    st.integers(1, 4),
    st.sampled_from([1e-300, 0.3, 0.5, 1.0, 1.0 + 2**-52, 1.5, 9.0]),
)
def test_candidates_are_the_sets_whose_sum_is_not_below(upper: list[float], size: int, delta: float) -> None:
    found = candidates(np.array(upper), delta, size)
    assert found is not None
    wanted = {
        s
        for s in itertools.combinations(range(len(upper)), size)
        if not math.nextafter(math.fsum(upper[k] for k in s), math.inf) < delta
    }
    assert {tuple(s) for s in found.tolist()} == wanted
    assert len(found) == len(wanted)
    sums = [math.fsum(upper[k] for k in s) for s in found.tolist()]
    assert sums == sorted(sums, reverse=True)


def test_too_many_sets_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_sets, "MOST_SETS", 20)
    assert candidates(np.ones(6), 3.0, 3) is not None
    assert candidates(np.ones(7), 3.0, 3) is None
    assert candidates(np.ones(40), 3.0, candidate_sets.MOST_MOVED + 1) is None


@settings(deadline=None, max_examples=100)
@given(models(max_centres=8, max_inputs=6, lengthscales=(0.2, 10.0), thresholds=True), st.integers(0, 2**32 - 1))
def test_no_move_inside_the_cells_exceeds_all_corners(model: KernelExpansion, seed: int) -> None:
    rng = np.random.default_rng(seed)
    if not np.any(model.weights):
        return
    n = int(rng.integers(1, min(3, model.n_inputs) + 1))
    inputs = np.sort(rng.choice(model.n_inputs, n, replace=False))
    attacks = Attacks.of(model, n)
    moves = moves_of(attacks)
    node = root_nodes(inputs[None], attacks)[0]
    size = rng.choice([1.0, 0.3, 0.01])
    cells = node[cells_at(n) : cells_at(n) + 4 * n].reshape(2, 2, n)
    cells[0] = (1.0 - size) * rng.random((2, n)) * attacks.width[inputs]
    cells[1] = np.minimum(cells[0] + size * attacks.width[inputs], attacks.width[inputs])
    inside = cells[0] + (cells[1] - cells[0]) * rng.choice([0.0, 0.5, 1.0, rng.random()], (2, n))
    choose_set(node, moves)
    load(node, moves)
    z = attacks.width[moves.others] * rng.random(moves.others.size)
    moves.item.axis[POINT] = z
    share = float(rng.random())
    raise_weights(moves, share)
    corners = []
    for start, end in itertools.product(range(2**n), repeat=2):
        choose_corners(moves, start, end)
        corner_weights(moves, share)
        weights = moves.item.term[WEIGHT].copy()
        corners.append(mixture(moves.item, WEIGHT, POINT))
        # Ends left open never weigh less.
        moves.corner[rng.random(2 * n) < 0.5] = EITHER
        corner_weights(moves, share)
        assert np.all(moves.item.term[WEIGHT] >= weights)
    exact = arb(0)
    for centre, amplitude in zip(attacks.centres, attacks.amplitudes.tolist(), strict=True):
        others = sum(((arb(a) - arb(b)) ** 2 for a, b in zip(z.tolist(), centre[moves.others], strict=True)), arb(0))
        ends = [
            (-(others + sum(((arb(a) - arb(b)) ** 2 for a, b in zip(side, centre[inputs], strict=True)), arb(0))) / 2)
            for side in inside.tolist()
        ]
        exact += arb(amplitude) * (arb(share) * ends[1].exp() - (arb(1.0 - share)) * ends[0].exp())
    # The mixture at a point is summed without a rounding term of its own.
    reach = np.abs(moves.item.term[WEIGHT]).sum() + np.abs(attacks.amplitudes).sum()
    assert not arb(max(corners)) + arb(1e-14 * reach * (1.0 + moves.others.size)) < exact


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_every_attack_stays_in_an_open_node(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, n = 4, int(rng.integers(1, 4))
    bare = dense(seed, m=12, d=d, lengthscale=float(rng.uniform(0.3, 1.5)))
    inputs = np.sort(rng.choice(d, n, replace=False))
    x = np.round(rng.random((200, d)) * 2) / 2
    x_prime = x.copy()
    x_prime[:, inputs] = np.round(rng.random((200, n)) * 2) / 2
    change = bare.latent(x_prime) - bare.latent(x)
    best = np.argmax(change)
    model = at_thresholds(bare, x[best], x_prime[best])
    attacks = Attacks.of(model, n)
    left = search_sets(root_nodes(inputs[None], attacks), attacks, 40)[1]
    others = np.setdiff1d(np.arange(d), inputs)
    scaled = (x[best] / model.lengthscale, x_prime[best] / model.lengthscale)
    ends = np.stack([point[inputs] for point in scaled])
    z, at = scaled[0][others], box_at(n, others.size)
    held = 0
    for row in left:
        cells = row[cells_at(n) : cells_at(n) + 4 * n].reshape(2, 2, n)
        box = row[at:].reshape(2, -1)
        held += bool(np.all(cells[0] <= ends) and np.all(ends <= cells[1]) and np.all((box[0] <= z) & (z <= box[1])))
    assert held > 0


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_the_attack_on_dense_models(seed: int) -> None:
    model = dense(seed)
    found = fewest_inputs(model)
    assert found is not None
    assert not excluded(model, found.n_inputs)
    for n in range(1, found.n_inputs):
        assert excluded(model, n)


def test_an_attack_it_meets_is_one() -> None:
    model = dense(3)
    found = fewest_inputs(model)
    assert found is not None
    n = found.n_inputs
    attacks = Attacks.of(model, n)
    sets = np.array(list(itertools.combinations(range(model.n_inputs), n)))
    left = search_sets(root_nodes(sets, attacks), attacks, 300)[1]
    met = left[left[:, SPLIT] == FOUND]
    assert met.shape[0] > 0
    for node in met:
        pair = pair_in(node, attacks)
        x, x_prime = (to_model_units(model, point) for point in pair)
        assert crosses_thresholds(model, x, x_prime)
        assert set(np.flatnonzero(x != x_prime)) <= set(node[FIRST : FIRST + n].astype(int))


def test_how_nodes_are_batched_does_not_matter() -> None:
    model = dense(1)
    attacks = Attacks.of(model, 2)
    roots = root_nodes(np.array(list(itertools.combinations(range(model.n_inputs), 2))), attacks)
    together = search_sets(roots, attacks, 12)
    apart = [search_sets(roots[k : k + 1], attacks, 12) for k in range(roots.shape[0])][::-1]
    assert together[1].shape[0] > 0
    assert together[0].tobytes() == np.concatenate([used for used, _ in apart][::-1]).tobytes()
    assert together[1].tobytes() == np.concatenate([left for _, left in apart][::-1]).tobytes()


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("amplitudes", np.nan),
        ("amplitudes", np.inf),
        ("amplitudes", -np.inf),
        ("centres", np.nan),
        ("centres", np.inf),
        ("width", np.nan),
        ("width", np.inf),
    ],
)
def test_what_is_not_a_number_closes_nothing(what: str, value: float) -> None:
    attacks = Attacks.of(dense(0), 1)
    inputs = np.array([[0]])
    assert search_sets(root_nodes(inputs, attacks), attacks, 2000)[1].shape[0] == 0
    getattr(attacks, what).flat[1] = value
    assert search_sets(root_nodes(inputs, attacks), attacks, 2000)[1].shape[0] > 0


@pytest.mark.parametrize(
    "width", [0.5, pytest.param(1.0, marks=pytest.mark.long), pytest.param(2.0, marks=pytest.mark.long), 6.0]
)
def test_subnormal_amplitudes(width: float) -> None:
    """Each product of weight and variance loses up to half the smallest number, and there are many."""
    m, smallest, variance = 12, 5e-324, 1e-150
    weight = float(Fraction(smallest) * Fraction(449, 100) / Fraction(variance))
    most = float(Fraction(weight) * Fraction(variance) * m / Fraction(smallest))
    # In units of the smallest number f rises from this at the far end of the box to `most`.
    least = most * math.exp(-0.5 * width**2)
    low, high = math.ceil(least) + 1, int(most)
    assert least < low < high <= most
    bare = KernelExpansion(np.zeros((m, 1)), np.full(m, weight), 1.0, [0.0], [width], variance=variance)
    model = bare.replace(latent_low=low * smallest, latent_high=high * smallest)
    attacks = Attacks.of(model, 1)
    assert search_sets(root_nodes(np.array([[0]]), attacks), attacks, 60)[1].shape[0] > 0
    assert search_nodes(root_node(attacks), attacks, 60)[1].shape[0] > 0
    assert not certify(model).no_attack_exists


def test_thresholds_lost_in_rounding_exclude_nothing() -> None:
    rng = np.random.default_rng(0)
    for high, low in ((-0.5, -0.25), (-1e-3, -1e-3), (0.0, 0.0)):
        attacks = Attacks(rng.random((5, 3)), 1e-9 * rng.normal(size=5), np.ones(3), free_reach(3), high, low, 2, False)
        assert search_sets(root_nodes(np.array([[0, 1]]), attacks), attacks, 30)[1].shape[0] > 0
