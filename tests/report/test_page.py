"""The page of a run or sweep: its numbers are the certificate's, it needs nothing else, and anybody can read it."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import xarray as xr
from examples import FIXED, WINE, Call, ask, mixed_model, write_job

from daskab import KernelExpansion, save_model
from daskab.bound.topn import largest_sums
from daskab.report.facts import facts_of, pixels_of
from daskab.report.page.panels import bands, positions
from daskab.report.page.parts import number
from daskab.report.page.sums import strip_ticks
from daskab.report.sweep import SAID
from daskab.report.verdict import verdict
from daskab.run.reading import Reading, read_run

pytestmark = pytest.mark.filterwarnings("error")

VOID = {"meta", "link", "br", "img", "input", "hr"}
NASTY = ("a<script>alert(1)</script>", 'b"onload="x&amp;', "$\\frac{$")


class Page(HTMLParser):
    """What is on a page: its elements, their text, and its tables by caption."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.open: list[str] = []
        self.path = path
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.append((tuple(self.open), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))

    def all(self, *tags: str) -> list[str]:
        """Text of every element of some tags, in order."""
        found: list[list[str]] = []
        for inside, text in self.texts:
            if inside and inside[-1] in tags and not text:
                found.append([])
            elif found and set(tags) & set(inside):
                found[-1].append(text)
        return ["".join(parts).strip() for parts in found]

    @property
    def tables(self) -> dict[str, list[list[str]]]:
        """Rows of the tables by caption, heads first."""
        tables: dict[str, list[list[str]]] = {}
        rows: list[list[str]] = []
        for inside, text in self.texts:
            match inside[-1:], text:
                case ("table",), "":
                    rows = []
                case ("tr",), "":
                    rows.append([])
                case ("th" | "td",), "":
                    rows[-1].append("")
                case ("th" | "td",), _:
                    rows[-1][-1] += text
                case ("caption",), str() if text:
                    tables[text] = rows
        return tables


def run_of(model: KernelExpansion, folder: Path) -> Path:
    return ask(model, FIXED, folder).folder


