"""What an attacker can do beside the box: told, checked, stored, and held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import points_of, restricted_models

from daskab import KernelExpansion, ModelError, load_model, save_model

NAMES = ["age", "rate", "red", "green", "blue", "a", "b", "c"]


def model(**told: Any) -> KernelExpansion:
    rng = np.random.default_rng(3)
    plain = KernelExpansion(
        rng.random((5, 8)), rng.normal(size=5), 0.5, np.zeros(8), [9.0, *[1.0] * 7], input_names=NAMES
    )
    return plain.restrict(**told) if told else plain


def test_what_is_told_is_what_is_there() -> None:
    made = model(
        frozen=["age"],
        max_change={"rate": 0.25},
        values={"blue": [0.0, 1.0, 0.5, 0.5]},
        groups={"colour": ["red", "green", "blue"]},
        categories={"kind": ["a", "b", "c"]},
    ).domain
    assert made.frozen.tolist() == [True, *[False] * 7]
    assert made.max_change.tolist() == [0.0, 0.25, *[1.0] * 6]
    assert made.listed[4].tolist() == [0.0, 0.5, 1.0]
    assert made.changes == ((0,), (1,), (2, 3, 4), (5, 6, 7))
    assert made.change_names(NAMES) == ("age", "rate", "colour", "kind")
    assert made.words == "1 input frozen, 1 limited, 1 with listed values, 2 groups"
    assert model().domain.words == ""
    assert made.in_category.tolist() == [*[False] * 5, *[True] * 3]


def test_whole_numbers_of_the_box_are_all_an_integer_can_be() -> None:
    assert model(integers=["age"]).domain.listed[0].tolist() == list(range(10))


def test_a_domain_that_takes_nothing_away_is_none() -> None:
    plain, same = model(), model(max_change={"age": 9.0, "rate": 5.0})
    assert same.domain.whole
    assert same.digest == plain.digest
    assert plain.arrays().keys() == same.arrays().keys()


def test_what_is_certified_depends_on_it() -> None:
    told = [{"frozen": ["age"]}, {"max_change": {"age": 1.0}}, {"values": {"age": [0.0]}}, {"integers": ["age"]}]
    more = [{"groups": {"g": ["a", "b"]}}, {"categories": {"g": ["a", "b"]}}]
    more += [{"categories": {"g": ["a", "b"]}, "at_most_one": True}, {"groups": {"h": ["a", "b"]}}]
    assert len({made.digest for made in [model(), *(model(**t) for t in [*told, *more])]}) == 9


@settings(max_examples=15)
@given(made=restricted_models(max_inputs=8))
def test_it_is_kept(made: KernelExpansion, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("kept") / "model.npz"
    save_model(made, path)
    again = load_model(path)
    assert again.digest == made.digest
    assert again.domain.changes == made.domain.changes
    assert again.domain.groups == made.domain.groups
    assert np.array_equal(again.domain.max_change, made.domain.max_change)
    assert all(np.array_equal(again.domain.listed[j], own) for j, own in made.domain.listed.items())


@settings(max_examples=25)
@given(made=restricted_models(max_inputs=8), seed=st.integers(0, 2**32 - 1))
def test_the_nearest_point_is_one_of_the_domain_and_stays(made: KernelExpansion, seed: int) -> None:
    for point in made.domain.nearest(points_of(made, np.random.default_rng(seed), 9)):
        assert made.domain.holds(point)
        assert made.domain.allows(point, point)
        assert np.array_equal(made.domain.nearest(point), point)
        assert made.domain.n_changes(point, point) == 0


def test_what_an_attacker_cannot_do_is_not_allowed() -> None:
    domain = model(
        frozen=["age"], max_change={"rate": 0.25}, values={"red": [0.0, 0.5]}, categories={"kind": ["a", "b", "c"]}
    ).domain
    x = np.array([4.0, 0.5, 0.5, 0.1, 0.1, 1.0, 0.0, 0.0])

    def changed(**to: float) -> np.ndarray:
        out = x.copy()
        for name, value in to.items():
            out[NAMES.index(name)] = value
        return out

    assert domain.allows(x, changed(rate=0.75, red=0.0, green=1.0))
    assert domain.allows(x, changed(a=0.0, c=1.0))
    for wrong in ({"age": 4.5}, {"rate": 0.76}, {"red": 0.25}, {"c": 1.0}, {"a": 0.0}, {"green": 1.1}):
        assert not domain.allows(x, changed(**wrong))
    assert domain.n_changes(x, changed(a=0.0, c=1.0, green=0.3)) == 2


def test_none_of_the_columns_may_be_on_where_it_is_said() -> None:
    domain = model(categories={"kind": ["a", "b"]}, at_most_one=True).domain
    x = np.zeros(8)
    assert domain.holds(x)
    assert domain.groups[0].states == 3
    assert not model(categories={"kind": ["a", "b"]}).domain.holds(x)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"frozen": ["agee"]}, "there is no input 'agee'"),
        ({"frozen": [8]}, "there is no input 8 among 8"),
        ({"frozen": [True]}, "there is no input True"),
        ({"max_change": {"age": -1.0}}, "max_change: -1 of input age is negative"),
        ({"max_change": {"age": float("nan")}}, "nan is not a finite number"),
        ({"values": {"rate": [0.5, 2.0]}}, "listed_value: 2 of input rate lies outside the box"),
        ({"values": {"rate": [float("inf")]}}, "inf at index (0,) is not a finite number"),
        ({"groups": {"g": ["a", "b"], "h": ["b"]}}, "input b is in g and in h"),
        ({"groups": {"g": []}}, "groups: g has no inputs"),
        ({"frozen": "ab"}, "frozen: 'ab' is no list of inputs"),
        ({"groups": {"g": "ab"}}, "groups: g: 'ab' is no list of inputs"),
        ({"groups": {"g": None}}, "groups: g: None is no list of inputs"),
        ({"max_change": [0.1, 0.2]}, "max_change: [0.1, 0.2] does not say"),
        ({"max_change": {"age": 0.1, 0: 0.9}}, "max_change: input age is told twice"),
        ({"values": {"age": [0.0, 1.5]}, "integers": ["age"]}, "values, integers: input age is told twice"),
        ({"values": {"age": []}}, "values: none are given for input age"),
        ({"groups": {"g": ["a"]}, "categories": {"g": ["b"]}}, "'g' is the name of one of each"),
        ({"groups": {"age": ["a", "b"]}}, "age is the name of an input that is not in it"),
        ({"categories": {"g": ["a", "b"]}, "frozen": ["a"]}, "input a can have no values or limit of its own"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(told: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError) as caught:
        model(**told)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"max_change": [0.1]}, "max_change: has shape (1,), expected (8,)"),
        ({"max_change": [-np.inf] * 8}, "-inf at index (0,) is not a finite number"),
        ({"listed_input": [9], "listed_value": [0.5]}, "listed_input: holds other numbers than 0 to 7"),
        ({"listed_input": [1]}, "listed_value: has shape (0,), expected (1,)"),
        ({"group_of": [0] * 8}, "group_of"),
        ({"group_names": ["g"]}, "group_names: given without group_of"),
        ({"group_of": [0] * 8, "group_names": ["g"], "group_kind": ["any"]}, "'any' is none of free"),
        ({"group_of": [0] * 7, "group_names": ["g"]}, "do not fit each other"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    plain: dict[str, Any] = model().arrays()
    np.savez(path, **plain, **{key: np.asarray(value) for key, value in arrays.items()})
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert said in str(caught.value)
