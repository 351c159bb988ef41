"""The evidence store: one zarr group a run, templates first, whole chunks only, missing never looks like zero.

At the root stand the named arrays a reader opens with xarray; ``rounds/<r>/`` holds what each round of
refinement proved, ``joint/<r>/`` what each round of a search over several inputs did. Floats are filled with NaN and
status with 0 = missing; every chunk carries a checksum.
"""

from __future__ import annotations

import errno
import hashlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from daskab.bound import sequences
from daskab.bound.contributions import CONSTRAINTS, DIRECTIONS, slice_edges
from daskab.errors import IntegrityError, one_line
from daskab.files import on_s3
from daskab.model.expansion import KernelExpansion
from daskab.run.arrays import WRITE_ALL, lay_out, open_group, write_array
from daskab.run.plan import Plan

Array = NDArray[Any]

MISSING, OPEN, CLOSED = 0, 1, 2
NOT_FOUND, FOUND = 1, 2  # of the n-input attack; 0 = missing there too

NUMBERED = (
    *("rounds", "rounds/[0-9]*", "rounds/[0-9]*/frontier", "rounds/[0-9]*/found"),
    *("joint", "joint/[0-9]*", "joint/[0-9]*/frontier"),
    *("enhancements", "enhancements/[0-9]*"),
    "groups",
)
"""Groups that are made as a run goes on."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def payload_digest(*arrays: Array) -> str:
    """SHA-256 over the shapes and bytes of what a batch wrote."""
    h = hashlib.sha256()
    for a in arrays:
        h.update(f"{a.dtype.str}{a.shape}\n".encode())
        h.update(np.ascontiguousarray(a).tobytes())
    return h.hexdigest()


class Evidence:
    """The zarr group of a run, opened for reading or writing one batch at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._group = open_group(path, "r+")
        self._arrays: dict[str, Any] = {}
        self._kept: dict[str, Array] = {}

    @classmethod
    def create(cls, path: Path, plan: Plan, model: KernelExpansion) -> Evidence:
        """Write the templates into what `mend_groups` made: every array of the root, empty, with its coordinates.

        What is there already is kept, unless its metadata are damaged or of another plan.
        """
        q = plan.question
        group = open_group(path, "r+")
        d, m, s, n = q.n_inputs, q.n_centres, q.slices, plan.n_sequences
        lay_out(
            group,
            "contributions",
            ("direction", "dimension", "slice", "constraint", "centre"),
            (2, d, s, len(CONSTRAINTS), m),
            (2, plan.block, s, len(CONSTRAINTS), m),
        )
        changes = model.domain.change_names(model.input_names)
        c, what = (d, "dimension") if changes == model.input_names else (len(changes), "change")
        # What the attack found of every input; what is known in the end of everything that counts as one change.
        for at, axis, rows, chunk in (("search/", "dimension", d, plan.block), ("", what, c, c)):
            lay_out(group, f"{at}attained", (axis,), (rows,), (chunk,))
            lay_out(group, f"{at}witness", (axis, "input"), (rows, d), (chunk, d))
            axes = 2 if axis == "change" else 1  # several inputs may move then
            lay_out(group, f"{at}witness_to", (axis, "input")[:axes], (rows, d)[:axes], (chunk, d)[:axes])
        if model.domain.groups:
            g = len(model.domain.groups)
            for name in ("bound", "attained", "used"):
                lay_out(group, f"groups/{name}", ("group",), (g,), (1,))
            for name in ("witness", "witness_to"):
                lay_out(group, f"groups/{name}", ("group", "input"), (g, d), (1, d))
        lay_out(group, "attack_pair", ("end", "input"), (2, d), (2, d))
        lay_out(group, "attack_status", ("attack",), (1,), (1,), dtype="uint8")
        lay_out(group, "bound", ("direction", "dimension", "sequence"), (2, d, n), (2, d, n))
        lay_out(group, "status", ("direction", "dimension", "sequence"), (2, d, n), (2, d, n), dtype="uint8")
        lay_out(group, "upper_bound", (what,), (c,), (c,))
        names = np.asarray(model.input_names, dtype=object)
        ends = sequences.ends(s)
        edges = np.stack([slice_edges(1.0, s) * w for w in model.upper - model.lower]) + model.lower[:, None]
        for name, dims, values in (
            ("direction", ("direction",), np.asarray(DIRECTIONS)),
            ("dimension", ("dimension",), names),
            ("input", ("input",), names),
            *([("change", ("change",), np.asarray(changes, dtype=object))] if what == "change" else []),
            ("end", ("end",), np.asarray(["x", "x_prime"], dtype=object)),
            ("constraint", ("constraint",), np.asarray(CONSTRAINTS, dtype=object)),
            ("slice_lower", ("dimension", "slice"), edges[:, :-1]),
            ("slice_upper", ("dimension", "slice"), edges[:, 1:]),
            ("first_slice", ("sequence",), ends[:, 0]),
            ("last_slice", ("sequence",), ends[:, 1]),
        ):
            write_array(group, name, dims, values)
        group.attrs["coordinates"] = "slice_lower slice_upper first_slice last_slice"
        return cls(path)

    def read(self, name: str, where: Any = ..., *, may_lack: bool = False) -> Array:
        """Part of an array; a damaged or absent chunk is an IntegrityError, not a number.

        zarr reads an absent chunk as the fill value, which no number that is stored equals, unless it ``may_lack``.
        """
        with self._readable(name):
            values = np.asarray(self._array(name)[where])
        if not may_lack and values.dtype.kind == "f" and not np.all(np.isfinite(values)):
            raise IntegrityError(f"{self.path}/{name}: a part is missing; run again")
        return values

    def kept(self, what: str, draw: Callable[[], Array]) -> Array:
        """Something small that is drawn from what no longer changes: once, as a read takes a millisecond or two.

        Not for what a certificate's digest vouches for, which is read from the store itself.
        """
        if what not in self._kept:
            self._kept[what] = draw()
        return self._kept[what]

    def column(self, name: str) -> Array:
        """A number a node or unit of a stage that has ended, kept."""
        return self.kept(name, lambda: self.read(name))

    def write(self, name: str, where: Any, values: Array) -> None:
        """Write whole chunks of an array."""
        self._array(name)[where] = values

    def _array(self, name: str) -> Any:
        # Opening an array reads its metadata file; a task touches the same few arrays over and over.
        if name not in self._arrays:
            with self._readable(name):
                self._arrays[name] = self._group[name].with_config(WRITE_ALL)
        return self._arrays[name]

    def _subgroup(self, name: str) -> Any:
        with self._readable(name):
            return self._group.require_group(name)

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        """Whatever zarr makes of damaged bytes is an IntegrityError."""
        try:
            yield
        except (LookupError, ValueError, TypeError, AttributeError, RuntimeError, OSError) as error:
            if isinstance(error, IntegrityError) or self._says_nothing(error):
                raise
            raise IntegrityError(
                f"{self.path}/{name}: unreadable ({one_line(error)}); run again or move the run away"
            ) from None

    def _says_nothing(self, error: Exception) -> bool:
        """Whether an error says nothing of what is there: no room, or object storage that cannot be reached."""
        if not isinstance(error, OSError):
            return False
        return error.errno in NO_ROOM or (on_s3(self.path) and not isinstance(error, FileNotFoundError))

    @property
    def sealed(self) -> object:
        """SHA-256 of the certificate that was drawn from this evidence; None before."""
        return self._group.attrs.get("certificate_sha256")

    def seal(self, certificate_sha256: str) -> None:
        """Note what was concluded and gather the metadata in one place for readers; nothing is written after."""
        self._group.attrs["certificate_sha256"] = certificate_sha256
        with warnings.catch_warnings(), self._readable("zarr.json"):
            # zarr warns that other implementations may not read this; ours and xarray do.
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            # A killed worker leaves zarr's temporary files behind.
            warnings.filterwarnings("ignore", message=r"Object at \S*\.partial is not recognized")
            zarr.consolidate_metadata(self._group.store)

    def holds(self, name: str) -> bool:
        """Whether an array was laid out."""
        with self._readable(name):
            return name in self._group

    def n_batches(self, name: str) -> int:
        """Tasks that fill an array: one a chunk."""
        array = self._array(name)
        return -(-int(array.shape[0]) // int(array.chunks[0]))

    def rows(self, name: str, batch: int) -> slice:
        """Rows of an array that a batch fills."""
        array = self._array(name)
        start = batch * int(array.chunks[0])
        return slice(start, min(start + int(array.chunks[0]), int(array.shape[0])))

    def create_round(
        self,
        number: int,
        batch: int,
        n_nodes: int,
        nodes: Array | None,
        goal: Array,
        allowance: Array,
        attained: Array,
        *,
        refines: bool,
    ) -> None:
        """Templates of a round, and what its tasks share: goal, allowance and attained change (D,) of every input.

        ``nodes`` (n, width) are what it starts from; None in round 0, which starts from the logical units. Tasks of a
        round that ``refines`` use nodes up and hand others over; one that does not closes its units for good.
        """
        group = self._subgroup(f"rounds/{number}")
        chunk = (min(batch, n_nodes),)
        write_array(group, "goal", ("dimension",), goal)
        write_array(group, "allowance", ("dimension",), allowance.astype(np.float64))  # a lost one is no zero
        write_array(group, "attained", ("dimension",), attained)
        if nodes is not None:
            write_array(group, "nodes", ("node", "field"), nodes, chunks=(*chunk, nodes.shape[1]))
        lay_out(group, "closed", ("node",), (n_nodes,), chunk)
        if refines:
            self._subgroup(f"rounds/{number}/frontier")
            self._subgroup(f"rounds/{number}/found")
            lay_out(group, "used", ("node",), (n_nodes,), chunk)

    def create_enhancement(self, number: int, dimension: int, slices: int, batch: int) -> None:
        """Template of an enhancement: one input cut anew, into ``slices``; kept if it is there already."""
        group = self._subgroup(f"enhancements/{number}")
        n_units = 2 * sequences.count(slices)
        group.attrs.update({"dimension": dimension, "slices": slices})
        lay_out(group, "bound", ("unit",), (n_units,), (min(batch, n_units),))

    def enhancement(self, number: int) -> tuple[int, int]:
        """Input and number of slices of an enhancement."""
        attrs = self._subgroup(f"enhancements/{number}").attrs
        return int(attrs["dimension"]), int(attrs["slices"])

    def create_groups(self, most: Array, alone: Array) -> None:
        """What is proved before the groups are bounded: of each (G,) as one change, and of every input (D,) alone."""
        group = self._subgroup("groups")
        write_array(group, "most", ("group",), most, chunks=(1,))
        write_array(group, "alone", ("dimension",), alone)

    def create_joint_round(self, number: int, batch: int, nodes: Array, asked: tuple[int, int, int]) -> None:
        """Templates of a round of a search over several inputs, and what its tasks share.

        ``nodes`` (n, width) are what it starts from; for ``asked`` see `joint_round`.
        """
        group = self._subgroup(f"joint/{number}")
        chunk = min(batch, nodes.shape[0])
        group.attrs.update(dict(zip(("allowance", "size", "most"), asked, strict=True)))
        write_array(group, "nodes", ("node", "field"), nodes, chunks=(chunk, nodes.shape[1]))
        self._subgroup(f"joint/{number}/frontier")
        lay_out(group, "used", ("node",), (nodes.shape[0],), (chunk,))

    def joint_round(self, number: int) -> tuple[int, int, int]:
        """Nodes each node of such a round may open, inputs in a set (0: pairs), and inputs an attack may change."""
        attrs = self._subgroup(f"joint/{number}").attrs
        return int(attrs["allowance"]), int(attrs["size"]), int(attrs["most"])

    def write_rows(self, name: str, batch: int, rows: Array) -> None:
        """Rows (n, width) a batch hands over, as many as there are: an array of its own, replaced as a whole."""
        write_array(self._group, f"{name}/{batch}", ("row", "field"), rows)

    def read_rows(self, name: str, batch: int, *, may_lack: bool = False) -> Array:
        """What `write_rows` wrote."""
        # The array may have been replaced by one of another size since it was opened.
        self._arrays.pop(f"{name}/{batch}", None)
        return self.read(f"{name}/{batch}", may_lack=may_lack)


def mend_groups(path: Path) -> None:
    """Make the groups of an evidence store, or those whose metadata are damaged or lost; what is in them is kept.

    What their attributes say is written again as the run goes on. Not for a sealed run, whose seal is one of them.
    """
    for folder in (path, path / "search", *(found for pattern in NUMBERED for found in path.glob(pattern))):
        try:
            open_group(folder, "a")
        except IntegrityError:
            (folder / "zarr.json").unlink(missing_ok=True)
            open_group(folder, "a")
