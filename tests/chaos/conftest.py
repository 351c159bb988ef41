"""What the tests of clusters compare with."""

from __future__ import annotations

import pytest
from clusters import CUT, MODEL, OPTIONS
from examples import ask, sealed


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The certificate of the run that clusters are disturbed in, made in peace and inline."""
    return sealed(ask(MODEL, OPTIONS, tmp_path_factory.mktemp("whole"), cut=CUT))
