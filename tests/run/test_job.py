"""Job files: what is read, and the one line a wrong one is refused with."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskab.errors import ClusterError, JobError
from daskab.run.cluster import ClusterOptions
from daskab.run.executors import executor
from daskab.run.job import BoundOptions, FittedModel, TrainedModel, bound_options, read_cluster, read_job
from daskab.run.toml_lines import KeyLines, KeyPath, read_toml

FULL = """\
name = "digits"                 # run name

[data]
source = "digits"
classes = [3, 5]
train_size = 200
seed = 7
min_std = 0.02

[[model]]                       # one certificate each
name = "sparse"
lengthscale = 2                 # an integer is a number
variance = 1.5
optimise = true
inducing_points = 10
percentile = 2.5

[[model]]
name = "mine"
file = "models/mine.npz"

[bound]
method = "adaptive"
slices = 6
rtol = 0.01
node_budget = 300

[attack]
seed = 1
starts = 8

[run]
batch = 64
require_inputs = 3
"""
DATA = '[data]\nsource = "digits"\nclasses = [3, 5]\ntrain_size = 200\n'
FITTED = f'name = "a"\n{DATA}[[model]]\nname = "m"\nlengthscale = 2.0\n'  # 8 lines
TRAINED = 'name = "a"\n[[model]]\nname = "m"\nfile = "m.npz"\n'  # 4 lines


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write digits.toml in the working directory, so that messages show its bare name."""
    monkeypatch.chdir(tmp_path)

    def write(text: str | bytes) -> Path:
        path = Path("digits.toml")
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def refusal(path: Path) -> str:
    with pytest.raises(JobError) as caught:
        read_job(path)
    message = str(caught.value)
    assert message.isprintable()
    return message


def test_every_value_of_a_full_file(write) -> None:
    job = read_job(write(FULL))
    assert job.model_dump(by_alias=True, exclude_unset=True) == {
        "name": "digits",
        "data": {"source": "digits", "classes": (3, 5), "train_size": 200, "seed": 7, "min_std": 0.02},
        "model": (
            {
                "name": "sparse",
                "lengthscale": 2.0,
                "variance": 1.5,
                "optimise": True,
                "inducing_points": 10,
                "percentile": 2.5,
            },
            {"name": "mine", "file": Path("models/mine.npz")},
        ),
        "bound": {"method": "adaptive", "slices": 6, "rtol": 0.01, "node_budget": 300},
        "attack": {"seed": 1, "starts": 8},
        "run": {"batch": 64, "require_inputs": 3},
    }
    assert isinstance(job.models[0], FittedModel)
    assert isinstance(job.models[0].lengthscale, float)
    assert isinstance(job.models[1], TrainedModel)


def test_defaults(write) -> None:
    job = read_job(str(write(FITTED)))
    assert job.data is not None
    assert (job.data.seed, job.data.min_std) == (0, 0.0)
    fitted = FittedModel(name="m", lengthscale=2.0)
    assert job.models == (fitted,)
    assert (fitted.variance, fitted.optimise, fitted.inducing_points, fitted.percentile) == (
        1.0,
        False,
        None,
        5.0,
    )
    bound = job.bound
    assert (bound.method, bound.slices, bound.rtol, bound.node_budget) == ("adaptive", 4, 0.002, 20_000)
    assert (job.attack.seed, job.attack.starts) == (0, 16)
    assert (job.run.batch, job.run.require_inputs) == (None, None)


@pytest.mark.parametrize(("given", "slices"), [("", 100), ("slices = 7", 7)])
@pytest.mark.parametrize("method", ["fixed", "grid"])
def test_default_slices_where_they_are_fixed(write, method: str, given: str, slices: int) -> None:
    bound = read_job(write(f'{TRAINED}[bound]\nmethod = "{method}"\n{given}')).bound
    assert (bound.slices, bound.enhance) == (slices, 0)


