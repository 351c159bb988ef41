from __future__ import annotations

import pytest
from examples import ATTACK, mixed_model

from daskab.report.plan import describe_search
from daskab.run.certify import make_question
from daskab.run.job import bound_options


@pytest.mark.parametrize(
    ("m", "d", "nodes", "said"),
    [
        (4, 30, 2500, "at most 2,500 nodes, if the sum leaves a gap to the attack"),
        (60, 8, 2500, "at most 2,500 nodes, if the sum leaves a gap to the attack"),
        (10, 9, 2500, "none: the centres span more than 8 directions"),
        (4, 3, 0, "none asked for"),
    ],
)
def test_the_search_is_foretold(m: int, d: int, nodes: int, said: str) -> None:
    question = make_question(mixed_model(m, d), bound_options(joint_nodes=nodes), ATTACK)
    assert describe_search(question) == said
