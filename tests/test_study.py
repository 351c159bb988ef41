"""Studies: what they say of their experiments, of what is missing, and how they go on."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from examples import Call, mixed_model, write_job

from daskab import save_model

STUDY = """\
name = "s"
title = "A <b>study</b> | of two"
remarks = ["Holds for *all*."]
[[experiment]]
name = "first"
title = "First"
small = "tiny.toml"
full = "tiny.toml"
remarks = ["Differs."]
published = { m = "3 inputs" }
[[experiment]]
name = "second"
title = "Second"
small = "mnist.toml"
full = "tiny.toml"
"""
MNIST = """\
name = "mnist"
[data]
source = "mnist"
classes = [0, 1]
train_size = 20
[[model]]
name = "m"
lengthscale = 4
"""


@pytest.fixture
def study(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study whose second experiment has data in its small setting, which is nowhere."""
    (tmp_path / "nothing").mkdir()
    monkeypatch.setenv("DASKAB_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("daskab.datasets.local.user_cache_path", lambda _: tmp_path / "nothing")
    write_job(tmp_path, "m")
    (tmp_path / "mnist.toml").write_text(MNIST)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


class Cells(HTMLParser):
    """Text of each cell of a table, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.text = ""
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._inside = tag in ("td", "th")
        if self._inside:
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._inside:
            self.cells[-1] += data


def test_a_page_of_what_is_done_and_what_is_not(study: Path, call: Call) -> None:
    said = call("study", study)
    assert said.code == 2
    assert "daskab: second: mnist: t10k-images-idx3-ubyte.gz is not in" in said.err
    markdown, page = Path("study/index.md").read_text(), Cells(Path("study/index.html").read_text())
    for text in (markdown, page.text):
        assert "1 of 2 experiments done" in text
        assert "fetch it with: daskab data fetch mnist." in text
        assert "Differs." in text
        assert text.count("The published numbers of second are not at hand here") == 1
    assert markdown.startswith("# A \\<b\\>study\\</b\\> \\| of two\n")
    (row,) = (line for line in markdown.splitlines() if line.startswith("| m |"))
    first = [cell.strip() for cell in row.strip("|").split("|")]
    assert page.cells[-len(first) :] == first
    assert first[1:4] == ["3 inputs", "2", "3"]


def test_those_that_are_named_and_the_full_setting(study: Path, call: Call) -> None:
    said = call("study", study, "second", "--full", "-o", "there")
    assert said.code == 0
    assert said.out.endswith("there/index.html\n")
    markdown = Path("there/index.md").read_text()
    assert "The full setting of s; 1 of 2 experiments done." in markdown
    assert "## First" not in markdown
    assert "| m | 2 | 3 |" in markdown
    (said,) = (line for line in markdown.splitlines() if "not at hand" in line)
    assert said.startswith("The published numbers are not at hand here")
    assert "published |" not in markdown


def test_what_time_ends_is_gone_on_with(study: Path, call: Call) -> None:
    study.write_text(STUDY.replace("mnist.toml", "other.toml"))
    save_model(mixed_model(4, 2, seed=6), "other.npz")
    other = Path("tiny.toml").read_text().replace('"tiny"', '"other"').replace("m.npz", "other.npz")
    Path("other.toml").write_text(other)
    assert call("study", study, "first").code == 0
    said = call("study", study, "--time-limit", "1e-9")
    assert (said.code, said.err) == (3, "")
    markdown = Path("study/index.md").read_text()
    assert "1 of 2 experiments done." in markdown  # what is sealed is found in no time
    assert "| m | 1 so far | none found |" in markdown
    assert markdown.endswith("\n\nLeft undone: m.\n")
    assert call("study", study).code == 0
    assert "2 of 2 experiments done." in Path("study/index.md").read_text()


def test_what_is_done_is_not_done_again(study: Path, call: Call) -> None:
    assert "(sealed)" in call("study", study, "first").out
    before = Path("study/index.md").read_text()
    assert "(found)" in call("study", study, "first").out
    assert Path("study/index.md").read_text() == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"second"', '"first"', "12: experiment[1].name: 'first' is already experiment[0]"),
        ('full = "tiny.toml"\nrem', "rem", "4: experiment[0].full: missing"),
        ("published =", "publishd =", "10: experiment[0].publishd: unknown key; did you mean published?"),
        ("[[experiment]]", "[experiment]", "4: experiment: "),
        ('"Differs."', '""', "9: experiment[0].remarks"),
    ],
)
def test_a_wrong_study_is_told_in_one_line(study: Path, call: Call, old: str, new: str, message: str) -> None:
    text = study.read_text() if new != "[experiment]" else STUDY.partition('[[experiment]]\nname = "second"')[0]
    study.write_text(text.replace(old, new))
    said = call("study", study)
    assert said.code == 2
    assert said.err.startswith(f"daskab: {study}:{message}")
    assert said.err.count("\n") == 1
    assert not Path("study").exists()


def test_a_name_that_is_no_experiment(study: Path, call: Call) -> None:
    said = call("study", study, "third")
    assert (said.code, said.err) == (2, "daskab: third is not an experiment of s; known: first, second\n")
