from __future__ import annotations

import pytest
from examples import ATTACK, mixed_model

from daskab.report.plan import describe_searches
from daskab.run.certify import make_question
from daskab.run.job import bound_options


@pytest.mark.parametrize(
    ("m", "d", "pairs", "sets", "said"),
    [
        (4, 30, 2500, 0, "pairs, at most 2,500 nodes, if the sum leaves a gap to the attack"),
        (60, 8, 2500, 70, "pairs, at most 2,500 nodes; sets, at most 70 nodes, if the sum leaves a gap to the attack"),
        (10, 9, 2500, 70, "sets, at most 70 nodes, if the sum leaves a gap to the attack"),
        (10, 9, 2500, 0, "none"),
        (4, 3, 0, 0, "none"),
    ],
)
def test_the_searches_are_foretold(m: int, d: int, pairs: int, sets: int, said: str) -> None:
    question = make_question(mixed_model(m, d), bound_options(pair_nodes=pairs, set_nodes=sets), ATTACK)
    assert describe_searches(question) == said
