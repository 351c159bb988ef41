"""The pages in ``cluster/``: short, their links lead somewhere, their commands and tables are such as are accepted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from recipes import CLUSTER, ROOT, check, commands

from daskab.run.job import read_cluster

PAGES = sorted(CLUSTER.rglob("*.md"))
TABLES = sorted(CLUSTER.rglob("*.toml"))
KINDS = {
    "local": "processes",
    "ssh": "address",
    "tls": "address",
    "container": "address",
    "slurm": "slurm",
    "kubernetes": "kubernetes",
}


def name(path: Path) -> str:
    return str(path.relative_to(CLUSTER))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_is_one(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert len(lines) <= 60
    assert all(len(line) <= 120 for line in lines if not line.startswith("|")), page


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https://)([^)#]+)", page.read_text()):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_are_accepted(page: Path) -> None:
    for line in commands(page):
        words = shlex.split(line)
        for word in words:
            if word.startswith(("cluster/", "workflows/")) and "NAME" not in word:
                assert (ROOT / word).exists(), line
        if "daskab:0.1.0" in words and words[1] == "run":
            words = words[words.index("daskab:0.1.0") + 1 :]
        if words[0] in ("daskab", "dask"):
            check(words)
        else:
            assert words[0] in ("sbatch", "kubectl", "docker", "systemctl", "journalctl", "cluster/ssh/cluster.sh")


@pytest.mark.parametrize("words", ["daskab run j.toml --clutser inline", "dask worker a --nthread 1", "daskab wrun"])
def test_a_command_that_is_not_is_found(words: str) -> None:
    with pytest.raises(Exception, match=r"No such option|there is no"):
        check(words.split())


@pytest.mark.parametrize("table", TABLES, ids=name)
def test_tables_are_read(table: Path) -> None:
    assert read_cluster(str(table)).kind == KINDS[table.parent.name]


def test_every_folder_is_in_the_index() -> None:
    index = (CLUSTER / "README.md").read_text()
    folders = {path.name for path in CLUSTER.iterdir() if path.is_dir()}
    assert folders == set(re.findall(r"\]\((\w+)/README.md\)", index))
    assert set(KINDS) == {table.parent.name for table in TABLES}
