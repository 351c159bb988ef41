"""The job file: what is certified, how tightly and against which attack, checked before anything runs.

Whatever is wrong with a job is told in one line that names the file, its line, the field and the value.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic.types import Discriminator, Tag

from daskab.errors import JobError
from daskab.run.cluster import ClusterOptions
from daskab.run.data import DataOptions
from daskab.run.domain import DomainOptions
from daskab.run.sections import BesideJob, Count, Name, Positive, Section, Seed, check_names, wrong
from daskab.run.sweep import OF_DATA, OF_FITS, SweepOptions, Values, said
from daskab.run.toml_lines import KeyPath, read_toml

Root = TypeVar("Root", bound=Section)
Tables = Mapping[str, type[Section]]
"""What the tables of a file are, by their names."""

MOST_SLICES = 1000
MOST_GRID_POINTS = 10**6
Slices = Annotated[int, Field(ge=1, le=MOST_SLICES)]

OF_METHOD = {
    "adaptive": {"slices", "rtol", "node_budget", "pair_nodes", "set_nodes"},
    "fixed": {"slices", "enhance", "enhance_slices"},
    "grid": {"slices", "enhance", "enhance_slices", "components", "resolution"},
}
"""Which options a method has; one that would be ignored is refused."""


class FittedModel(Section):
    """``[[model]]`` to be fitted to the data; dense where ``inducing_points`` is None."""

    name: Name
    lengthscale: Positive
    variance: Positive = 1.0
    optimise: bool = False
    inducing_points: Count | None = None
    percentile: float = Field(default=5.0, ge=0, lt=50)


class TrainedModel(Section):
    """``[[model]]`` trained elsewhere; ``file`` is given relative to the job file."""

    name: Name
    file: BesideJob


class BaselineOptions(Section):
    """``[baseline]``: what fitted models are compared with, on their data and with their percentile, certified exactly.

    ``logistic`` is a logistic regression; ``C`` divides its L2 penalty, as in scikit-learn.
    """

    kind: Literal["logistic"]
    C: Positive = 1.0


class BoundOptions(Section):
    """``[bound]``: how bounds are found.

    ``adaptive`` starts from ``slices`` an input and refines until a bound is within ``rtol`` of what is attained or
    ``node_budget`` sequences were opened for its input; if the sum of the bounds then leaves a gap to the attack,
    pairs of points that differ in several inputs are searched, ``pair_nodes`` nodes of them, and sets of inputs one
    by one, ``set_nodes`` nodes (by default some minutes' worth). ``fixed`` bounds every
    sequence of ``slices`` once, as tightly as it can; ``grid`` does so by the paper's grid of ``resolution`` lines
    along the box's diagonal in ``components`` principal directions. Both may then ``enhance`` that many times the
    input with the highest bound, cut into ``enhance_slices`` (by default twice as many), one more whenever that did
    not help.
    """

    method: Literal["adaptive", "fixed", "grid"] = "adaptive"
    slices: Slices = 4
    rtol: Positive = 0.002
    node_budget: Count = 20_000
    pair_nodes: int = Field(default=20_000, ge=0)
    set_nodes: int | None = Field(default=None, ge=0)
    enhance: int = Field(default=0, ge=0, le=10_000)
    enhance_slices: Slices | None = None
    components: int = Field(default=2, ge=1, le=3)
    resolution: int = Field(default=50, ge=2, le=1000)

    @model_validator(mode="before")
    @classmethod
    def _default_slices(cls, given: Any) -> Any:
        fixed = isinstance(given, dict) and given.get("method") in ("fixed", "grid")
        return {"slices": 100, **given} if fixed else given

    @model_validator(mode="after")
    def _of_the_method(self) -> BoundOptions:
        for name in sorted(self.model_fields_set - {"method", *OF_METHOD[self.method]}):
            raise wrong(f"{getattr(self, name)} is given, but method {self.method!r} has no {name}", (name,))
        if self.resolution**self.components > MOST_GRID_POINTS:
            points = f"{self.resolution}^{self.components}"
            raise wrong(
                f"{self.resolution} makes {points} grid points; the most is {MOST_GRID_POINTS}", ("resolution",)
            )
        return self


class AttackOptions(Section):
    """``[attack]``: the search for attained values."""

    seed: Seed = 0
    starts: Count = 16


class RunOptions(Section):
    """``[run]``: units a task (None: chosen by timing), and the k below which the exit code is 1."""

    batch: Count | None = None
    require_inputs: Count | None = None


def _kind(given: object) -> str:
    return "npz" if "file" in (given if isinstance(given, dict) else dir(given)) else "fit"


_Model = Annotated[FittedModel, Tag("fit")] | Annotated[TrainedModel, Tag("npz")]
_Models = tuple[Annotated[_Model, Discriminator(_kind)], ...]


@dataclass(frozen=True)
class Baseline:
    """What models fitted to the same data, with the same percentile, are compared with."""

    name: str
    options: BaselineOptions
    data: DataOptions
    percentile: float


@dataclass(frozen=True)
class Point:
    """One model to be certified, and how: a ``[[model]]`` with one combination of what the job sweeps over."""

    name: str
    values: Values  #: what the sweep says of it
    model: FittedModel | TrainedModel
    data: DataOptions | None
    domain: DomainOptions
    bound: BoundOptions
    baseline: Baseline | None  #: of a model that is fitted, where the job has one


class Job(Section):
    """A whole job file; ``models`` are its ``[[model]]`` tables."""

    name: Name
    data: DataOptions | None = None
    models: _Models = Field(alias="model", strict=False)
    baseline: BaselineOptions | None = None
    domain: DomainOptions = DomainOptions()
    bound: BoundOptions = BoundOptions()
    attack: AttackOptions = AttackOptions()
    run: RunOptions = RunOptions()
    sweep: SweepOptions = SweepOptions()
    cluster: ClusterOptions = ClusterOptions()

    @model_validator(mode="after")
    def _fits_together(self) -> Job:
        names = [model.name for model in self.models]
        check_names("model", names)
        to_fit = [i for i, model in enumerate(self.models) if isinstance(model, FittedModel)]
        if to_fit and self.data is None:
            raise wrong("without a file it needs a [data] section to be fitted to", ("model", to_fit[0]))
        for section in (name for name in ("data", "baseline") if getattr(self, name) and not to_fit):
            raise wrong("not used, as every model has a file", (section,))
        if self.baseline and self.baseline.kind in names:
            raise wrong("this is what the [baseline] is called", ("model", names.index(self.baseline.kind), "name"))
        for name in (name for name in self.sweep.axes if name in OF_FITS and len(to_fit) < len(self.models)):
            at = next(i for i in range(len(self.models)) if i not in to_fit)
            raise wrong(f"only models that are fitted have one, and model[{at}] has a file", ("sweep", name))
        if self.baseline and not self.domain.whole:
            raise wrong("a logistic regression is certified for the whole box; leave out the [domain]", ("baseline",))
        try:
            self.points()
        except ValidationError as error:
            path, what = _problems(error, Section, _TABLES)[0]
            raise wrong(what, ("sweep", path[-1])) from None
        return self

    def points(self) -> tuple[Point, ...]:
        """What is certified, in order: every model with every combination of what is swept over."""
        return tuple(self._point(model, values) for model in self.models for values in self.sweep.combinations())

    def _point(self, model: FittedModel | TrainedModel, values: Values) -> Point:
        name = ",".join([model.name, *(f"{key}={said(value)}" for key, value in values.items())])
        of_fit = {key: None if value == "dense" else value for key, value in values.items()}
        data, baseline = self.data, None
        if isinstance(model, FittedModel):
            assert data is not None  # a fit without data is refused
            model, data = _with(model, of_fit), _with(data, of_fit)
            baseline = self._baseline(data, model.percentile, values)
        return Point(name, values, model, data, self.domain, _with(self.bound, of_fit), baseline)

    def _baseline(self, data: DataOptions, percentile: float, values: Values) -> Baseline | None:
        """The one for a fit's data, named after what the sweep says of that."""
        if self.baseline is None:
            return None
        name = ",".join([self.baseline.kind, *(f"{key}={said(values[key])}" for key in OF_DATA if key in values)])
        if len({model.percentile for model in self.models if isinstance(model, FittedModel)}) > 1:
            name += f",percentile={said(percentile)}"
        return Baseline(name, self.baseline, data, percentile)


def _with(section: Root, values: Mapping[str, object]) -> Root:
    """A section with other values, checked as it was, of those that it has."""
    own = {name: value for name, value in values.items() if name in type(section).model_fields}
    return type(section).model_validate({**section.model_dump(exclude_unset=True), **own}) if own else section


def read_job(path: str | Path) -> Job:
    """Read and check a job file.

    Raises
    ------
    JobError
        One line, such as ``digits.toml:14: model[1].lengthscale: -2.0 is not greater than 0``: the first
        thing wrong in the file, and how many more there are.
    """
    return read_file(Path(path), Job, "a job has at least a name and a [[model]]", _TABLES)


def read_cluster(given: str) -> ClusterOptions:
    """A kind of cluster that needs no more to be said, or the ``[cluster]`` of a TOML file.

    Raises
    ------
    JobError
        As by `read_job`.
    """
    return NAMED.get(given) or _read_cluster(Path(given))


NAMED = {"inline": ClusterOptions(kind="inline"), "processes": ClusterOptions(kind="processes")}


class _ClusterFile(Section):
    cluster: ClusterOptions


def _read_cluster(path: Path) -> ClusterOptions:
    return read_file(path, _ClusterFile, "it should hold a [cluster]", _TABLES).cluster


def read_file(path: Path, root: type[Root], content: str, tables: Tables) -> Root:
    """Read and check a TOML file of some ``tables``; an empty one is told what its ``content`` should be.

    Raises
    ------
    JobError
        As by `read_job`.
    """
    values, line_of = read_toml(path)
    if not values:
        raise JobError(f"{path}: empty; {content}")
    try:
        return root.model_validate(values, context=path.parent)
    except ValidationError as error:
        found = sorted(_problems(error, root, tables), key=lambda problem: line_of(problem[0]))
        raise _job_error(f"{path}:{line_of(found[0][0])}: ", found) from None


def bound_options(**given: object) -> BoundOptions:
    """Options from the command line, None where not given; JobError ``rtol: -1.0 is not greater than 0``."""
    try:
        return BoundOptions.model_validate({name: v for name, v in given.items() if v is not None})
    except ValidationError as error:
        raise _job_error("", _problems(error, BoundOptions, {})) from None


_TABLES: Tables = {
    "data": DataOptions,
    "baseline": BaselineOptions,
    "domain": DomainOptions,
    "bound": BoundOptions,
    "attack": AttackOptions,
    "run": RunOptions,
    "sweep": SweepOptions,
    "cluster": ClusterOptions,
    "fit": FittedModel,  # by tag
    "npz": TrainedModel,
}
_EXPECTED = {
    "bool_type": "true or false",
    "model_type": "a table",
    "string_pattern_mismatch": "1 to 100 letters, digits, - and _",
    "tuple_type": "an array",
}


def _problems(error: ValidationError, root: type[BaseModel], tables: Tables) -> list[tuple[KeyPath, str]]:
    """Path and words of each thing wrong. A key that is missing as it is misspelt is one thing, not two."""
    found: list[tuple[KeyPath, str]] = []
    misspelt: set[KeyPath] = set()
    for e in error.errors(include_url=False):
        at = e["loc"]
        section: Any = next((s for key, s in tables.items() if key in at[:-1]), root)
        if at[:1] == ("model",):
            at = at[:2] + at[3:]  # without the tag in model, 1, "fit", "name"
        at += e.get("ctx", {}).get("at", ())
        if e["type"] == "extra_forbidden":
            known = [field.alias or name for name, field in section.model_fields.items()]
            close = difflib.get_close_matches(str(at[-1]), known, n=1)
            misspelt.update((*at[:-1], name) for name in close)
            what = "unknown key; " + (f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}")
        elif e["type"] in ("missing", "job"):
            what = "missing" if e["type"] == "missing" else e["msg"]
        else:
            expected = _EXPECTED.get(e["type"], e["msg"].removeprefix("Input should be "))
            what = f"{reprlib.repr(e['input'])} is not {expected}"
        if at in (("model",), ("job",), ("experiment",)) and e["type"] != "extra_forbidden":
            what += f"; write [[{at[0]}]]"
        found.append((at, what))
    return [(at, what) for at, what in found if at not in misspelt or what != "missing"]


def _job_error(where: str, found: list[tuple[KeyPath, str]]) -> JobError:
    at, what = found[0]
    field = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in at).removeprefix(".")
    more = f" (and {len(found) - 1} more)" if found[1:] else ""
    return JobError("".join(filter(str.isprintable, f"{where}{field}: {what}{more}")))
