"""What a model's provenance says, read with care: other programs may have written what they like there."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from daskab.model.checked import Array


def made_of(provenance: str | None) -> dict[str, Any]:
    """What a model was made of; empty where its provenance is none that daskab wrote."""
    try:
        said = json.loads(provenance or "")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def zero_and_one(said: dict[str, Any], n_inputs: int) -> Array | None:
    """What 0 and 1 of each input stand for in the units of the data, (2, D); None where that is not said."""
    try:
        span = np.asarray(said.get("zero_and_one"), dtype=np.float64)
    except (ValueError, TypeError):
        return None
    return span if span.shape == (2, n_inputs) and bool(np.all(np.isfinite(span))) else None
