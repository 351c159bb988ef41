"""The certificate: what was proved, what was attained, and what follows; nothing about when or where."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from daskab.errors import IntegrityError
from daskab.run.plan import canonical_json

Array = NDArray[np.float64]

SCHEMA = "daskab certificate 3"

LINEAR = "linear"
"""The method of a linear model's certificate, which is exact and made at once, without a run."""


@dataclass(frozen=True, eq=False)
class Attack:
    """A pair of points that differ in ``n_inputs`` inputs, one confidently of each class."""

    n_inputs: int
    x: tuple[float, ...]
    x_prime: tuple[float, ...]
    latent_x: float
    latent_x_prime: float


@dataclass(frozen=True, eq=False)
class Witnesses:
    """For everything that counts as one change, a pair of points of the domain that it lies between.

    Attributes
    ----------
    x : ndarray, shape (C, D)
        Row c is the point from which change c is made; without groups C is D, and change d moves input d.
    moved_to : ndarray, shape (D,) or (C, D)
        The value input d moves to; the points that are moved to, where the model has groups.
    """

    x: Array
    moved_to: Array

    def pair(self, d: int) -> tuple[Array, Array]:
        """The two points (D,) for change ``d``."""
        if self.moved_to.ndim == 2:
            return self.x[d].copy(), self.moved_to[d].copy()
        other = self.x[d].copy()
        other[d] = self.moved_to[d]
        return self.x[d].copy(), other


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proved statement about a model, and the best attack beside it.

    Attributes
    ----------
    upper_bound : ndarray, shape (D,)
        No pair of points that differ in input d alone differs by more in latent.
    attained : ndarray, shape (D,)
        Some pair does differ by at least this.
    inputs_required : int or None
        No pair of points of the box that differ in fewer inputs is a confident misclassification.
        None when no number of inputs suffices (``no_attack_exists``), or when the model has no thresholds.
    inputs_required_by_sum : int or None
        What the sum of the largest one-input bounds proves of that on its own.
    inputs_required_at_best : int or None
        The same sum over the attained values: what the additive argument could reach with perfect bounds.
    inputs_excluded_by_pairs : int
        The search over pairs proves that no confident misclassification changes that many inputs or fewer;
        0 where it did not run, because the sum left no gap to the attack or the model has too many directions.
    inputs_excluded_by_sets : int
        The same of the search over sets of inputs, which goes on from what is excluded before it; 0 where it
        excluded no more, or did not run.
    open_pairs, open_sets : int
        Nodes, and sets of one input more than is excluded, that those left open: more of them may prove more.
    attack_inputs : int or None
        Inputs changed by the best attack found; None when none was found.
    complete : bool
        Whether every input that matters was closed to the tolerance. If not, the bounds hold all the same.
    witnesses : Witnesses or None
        One-input pairs, kept in the evidence store and not in the certificate's JSON.
    """

    model_digest: str
    daskab_version: str
    run_id: str
    evidence_sha256: str
    method: str
    slices: int
    rtol: float | None
    input_names: tuple[str, ...]
    latent_low: float | None
    latent_high: float | None
    delta: float | None
    upper_bound: Array
    attained: Array
    inputs_required: int | None
    inputs_required_by_sum: int | None
    inputs_required_at_best: int | None
    inputs_excluded_by_pairs: int
    inputs_excluded_by_sets: int
    open_pairs: int
    open_sets: int
    no_attack_exists: bool
    attack: Attack | None
    complete: bool
    open_inputs: int
    schema: str = SCHEMA
    witnesses: Witnesses | None = field(default=None, repr=False)

    @property
    def exact(self) -> bool:
        """Whether the attack changes no more inputs than are proved to be required: nothing is left unknown."""
        return self.no_attack_exists or (self.attack is not None and self.attack.n_inputs == self.inputs_required)

    @property
    def proved_by(self) -> Literal["sum", "range", "pairs", "sets"]:
        """What proves ``inputs_required``: the sum of one-input bounds, a linear latent's range, or a search."""
        excluded = len(self.input_names) if self.inputs_required is None else self.inputs_required - 1
        if self.inputs_required == self.inputs_required_by_sum:
            return "sum"
        if self.method == LINEAR:
            return "range"
        return "pairs" if self.inputs_excluded_by_pairs == excluded else "sets"

    @property
    def attack_inputs(self) -> int | None:
        """Inputs the best attack found changes."""
        return None if self.attack is None else self.attack.n_inputs

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in certificate.json."""
        out = {k: v for k, v in vars(self).items() if k not in ("witnesses", "attack")}
        out["upper_bound"] = self.upper_bound.tolist()
        out["attained"] = self.attained.tolist()
        out["input_names"] = list(self.input_names)
        out["attack_inputs"] = self.attack_inputs
        out["attack"] = None
        if self.attack is not None:
            out["attack"] = vars(self.attack) | {
                "x": list(self.attack.x),
                "x_prime": list(self.attack.x_prime),
            }
        return out

    def to_json(self) -> str:
        """Canonical text: the same certificate is always the same bytes."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str, where: str, witnesses: Witnesses | None = None) -> Certificate:
        """Read a certificate back.

        Raises
        ------
        IntegrityError
            If the text is not a certificate of this schema.
        """
        try:
            raw = json.loads(text)
            if raw.get("schema") != SCHEMA:
                raise IntegrityError(f"{where}: schema {raw.get('schema')!r}, expected {SCHEMA!r}")
            raw.pop("attack_inputs")
            attack = raw.pop("attack")
            if attack is not None:
                attack = Attack(**attack | {"x": tuple(attack["x"]), "x_prime": tuple(attack["x_prime"])})
            for name in ("upper_bound", "attained"):
                raw[name] = np.asarray(raw[name], dtype=np.float64)
            raw["input_names"] = tuple(raw["input_names"])
            return cls(**raw, attack=attack, witnesses=witnesses)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise IntegrityError(f"{where}: not a certificate ({error}); move the run away") from None
