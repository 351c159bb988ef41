"""The plan: everything a certificate depends on, written down before any work, and how it is cut into batches.

The run id is a hash of the *question* (model, method, numerics). How the work is batched cannot change an
answer, so it is kept beside the question, chosen once and never again.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numba
import numpy as np
from numpy.typing import NDArray

from daskab._compile import SOURCE_HASH
from daskab._version import VERSION
from daskab.bound import sequences
from daskab.errors import IntegrityError

SCHEMA = 4
Method = Literal["adaptive", "fixed", "grid"]


def canonical_json(value: Any) -> str:
    """One text for one value: sorted keys, no spaces, shortest floats, NaN refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def numerics() -> dict[str, str]:
    """Versions the bits of a result depend on."""
    return {"daskab": VERSION, "kernels": SOURCE_HASH, "numba": numba.__version__, "numpy": np.__version__}


@dataclass(frozen=True)
class Question:
    """What is asked; its canonical JSON is what the run id hashes."""

    model_digest: str
    n_centres: int
    n_inputs: int
    method: Method
    slices: int
    rtol: float | None  #: target of bound / attained - 1; None where slices are fixed
    node_budget: int  #: most nodes opened an input; 0 where slices are fixed
    pair_nodes: int  #: most nodes opened by the search over pairs; 0 for none
    set_nodes: int  #: most nodes opened by the search over sets; 0 for none
    components: int  #: directions of the grid; 0 without
    resolution: int  #: lines of the grid; 0 without
    enhance: int  #: times the input with the highest bound is cut finer; 0 if adaptive
    enhance_slices: int  #: into how many slices, to begin with
    attack_starts: int
    attack_seed: int
    slack: tuple[float, ...] = ()  #: (D,) how far above what each input attains its bound may stay; none: not at all
    numerics: dict[str, str] = field(default_factory=numerics)
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        object.__setattr__(self, "slack", tuple(self.slack))  # JSON has lists

    @property
    def run_id(self) -> str:
        """First 16 hex digits of the SHA-256 of the canonical question."""
        return hashlib.sha256(canonical_json(asdict(self)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    """A question cut into batches.

    The logical unit is one (dimension, direction, sequence); units are numbered in that order and a batch
    is a contiguous range of them, so a batch holds many small inputs or a part of a large one.
    """

    question: Question
    batch: int  #: logical units a task of the first round
    block: int  #: inputs a contributions or attack task
    node_batch: int  #: nodes a task of a later round bounds, about

    @property
    def n_sequences(self) -> int:
        """Sequences of one input and direction."""
        return sequences.count(self.question.slices)

    @property
    def n_units(self) -> int:
        """Logical units of the first round."""
        return 2 * self.question.n_inputs * self.n_sequences

    @property
    def n_blocks(self) -> int:
        """Tasks of the contributions stage, and of the attack stage."""
        return math.ceil(self.question.n_inputs / self.block)

    def input_of(self, units: NDArray[np.int64]) -> NDArray[np.int64]:
        """Input of each logical unit."""
        return units // (2 * self.n_sequences)

    def to_json(self) -> str:
        """Canonical text of the plan."""
        return canonical_json(asdict(self) | {"run_id": self.question.run_id})

    @classmethod
    def from_json(cls, text: str, where: str) -> Plan:
        """Read a plan back.

        Raises
        ------
        IntegrityError
            If the text is not a plan or its run id does not fit its question.
        """
        try:
            raw = json.loads(text)
            run_id = raw.pop("run_id")
            plan = cls(question=Question(**raw.pop("question")), **raw)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise IntegrityError(f"{where}: not a plan ({error}); move the run away and start again") from None
        if plan.question.run_id != run_id:
            raise IntegrityError(f"{where}: its run id {run_id} does not fit its content; move the run away")
        return plan