def test_the_grid(write) -> None:
    bound = read_job(
        write(f"{TRAINED}[bound]\nmethod = 'grid'\ncomponents = 3\nresolution = 100\nenhance_slices = 7")
    ).bound
    assert (bound.components, bound.resolution, bound.enhance, bound.enhance_slices) == (3, 100, 0, 7)


def test_a_trained_model_lies_beside_the_job(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(TRAINED)
    (model,) = read_job(tmp_path / "job.toml").models
    assert isinstance(model, TrainedModel)
    assert model.file == tmp_path / "m.npz"


def test_a_job_cannot_be_changed(write) -> None:
    job = read_job(write(FULL))
    with pytest.raises(ValueError, match="frozen"):
        job.bound.slices = 3


def test_windows_text(write) -> None:
    with_mark = "\ufeff" + FULL.replace("\n", "\r\n")
    assert read_job(write(with_mark)) == read_job(write(FULL))


TEN = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
# What replaces what in FITTED, and the line, field and words expected.
VALUES = [
    ('"a"', '"a b"', "1: name: 'a b' is not 1 to 100 letters, digits, - and _"),
    ('"a"', '""', "1: name: '' is not 1 to 100 letters, digits, - and _"),
    ('"a"', '"é"', "1: name: 'é' is not 1 to 100 letters, digits, - and _"),
    ('"a"', "3", "1: name: 3 is not a valid string"),
    ('"digits"', '"digit"', "3: data.source: 'digit' is not a data set; did you mean digits?"),
    ("[3, 5]", "[3, 3]", f"4: data.classes: [3, 3] is not two different classes of digits: {TEN}"),
    ("[3, 5]", "[3, 10]", f"4: data.classes: [3, 10] is not two different classes of digits: {TEN}"),
    ("[3, 5]", "[\n3, 5, 7]", f"4: data.classes: [3, 5, 7] is not two different classes of digits: {TEN}"),
    ("[3, 5]", "[3,\ntrue]", f"4: data.classes: [3, True] is not two different classes of digits: {TEN}"),
    ("[3, 5]", "[[3, 5], [4, 5]]", f"4: data.classes: [[3, 5], [4, 5]] is not two different classes of digits: {TEN}"),
    ("[3, 5]", "[[3], []]", f"4: data.classes: [[3], []] is not two different classes of digits: {TEN}"),
    ("[3, 5]", "[]", f"4: data.classes: [] is not two different classes of digits: {TEN}"),
    ("classes = [3, 5]", "", f"2: data.classes: missing; digits has more than two: {TEN}"),
    ("200", "200\npool = 0", "6: data.pool: 0 is not greater than or equal to 1"),
    ("200", "200\npool = 9", "6: data.pool: 9 is more than the 8 x 8 pixels of digits"),
    ("200", "200\nscale = 'log'", "6: data.scale: 'log' is not 'unit' or 'range'"),
    ("200", "200\ntest_size = 0", "6: data.test_size: 0 is not greater than or equal to 1"),
    ("200", "200\ndeduplicate = 1", "6: data.deduplicate: 1 is not true or false"),
    ("200", "200\nclip_percentile = 50", "6: data.clip_percentile: 50 is not less than 50"),
    (
        "200",
        "200\nclip_percentile = 1",
        "6: data.clip_percentile: 1.0 is given, but scale 'unit' clips nothing",
    ),
    (
        'source = "digits"\nclasses = [3, 5]',
        'source = "australian"\nscale = "unit"',
        "4: data.scale: 'unit' needs to know what each input of australian can be; use 'range'",
    ),
    (
        'source = "digits"\nclasses = [3, 5]',
        'source = "australian"\npool = 2',
        "4: data.pool: 2 is given, but the inputs of australian are no pixels",
    ),
    ("[3, 5]", "35", "4: data.classes: 35 is not an array"),
    ("200", "1", "5: data.train_size: 1 is not greater than or equal to 2"),
    ("200", "200.0", "5: data.train_size: 200.0 is not a valid integer"),
    ("200", "200\nseed = -1", "6: data.seed: -1 is not greater than or equal to 0"),
    ("200", "200\nseed = 0x100000000", "6: data.seed: 4294967296 is not less than 4294967296"),
    ("200", "200\nmin_std = 1.0", "6: data.min_std: 1.0 is not less than 1"),
    ("train_size = 200\n", "", "2: data.train_size: missing"),
    ('"m"', '"m\\n"', "7: model[0].name: 'm\\n' is not 1 to 100 letters, digits, - and _"),
    ("2.0", "-2.0", "8: model[0].lengthscale: -2.0 is not greater than 0"),
    ("2.0", "nan", "8: model[0].lengthscale: nan is not a finite number"),
    ("2.0", "inf", "8: model[0].lengthscale: inf is not a finite number"),
    ("2.0", "1e999", "8: model[0].lengthscale: inf is not a finite number"),
    ("2.0", '"3"', "8: model[0].lengthscale: '3' is not a valid number"),
    ("2.0", "true", "8: model[0].lengthscale: True is not a valid number"),
    ("2.0", "2.0\nvariance = 0", "9: model[0].variance: 0 is not greater than 0"),
    ("2.0", "2.0\noptimise = 1", "9: model[0].optimise: 1 is not true or false"),
    ("2.0", "2.0\ninducing_points = 0", "9: model[0].inducing_points: 0 is not greater than or equal to 1"),
    ("2.0", "2.0\npercentile = 50", "9: model[0].percentile: 50 is not less than 50"),
    ("lengthscale = 2.0", "", "6: model[0].lengthscale: missing"),
    (
        "lengthscale = 2.0",
        "lengthscael = 2.0",
        "8: model[0].lengthscael: unknown key; did you mean lengthscale?",
    ),
]
# What follows TRAINED, from line 5 on.
ADDED = [
    ("[bound]\nrtoll = 1", "6: bound.rtoll: unknown key; did you mean rtol?"),
    ("[bound]\nx = 1", "6: bound.x: unknown key; known: " + ", ".join(BoundOptions.model_fields)),
    ("[bound]\nrtol = 0", "6: bound.rtol: 0 is not greater than 0"),
    ("[bound]\nnode_budget = 0", "6: bound.node_budget: 0 is not greater than or equal to 1"),
    ("[bound]\nslices = 0", "6: bound.slices: 0 is not greater than or equal to 1"),
    ("[bound]\nslices = 1001", "6: bound.slices: 1001 is not less than or equal to 1000"),
    ("[bound]\nslices = true", "6: bound.slices: True is not a valid integer"),
    ("[bound]\nmethod = 'fxed'", "6: bound.method: 'fxed' is not 'adaptive', 'fixed' or 'grid'"),
    (
        "[bound]\nmethod = 'fixed'\nslices = 9\nrtol = 0.002",
        "8: bound.rtol: 0.002 is given, but method 'fixed' has no rtol",
    ),
    (
        "[bound]\nnode_budget = 9\nmethod = 'fixed'",
        "6: bound.node_budget: 9 is given, but method 'fixed' has no node_budget",
    ),
    ("[bound]\nresolution = 9", "6: bound.resolution: 9 is given, but method 'adaptive' has no resolution"),
    (
        "[bound]\nmethod = 'grid'\nenhance = 2\nnode_budget = 9",
        "8: bound.node_budget: 9 is given, but method 'grid' has no node_budget",
    ),
    (
        "[bound]\nmethod = 'grid'\ncomponents = 3\nresolution = 101",
        "8: bound.resolution: 101 makes 101^3 grid points; the most is 1000000",
    ),
    ("[bound]\nmethod = 'grid'\ncomponents = 4", "7: bound.components: 4 is not less than or equal to 3"),
    ("[bound]\nmethod = 'fixed'\nslices = '9'", "7: bound.slices: '9' is not a valid integer"),
    ("[[bound]]\nslices = 3", "5: bound: [{'slices': 3}] is not a table"),
    ("[bund]", "5: bund: unknown key; did you mean bound?"),
    ("[attack]\nstarts = 0", "6: attack.starts: 0 is not greater than or equal to 1"),
    ("[run]\nbatch = 0", "6: run.batch: 0 is not greater than or equal to 1"),
    ("run.require_inputs = 0", "5: model[0].run: unknown key; known: name, file"),
    ("[run]\n\nrequire_inputs = 0", "7: run.require_inputs: 0 is not greater than or equal to 1"),
    ("lengthscale = 2.0", "5: model[0].lengthscale: unknown key; known: name, file"),
    ('"a\\u001b\\nb" = 1', "5: model[0].ab: unknown key; known: name, file"),
    (DATA, "5: data: not used, as every model has a file"),
    ("[[model]]\nfile = 'n.npz'\nname = 'm'", "7: model[1].name: 'm' is already model[0]"),
    (
        "[[model]]\nlengthscale = 2\nname = 'n'",
        "5: model[1]: without a file it needs a [data] section to be fitted to",
    ),
    ("[[model]]\nname = 'n'\nfile = ''", "7: model[1].file: '' is not a file name"),
    ("[[model]]\nname = 'n'\nfile = 3", "7: model[1].file: 3 is not a file name"),
    (
        "[run]\nbatch = 0\n[[model]]\nname = 3\nfile = ''",
        "6: run.batch: 0 is not greater than or equal to 1 (and 2 more)",
    ),
]
# Whole files.
CONTROL = "Control characters (codes less than 0x1f and 0x7f)"
FILES = [
    ("", ": empty; a job has at least a name and a [[model]]"),
    ("# nothing\n\n", ": empty; a job has at least a name and a [[model]]"),
    ('name = "a"', ":1: model: missing; write [[model]]"),
    ('name = "a"\nmodel = []', ":2: model: empty; write [[model]]"),
    ('name = "a"\nmodel = 3', ":2: model: 3 is not an array; write [[model]]"),
    ('name = "a"\n[model]\nname = "m"', ":2: model: {'name': 'm'} is not an array; write [[model]]"),
    ('name = "a"\nmodel = [3]', ":2: model[0]: 3 is not a table"),
    (TRAINED.removeprefix('name = "a"\n'), ":1: name: missing"),
    (b"\n\nname = '\xff'", ":3: byte 0xff is not UTF-8 text"),
    ("\nname = digits\n", ":2: not TOML: Unexpected character: 'd': 'name = digits'"),
    ("# \u2028\nname = digits\n", ":2: not TOML: Unexpected character: 'd': 'name = digits'"),
    ('name = "a\n\n', f":1: not TOML: {CONTROL} are not allowed in strings: 'name = \"a'"),
    ('x = 1\nname = """a\n\n', ':2: not TOML: Unexpected end of file: \'name = """a\''),
    ("x = [\n1,\n,]\n", ":3: not TOML: Unexpected character: ',': ',]'"),
    ("[a]\nx = 1\nx = 2\ny = 1\n[b]\n", ":3: not TOML: Key \"x\" already exists: 'x = 2'"),
    ("[a]\nx = 1\n[b]\n[a]\ny = 1\nz = 1\n", ":4: not TOML: Key \"a\" already exists: '[a]'"),
]


@pytest.mark.parametrize(("old", "new", "expected"), VALUES)
def test_a_wrong_value_is_named_with_its_line(write, old: str, new: str, expected: str) -> None:
    assert refusal(write(FITTED.replace(old, new, 1))) == f"digits.toml:{expected}"


@pytest.mark.parametrize(("added", "expected"), ADDED)
def test_a_wrong_section_is_named_with_its_line(write, added: str, expected: str) -> None:
    assert refusal(write(TRAINED + added)) == f"digits.toml:{expected}"


@pytest.mark.parametrize(("text", "expected"), FILES)
def test_a_file_that_is_no_job(write, text: str | bytes, expected: str) -> None:
    assert refusal(write(text)) == f"digits.toml{expected}"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.toml") == f"{tmp_path / 'none.toml'}: no such file or directory"
    assert refusal(tmp_path) == f"{tmp_path}: is a directory"


def test_bound_options_from_the_command_line() -> None:
    options = bound_options(method=None, slices=9, rtol=None)
    assert (options.method, options.slices, options.rtol, options.node_budget) == ("adaptive", 9, 0.002, 20_000)
    assert bound_options(method="fixed").slices == 100


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rtol": -1.0}, "rtol: -1.0 is not greater than 0"),
        ({"slices": 0, "rtol": -1.0}, "slices: 0 is not greater than or equal to 1 (and 1 more)"),
        ({"method": "fixed", "rtol": 0.1}, "rtol: 0.1 is given, but method 'fixed' has no rtol"),
        ({"rtoll": 0.1}, "rtoll: unknown key; did you mean rtol?"),
    ],
)
def test_wrong_bound_options(options: dict[str, object], expected: str) -> None:
    with pytest.raises(JobError) as caught:
        bound_options(**options)
    assert str(caught.value) == expected


