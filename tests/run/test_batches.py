"""How large tasks are."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import ATTACK, mixed_model
from hypothesis import given
from hypothesis import strategies as st

from daskab.errors import JobError
from daskab.run.batches import EVEN_TASKS, LONGEST_SECONDS, MOST_TASKS, fewest, items, nodes
from daskab.run.certify import make_question
from daskab.run.driver import Drive
from daskab.run.job import bound_options


def test_a_long_stage_has_tasks_of_a_second() -> None:
    assert items(100_000, 0.01) == 100
    assert nodes(100_000, 500.0, most=10, opened=None) == 50
    assert nodes(100_000, 500.0, most=250, opened=2.5) == 8  # no longer than four seconds at worst
    assert nodes(100_000, 500.0, most=20, opened=2.5) == 100


def test_a_short_stage_is_shared_and_a_tiny_one_is_not_cut_to_pieces() -> None:
    assert items(800, 0.01) == 50  # 8 s
    assert -(-800 // items(800, 0.01)) == EVEN_TASKS
    assert items(20, 0.01) == 10  # of 0.1 s each


@given(
    st.integers(1, 10**6),
    st.floats(1e-3, 1e6),
    st.integers(1, 256),
    st.one_of(st.none(), st.floats(0.0, 256.0)),
)
def test_no_task_can_take_much_longer_than_it_should(
    n_nodes: int, per_second: float, most: int, opened: float | None
) -> None:
    size = nodes(n_nodes, per_second, most, opened)
    assert 1 <= size <= n_nodes
    assert size == fewest(n_nodes) or size * most <= LONGEST_SECONDS * per_second


def test_no_stage_has_too_many_tasks(tmp_path: Path) -> None:
    assert -(-(10**7) // items(10**7, 1.0)) == MOST_TASKS
    assert -(-(10**7) // nodes(10**7, 1.0, most=256, opened=None)) == MOST_TASKS
    model = mixed_model(2, 10)
    bound = bound_options(method="fixed", slices=150)
    with pytest.raises(JobError, match=r"run.batch: 2 cuts 226500 units into more than 100000 tasks; 12 makes 20000"):
        Drive(make_question(model, bound, ATTACK), model, tmp_path, batch=2)
    assert not list(tmp_path.iterdir())