def image_model() -> KernelExpansion:
    """All pixels of 3 x 3 but the last, of digits of which 0 and 1 stand for 0 and 16."""
    made_of = {"data": {"source": "digits", "classes": ["3", "5"], "pool": 3}, "model": {"inducing_points": None}}
    rng = np.random.default_rng(3)
    centres = rng.random((5, 8))
    model = KernelExpansion(
        centres, rng.normal(size=5), 0.8, np.zeros(8), np.ones(8), input_names=[f"r{i // 3}c{i % 3}" for i in range(8)]
    )
    low, high = np.percentile(model.latent(rng.random((200, 8))), [1, 99])
    return model.replace(
        latent_low=float(low),
        latent_high=float(high),
        provenance=json.dumps(made_of | {"title": "Digits", "zero_and_one": [[0] * 8, [16] * 8]}),
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of a table whose inputs have names that are no names, of an image, and of a model without thresholds."""
    folder = tmp_path_factory.mktemp("runs")
    models = {
        "table": mixed_model().replace(input_names=NASTY),
        "image": image_model(),
        "plain": mixed_model().replace(latent_low=None, latent_high=None),
        "robust": mixed_model().replace(latent_low=-100.0, latent_high=100.0),
    }
    return {name: run_of(model, folder) for name, model in models.items()}


@pytest.fixture(scope="module")
def pages(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """The page of each run, and one of all of them."""
    from daskab.report.page.run import run_section
    from daskab.report.page.write import write_page

    folder = tmp_path_factory.mktemp("pages")
    sections = {name: run_section(read_run(run)) for name, run in runs.items()}
    made = {name: Page(write_page([section], folder / name)) for name, section in sections.items()}
    return made | {"all": Page(write_page(list(sections.values()), folder / "all"))}


def expected_bounds(reading: Reading) -> list[list[str]]:
    """Rows of the table of bounds."""
    facts, certificate = facts_of(reading.model), reading.certificate
    rows = []
    for d in np.argsort(-certificate.upper_bound, kind="stable").tolist():
        x, x_prime = (facts.original(point) for point in reading.witnesses.pair(d))
        upper, attained = certificate.upper_bound[d], certificate.attained[d]
        above = f"{100 * (upper / attained - 1):.3g} %"
        rows.append(
            [certificate.input_names[d], number(upper), number(attained), above, number(x[d]), number(x_prime[d])]
        )
    return rows


@pytest.mark.parametrize("name", ["table", "image", "plain", "robust"])
def test_the_numbers_are_the_certificates(name: str, runs: dict[str, Path], pages: dict[str, Page]) -> None:
    reading, page = read_run(runs[name]), pages[name]
    certificate, facts = reading.certificate, facts_of(reading.model)
    noun = {"image": "pixel"}.get(name, "input")
    said = verdict(certificate, facts.classes, noun).splitlines()
    assert [text for text in page.all("p") if text in said] == said
    assert page.all("h1", "p", "svg", "table")[2] == said[0]  # after the heading, before anything else
    (bounds,) = (rows for caption, rows in page.tables.items() if caption.startswith("The bound of each"))
    assert bounds[1:] == expected_bounds(reading)
    sums = page.tables[f"Sums of the one-{noun} bounds"]
    upper, attained = (
        largest_sums(values, towards=side)
        for values, side in ((certificate.upper_bound, math.inf), (certificate.attained, -math.inf))
    )
    assert [row[1:3] for row in sums[1:]] == [[number(u), number(a)] for u, a in zip(upper, attained, strict=True)]
    if certificate.inputs_required_by_sum is not None:
        assert [row[3] for row in sums[1:]].index("reached") + 1 == certificate.inputs_required_by_sum
    strip = page.tables.get(f"How many {noun}s must change")
    if name == "plain":
        assert strip is None
    elif name == "robust":
        assert strip is not None
        assert strip[1:] == [["1 to 3", "proved impossible"]]
    else:
        assert strip is not None
        assert certificate.inputs_required is not None
        assert certificate.attack is not None
        k, m = certificate.inputs_required, certificate.attack.n_inputs
        assert k > 1
        proved = "1" if k == 2 else f"1 to {k - 1}"
        assert strip[1] == [proved, "proved impossible"]
        assert strip[-1] == [f"{m} and more", "an attack does it"]
        assert (len(strip) == 4) == (m > k)


@pytest.mark.parametrize("name", ["table", "image"])
def test_the_attack_is_told_in_the_units_of_the_data(name: str, runs: dict[str, Path], pages: dict[str, Page]) -> None:
    reading = read_run(runs[name])
    attack, names = reading.certificate.attack, reading.certificate.input_names
    assert attack is not None
    by = 16.0 if name == "image" else 1.0
    tables = pages[name].tables
    (changed,) = (rows for caption, rows in tables.items() if caption.startswith("What the attack changes"))
    (kept,) = (rows for caption, rows in tables.items() if caption.startswith("What is the same"))
    pairs = list(zip(names, attack.x, attack.x_prime, strict=True))
    assert [row[:3] for row in changed[1:]] == [[n, number(by * a), number(by * b)] for n, a, b in pairs if a != b]
    assert [row[:2] for row in kept[1:]] == [[n, number(by * a)] for n, a, b in pairs if a == b]
    assert len(changed) - 1 == attack.n_inputs


@pytest.mark.parametrize("name", ["table", "image", "plain", "robust", "all"])
def test_it_needs_nothing_and_can_be_read_by_anybody(name: str, pages: dict[str, Page]) -> None:
    page = pages[name]
    tags = [tag for tag, _ in page.elements]
    assert not {"script", "iframe", "object", "embed", "base", "form"} & set(tags)
    for _, attributes in page.elements:
        for key, value in attributes.items():
            assert not key.startswith("on")
            if key in ("src", "href", "xlink:href", "srcset", "poster", "data"):
                assert (value or "").startswith(("#", "data:"))
            assert "url(" not in (value or "").replace("url(#", "")
    style = page.all("style")[0]
    assert "url(" not in style
    assert "@import" not in style
    assert dict(page.elements)["html"]["lang"] == "en"
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    references = [a.get("xlink:href") or a.get("href") or "" for _, a in page.elements]
    assert {r[1:] for r in references if r.startswith("#")} <= set(ids)
    figures = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert len(figures) == tags.count("figure") >= 2
    for attributes in figures:
        assert attributes["role"] == "img"
        assert set((attributes["aria-labelledby"] or "").split()) <= set(ids)
    assert all(page.all("figcaption"))
    levels = [int(tag[1]) for tag in tags if tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert all(a.get("scope") in ("row", "col") for tag, a in page.elements if tag == "th")


def test_the_figures_are_beside_it_the_same_every_time(
    runs: dict[str, Path], pages: dict[str, Page], call: Call
) -> None:
    said = call("report", runs["robust"], "-o", "out/there")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[-1] == "out/there/index.html"
    run_id = read_run(runs["robust"]).certificate.run_id
    names = {f"run-{run_id}-{what}" for what in ("sandwich", "sums", "bounds")}
    assert {p.name for p in Path("out/there").iterdir()} == {
        "index.html",
        *(f"{name}.{kind}" for name in names for kind in ("svg", "png")),
    }
    before = pages["robust"].path.parent
    assert all(path.read_bytes() == (before / path.name).read_bytes() for path in Path("out/there").iterdir())


def test_images_say_whose_average_it_is(runs: dict[str, Path], pages: dict[str, Page]) -> None:
    (words,) = (text for text in pages["image"].all("figcaption") if text.startswith("The bound of each pixel"))
    assert "the average of the 5 images it was trained on" in words
    assert "Hatched: 1 pixel the model knows nothing of." in words
    assert pages["image"].all("h1") == ["Handwritten digits, 8 x 8, 3 against 5: 5 centres, 8 pixels"]


def test_pixels_are_known_by_their_names() -> None:
    found = pixels_of(("r0c1", "r2c0"))
    assert found is not None
    assert (found.shape, found.left_out) == ((3, 3), 7)
    assert found.image([1.0, 2.0])[0, 1] == 1.0
    assert np.isnan(found.image([1.0, 2.0])[0, 0])
    wider = pixels_of(("r0c1", "r2c0"), (4, 5))
    assert wider is not None
    assert wider.shape == (4, 5)
    for names in (("r0c1", "age"), ("r0c1", "r00c1"), ("x0",), ("r9999c0",)):
        assert pixels_of(names) is None


def test_numbers_of_the_strip_are_not_written_over_each_other() -> None:
    assert strip_ticks((1, 7, 8, 10), 10) == list(range(1, 11))
    assert strip_ticks((1, 84, 121, 151), 151) == [1, 84, 121, 151]
    assert strip_ticks((1, 84, 86, 107), 107) == [1, 84, 107]
    assert strip_ticks((1, 785, 784, 784), 784) == [1, 784]


def test_what_is_incomplete_says_so(runs: dict[str, Path], tmp_path: Path, call: Call) -> None:
    save_model(mixed_model(), "m.npz")
    late = ("certify", "m.npz", "--method", "fixed", "--slices", "3", "--runs", "late", "--time-limit", "1e-9")
    assert call(*late).code == 3
    (folder,) = Path("late").iterdir()
    said = call("report", folder, runs["plain"])
    assert said.code == 3
    assert "Incomplete: this run is not sealed." in said.out
    page = Page(Path("report/index.html"))
    assert any(text.startswith("Incomplete: this run is not sealed.") for text in page.all("strong"))
    assert page.all("strong").count("(incomplete)") == 1


def test_what_is_damaged_is_not_written(runs: dict[str, Path], tmp_path: Path, call: Call) -> None:
    copy = Path(shutil.copytree(runs["table"], tmp_path / "copy"))
    (copy / "certificate.json").write_text((copy / "certificate.json").read_text().replace("0.1", "0.2", 1))
    said = call("report", runs["plain"], copy)
    assert said.code == 4
    assert said.err.count("\n") == 1
    assert call("report", tmp_path).code == 4
    (tmp_path / "none.zarr").mkdir()
    assert call("report", "none.zarr").code == 4
    assert not Path("report").exists()


def test_without_the_extra(runs: dict[str, Path], call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("daskab.report.page")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = call("report", runs["table"])
    assert said.code == 2
    assert said.err == "daskab: a report needs the package matplotlib: pip install 'daskab[report]'\n"


def test_a_sweep(call: Call, tmp_path: Path) -> None:
    job = write_job(tmp_path, "one", "two")
    job.write_text(job.read_text() + "[sweep]\nslices = [2, 5]\n")
    assert call("run", job).code == 0
    said = call("report", "runs/sweeps/tiny.zarr")
    assert (said.code, said.err) == (0, "")
    page = Page(Path("report/index.html"))
    swept = xr.open_zarr("runs/sweeps/tiny.zarr").load()
    head, *rows = page.tables["All models of the sweep"]
    assert head == ["model", "slices", "accuracy", "certified", "attack", "Pareto set", "run"]
    assert len(rows) == 4
    for model, slices, accuracy, certified, attack, best, run in rows:
        point = swept.sel(model=model, slices=int(slices))
        assert (accuracy, best) == ("", "")  # models that are given say nothing of accuracy
        assert certified == f"{point.certified.item():.0f}"
        assert attack == f"{point.attack.item():.0f}"
        assert run == point.run.item()
    titles = [text.split(".")[0] for text in page.all("figcaption")]
    over_slices = ["Slices against time, model one", "Slices against time, model two"]
    assert titles == ["Over the model, slices 2", "Over the model, slices 5", *over_slices]
    for title, model in zip(over_slices, ("one", "two"), strict=True):
        head, *rows = page.tables[title]
        assert head == ["slices", "certified", "attack", "sum of bounds", "seconds"]
        for slices, row in zip((2, 5), rows, strict=True):
            point = swept.sel(model=model, slices=slices)
            known = point.certified.item(), point.attack.item()
            assert row[:3] == [str(slices), *(f"{n:.0f}" for n in known)]
            assert row[3:] == [number(point.upper_bound_sum.item()), f"{point.task_seconds.item():.1f}"]
    assert page.all("h1") == ["Sweep tiny: 4 models"]
    # On a telephone each cell says what it is.
    heads = [attrs["data-head"] for _, attrs in page.elements if "data-head" in attrs]
    assert [heads.count(name) for name in ("model", "Pareto set", "seconds")] == [4, 4, 4]


def test_slices_against_time_of_several_orders() -> None:
    from daskab.report.page.sweep import sweep_section

    values: dict[str, list[Any]] = {name: [1.0] * 3 for name in SAID}
    values |= {"certified": [1.0, 2.0, math.nan], "no_attack_exists": [False, False, True], "accuracy": [math.nan] * 3}
    values |= {"complete": [True] * 3, "run": ["a", "b", "c"], "task_seconds": [0.2, 3.0, 1234.5]}
    variables = {name: (("model", "slices"), [column]) for name, column in values.items()}
    section = sweep_section(xr.Dataset(variables, {"model": ["gp"], "slices": [1, 10, 100]}), "s")
    (timed, _) = section.parts
    (drawn,) = timed.pictures
    assert {"1", "10", "1000"} <= set(ET.fromstring(drawn.svg).itertext())
    assert drawn.table is not None
    assert [(row[0], row[1], row[-1]) for row in drawn.table.rows] == [
        ("1", "1", "0.2"),
        ("10", "2", "3.0"),
        ("100", "no attack exists", "1,234.5"),
    ]


def test_a_sweep_with_accuracies_marks_the_pareto_set(call: Call, tmp_path: Path) -> None:
    nan = math.nan
    values: dict[str, Any] = {
        "certified": [1.0, 2.0, 3.0, nan, nan],
        "attack": [2.0, 2.0, nan, nan, nan],
        "no_attack_exists": [False, False, False, True, False],
        "complete": [True, True, True, True, False],
        "accuracy": [0.95, 0.95, 0.8, 0.7, nan],
    }
    names = ("upper_bound_sum", "delta", "task_seconds", "nodes")
    values |= {name: [1.0] * 5 for name in names} | {"run": np.array(["a", "b", "c", "d", ""], dtype=object)}
    dataset = xr.Dataset(
        {name: (("model", "lengthscale"), np.array([column])) for name, column in values.items()},
        {"model": np.array(["gp"], dtype=object), "lengthscale": [0.5, 1.0, 2.0, 4.0, 8.0]},
        {"job": "</title><script>"},
    )
    with pytest.warns(UserWarning, match="Consolidated"):
        dataset.to_zarr("s.zarr", consolidated=True)
    said = call("report", "s.zarr")
    assert said.code == 3
    page = Page(Path("report/index.html"))
    rows = page.tables["All models of the sweep"][1:]
    assert [row[4] for row in rows] == ["", "yes", "yes", "yes", ""]
    assert [row[2] for row in rows] == ["1", "2", "3", "no attack exists", ""]
    assert "Most robust, with lengthscale 4: no attack exists, accuracy 0.7." in page.all("p")
    assert "Most accurate, with lengthscale 1: 0.95, 2 certified." in page.all("p")
    assert [text.split(".")[0] for text in page.all("figcaption")] == [
        "Over the lengthscale",
        "Accuracy against robustness",
    ]
    assert "script" not in [tag for tag, _ in page.elements]


def test_a_logistic_regression_stands_beside(call: Call, tmp_path: Path) -> None:
    (tmp_path / "wine.toml").write_text(f"{WINE}[sweep]\nseed = [0, 1]\n")
    assert call("run", "wine.toml").code == 0
    points = [xr.open_zarr("runs/sweeps/wine.zarr").load().sel(seed=seed).squeeze() for seed in (0, 1)]
    baselines = [(f"{p.baseline_accuracy.item():.4g}", f"{p.baseline_certified.item():.0f}") for p in points]
    assert call("report", "runs/sweeps/wine.zarr", f"runs/{points[1].run.item()}").code == 0
    page = Page(Path("report/index.html"))
    accuracy, certified = (" to ".join(sorted(set(said))) for said in zip(*baselines, strict=True))
    said = f"A logistic regression on the same data: accuracy {accuracy}, {certified} inputs certified, exactly."
    assert said in page.all("p")
    assert [text.partition(".")[0] for text in page.all("figcaption") if said in text] == [
        "Over the seed",
        "Accuracy against robustness",
    ]
    head, *rows = page.tables["All models of the sweep"]
    assert head[-3:-1] == ["logistic regression", "its accuracy"]
    assert [(row[-2], row[-3]) for row in rows] == baselines
    # That of the other seed is not fitted to the same points.
    _, this, beside = page.tables["This model and a logistic regression"]
    assert this[:3] == ["this model", f"{points[1].accuracy.item():.4g}", f"{points[1].certified.item():.0f}"]
    assert beside == ["logistic, C = 1.0", *baselines[1], baselines[1][1]]


def test_the_regions_lie_around_what_was_tried() -> None:
    at, edges, log = positions([1.0, 10.0, 100.0])
    assert log
    assert edges == pytest.approx([10**-0.5, 10**0.5, 10**1.5, 10**2.5])
    assert at.tolist() == [1.0, 10.0, 100.0]
    assert bands(np.array([1.0, 2.0, 2.0]), edges) == [(2, edges[1], edges[3])]
    assert bands(np.array([4.0, math.nan, math.inf]), edges) == [(4, edges[0], edges[1]), (5, edges[2], edges[3])]
    at, edges, log = positions([4, 10, "dense"])
    assert (at.tolist(), edges.tolist(), log) == ([0.0, 1.0, 2.0], [-0.5, 0.5, 1.5, 2.5], False)


@pytest.mark.slow
def test_a_browser_finds_nothing_wrong(runs: dict[str, Path], pages: dict[str, Page], tmp_path: Path) -> None:
    """What it asks for beside the page itself, and whatever it complains about, comes out of its console.

    So does what is wider than a telephone.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed, so no browser looks at the page")
    page = pages["all"].path.read_text()
    asks = 'performance.getEntriesByType("resource").map(r => r.name)'
    wider = '[...document.querySelectorAll("html, .table")].filter(e => e.scrollWidth > e.clientWidth + 1)'
    says = f'console.log("asked for", JSON.stringify({asks}), "too wide", {wider}.map(e => e.outerHTML.slice(0, 99)))'
    opened = page.replace("<details", "<details open")
    told = opened.replace("</body>", f"<script>onload = () => {says}</script></body>")
    (tmp_path / "told.html").write_text(told)
    quiet = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
    log = (
        "--disable-sync",
        "--enable-logging=stderr",
        "--v=0",
        "--dump-dom",
        "--window-size=500,900",
        f"--user-data-dir={tmp_path / 'user'}",
    )
    address = (tmp_path / "told.html").as_uri()
    said = subprocess.run(
        [chromium, "--headless", *quiet.split(), *log, address], capture_output=True, text=True, timeout=120, check=True
    )
    console = [line for line in said.stderr.splitlines() if "CONSOLE" in line]
    assert len(console) == 1, console
    assert '"asked for [] too wide "' in console[0]
    assert verdict(read_run(runs["robust"]).certificate).splitlines()[0] in said.stdout