TRICKY = """\
# [model]
a.b.c = 1
a.b.d = '''
[[model]]
x = 1 ]
'''
"quoted.key" = [ # [x]
  [1, 2],
  "]",
]

 [ data . 'set' ] # a comment
x = {y = 1, z = {w = 2}}
[[model]]
a = 1
[model.sub]
b = 2
[[model.sub.deep]]
c = 3

[data]
y = 1
[[model]]
a = 4
[[model.sub]]
c.d = 5
[[model.sub]]
c.d = 6"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a", "b", "c"), 2),
        (("a", "b"), 2),
        (("a", "b", "d"), 3),
        (("quoted.key",), 7),
        (("quoted.key", 0, 1), 7),
        (("data", "set"), 12),
        (("data", "set", "x", "z", "w"), 13),
        (("model",), 14),
        (("model", 0), 14),
        (("model", 0, "a"), 15),
        (("model", 0, "sub"), 16),
        (("model", 0, "sub", "b"), 17),
        (("model", 0, "sub", "deep", 0), 18),
        (("model", 0, "sub", "deep", 0, "c"), 19),
        (("data",), 21),
        (("data", "y"), 22),
        (("model", 1), 23),
        (("model", 1, "a"), 24),
        (("model", 1, "sub", 0, "c", "d"), 26),
        (("model", 1, "sub", 1), 27),
        (("model", 1, "sub", 1, "c", "d"), 28),
        (("model", 1, "absent", 3), 23),
        (("model", 9), 14),
        (("absent",), 1),
        ((), 1),
    ],
)
def test_lines_of_tricky_toml(write, end: str, path: KeyPath, line: int) -> None:
    values, line_of = read_toml(write(TRICKY.replace("\n", end)))
    assert values == tomllib.loads(TRICKY)
    assert line_of(path) == line


KEYS = st.lists(st.sampled_from(["a", "b", "c d", "é", "x.y"]), min_size=1, max_size=3)
TEXT = st.text(alphabet="a[]='\u2028#{}\n", max_size=6).filter(lambda s: "'''" not in s and not s.endswith("'"))
SCALARS = st.one_of(st.integers(), st.booleans(), TEXT.map(lambda s: f"'''{s}'''"))
BREAKS = st.sampled_from(["", " ", "\n", " # ] x = 1\n\n"])
ARRAYS = st.lists(st.tuples(BREAKS, SCALARS, BREAKS), max_size=3).map(
    lambda items: "[" + ",".join(f"{before}{_toml(v)}{after}" for before, v, after in items) + "]"
)
FILLERS = st.lists(st.sampled_from(["\n", "# [t]\n", "  \n", "\t# '''\n"]), max_size=2).map("".join)


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lines_of_any_toml(data: st.DataObject) -> None:
    """Tables and arrays of tables in any order, each with dotted keys of any values."""
    text, expected, sizes = "", {}, {"m": 0, "n": 0}
    tables = [("t", i) for i in range(data.draw(st.integers(0, 2)))]
    tables += [(name, None) for name in data.draw(st.lists(st.sampled_from(["m", "n"]), max_size=4))]
    for name, number in data.draw(st.permutations(tables)):
        text += data.draw(FILLERS)
        table: KeyPath = (name, f"k{number}") if number is not None else (name, sizes[name])
        expected[table] = text.count("\n") + 1
        text += f"[{name}.k{number}] # x\n" if number is not None else f" [[ {name} ]]\n"
        sizes[name] = sizes.get(name, 0) + 1
        for i, names in enumerate(data.draw(st.lists(KEYS, max_size=3))):
            text += data.draw(FILLERS)
            key = (f"key{i}", *names)
            expected[(*table, *key)] = text.count("\n") + 1
            text += ".".join(f'"{k}"' for k in key) + f" = {_toml(data.draw(SCALARS | ARRAYS))} # '''\n"
    tomllib.loads(text)
    line_of = KeyLines(text)
    assert {path: line_of(path) for path in expected} == expected


def test_a_cluster_from_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('[cluster]\nkind = "address"\naddress = "tls://h:1"\nca = "a"\ncertificate = "b"\nkey = "c"\n')
    options = read_cluster(str(path))
    assert (options.kind, options.address, options.ca) == ("address", "tls://h:1", tmp_path / "a")
    assert read_cluster("processes").kind == "processes"
    path.write_text('name = "job"\n[cluster]\n')
    with pytest.raises(JobError, match=r"c.toml:1: name: unknown key; known: cluster"):
        read_cluster(str(path))


@pytest.mark.parametrize(
    "address",
    ["tcp://[:8786", "tcp://[::1:8786", "tcp://h:0", "tcp://h:70000", "tcp://:8786", "tcp://a:b:1", "tls://h"],
)
def test_an_address_nobody_can_be_at(address: str, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(f'[cluster]\nkind = "address"\naddress = "{address}"\ninsecure = true\n')
    with pytest.raises(JobError) as caught:
        read_cluster(str(path))
    assert str(caught.value).startswith(f"{path}:3: cluster.address: {address!r} is not an address such as tls://")


def test_an_open_scheduler_elsewhere_is_refused_unless_asked_for() -> None:
    options = ClusterOptions(kind="address", address="tcp://10.1.2.3:8786")
    with pytest.raises(ClusterError, match=r"'tcp://10.1.2.3:8786' is not encrypted, and whoever .* insecure = true"):
        executor(options)
    assert executor(options.model_copy(update={"insecure": True})).name == "address"
    for here in ("tcp://127.0.0.1:1", "tcp://localhost:1", "tcp://[::1]:1"):
        assert executor(options.model_copy(update={"address": here})).name == "address"


SWEEP = "[sweep]\nlengthscale = [2, 4.5]\ninducing_points = [3, 'dense']\nseed = [1]\nslices = [2, 3]\n"


def test_a_sweep_makes_every_combination(write) -> None:
    points = read_job(write(FITTED + SWEEP)).points()
    assert [p.name for p in points[:3]] == [
        "m,lengthscale=2,inducing_points=3,seed=1,slices=2",
        "m,lengthscale=2,inducing_points=3,seed=1,slices=3",
        "m,lengthscale=2,inducing_points=dense,seed=1,slices=2",
    ]
    assert len(points) == 8
    for p in points:
        assert isinstance(p.model, FittedModel)
        assert p.data is not None
        assert (p.model.lengthscale, p.data.seed, p.bound.slices) == (
            p.values["lengthscale"],
            1,
            p.values["slices"],
        )
        assert (p.model.inducing_points or "dense") == p.values["inducing_points"]
        assert (p.model.name, p.data.train_size, p.bound.method) == ("m", 200, "adaptive")


def test_without_a_sweep_every_model_is_one_point(write) -> None:
    job = read_job(write(FULL))
    assert [(p.name, p.values, p.model, p.bound) for p in job.points()] == [
        (model.name, {}, model, job.bound) for model in job.models
    ]


BASELINE = '[baseline]\nkind = "logistic"\n'


def test_one_baseline_for_each_data_and_percentile(write) -> None:
    other = '[[model]]\nname = "n"\nlengthscale = 3\npercentile = 10.0\n'
    points = read_job(write(f"{FITTED}{other}{BASELINE}C = 0.5\n{SWEEP}pool = [2, 4]\n")).points()
    baselines = list(dict.fromkeys(p.baseline for p in points))
    assert [(b.name, b.percentile, b.data.pool, b.options.C) for b in baselines if b is not None] == [
        (f"logistic,pool={pool},seed=1,percentile={percentile}", percentile, pool, 0.5)
        for percentile in (5, 10)
        for pool in (2, 4)
    ]
    assert all(p.baseline is not None and p.baseline.data == p.data for p in points)


def test_a_model_with_a_file_has_no_baseline(write) -> None:
    points = read_job(write(f'{FITTED}[[model]]\nname = "n"\nfile = "n.npz"\n{BASELINE}')).points()
    assert [p.baseline and p.baseline.name for p in points] == ["logistic", None]
    assert [p.baseline for p in read_job(write(FITTED)).points()] == [None]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{FITTED}[baseline]\n", "9: baseline.kind: missing"),
        (f"{FITTED}[baseline]\nkind = 'svm'", "10: baseline.kind: 'svm' is not 'logistic'"),
        (f"{FITTED}{BASELINE}C = 0", "11: baseline.C: 0 is not greater than 0"),
        (f"{FITTED}{BASELINE}c = 1", "11: baseline.c: unknown key; known: kind, C"),
        (f"{TRAINED}{BASELINE}", "5: baseline: not used, as every model has a file"),
        (FITTED.replace('"m"', '"logistic"') + BASELINE, "7: model[0].name: this is what the [baseline] is called"),
    ],
)
def test_a_wrong_baseline_is_refused(write, text: str, said: str) -> None:
    with pytest.raises(JobError) as caught:
        read_job(write(text))
    assert str(caught.value).endswith(f":{said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{FITTED}[sweep]\nlengthscale = []", "10: sweep.lengthscale: [] leaves nothing to try"),
        (f"{FITTED}[sweep]\nlengthscale = [1, 1.0]", "10: sweep.lengthscale: [1.0, 1.0] has a value twice"),
        (f"{FITTED}[sweep]\nlengthscale = 2", "10: sweep.lengthscale: 2 is not an array"),
        (f"{FITTED}[sweep]\nvariance = [1, -2]", "10: sweep.variance[1]: -2 is not greater than 0"),
        (f"{FITTED}[sweep]\nlength = [1]", "10: sweep.length: unknown key; did you mean lengthscale?"),
        (
            f"{FITTED}[sweep]\nclasses = [[3, 3]]",
            f"10: sweep.classes: [3, 3] is not two different classes of digits: {TEN}",
        ),
        (f"{FITTED}[sweep]\nslices = [2, 2000]", "10: sweep.slices: 2000 is not less than or equal to 1000"),
        (
            f"{FITTED}[bound]\nmethod = 'fixed'\n[sweep]\nrtol = [0.1]",
            "12: sweep.rtol: 0.1 is given, but method 'fixed' has no rtol",
        ),
        (
            f"{TRAINED}[sweep]\nvariance = [1]",
            "6: sweep.variance: only models that are fitted have one, and model[0] has a file",
        ),
        (
            f"{FITTED}[sweep]\nseed = {list(range(200))}\nslices = {list(range(1, 101))}",
            "9: sweep: 20000 combinations; the most is 10000",
        ),
    ],
)
def test_a_wrong_sweep_is_refused(write, text: str, said: str) -> None:
    with pytest.raises(JobError) as caught:
        read_job(write(text))
    assert str(caught.value).endswith(f":{said}")
