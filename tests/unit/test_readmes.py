"""The README and its Chinese version lead to what exists, and name the same commands."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
READMES = ("README.md", "README.zh.md")
IGNORED = {"build", "data", "dist", "htmlcov", "spark-warehouse", "target"}
"""Folders that git ignores."""


def commands(readme: str) -> list[str]:
    """The commands of the indented blocks, without their comments."""
    lines = re.findall(r"^ {4}(make \S+|pip install \S+|rocketmq-broker)", (ROOT / readme).read_text(), re.MULTILINE)
    return [" ".join(line.split()) for line in lines]


@pytest.mark.parametrize("readme", READMES)
def test_each_link_leads_to_what_exists(readme: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", (ROOT / readme).read_text())
    assert len(links) > 10
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


@pytest.mark.parametrize("readme", READMES)
def test_each_make_target_that_is_named_exists(readme: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {command.split()[1] for command in commands(readme) if command.startswith("make ")}
    assert named
    assert named <= targets


def test_the_chinese_readme_names_no_other_commands_than_the_english_one() -> None:
    assert set(commands("README.zh.md")) <= set(commands("README.md"))
    assert len(commands("README.zh.md")) > 4


def test_both_show_the_same_path_of_an_hour() -> None:
    index = (ROOT / "tutorials" / "README.md").read_text()
    path = re.findall(r"^\| \* \| \[[^]]*\]\(([^)]+)\)", index, re.MULTILINE)
    chinese = (ROOT / "README.zh.md").read_text().replace("/README.zh.md)", "/README.md)")
    assert path
    assert re.findall(r"^\| \[[^]]*\]\(tutorials/([^)]+)\)", chinese, re.MULTILINE) == path


@pytest.mark.parametrize("readme", READMES)
def test_a_reader_has_read_it_in_a_minute(readme: str) -> None:
    assert len((ROOT / readme).read_text().splitlines()) <= 120


def lines_of(folder: str) -> int:
    """The lines of Python below a folder, without the tests that lie there."""
    paths = [path for path in (ROOT / folder).rglob("*.py") if "build" not in path.parts]
    return sum(
        len(path.read_text().splitlines()) for path in paths if folder == "tests" or "tests" not in path.parts[len(ROOT.parts) :]
    )


@pytest.mark.parametrize("readme", READMES)
def test_the_map_of_the_folders_says_how_large_each_part_is(readme: str) -> None:
    rows = re.findall(r"^\| (\[\w.*?) \| ?([\d,]*) \| ", (ROOT / readme).read_text(), re.MULTILINE)
    folders = [re.findall(r"\]\((\w+)\)", cell) for cell, _ in rows]
    assert {folder for row in folders for folder in row} == {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and any(path.rglob("*.*")) and path.name[0] != "." and path.name not in IGNORED
    }
    for row, (_, said) in zip(folders, rows, strict=True):
        if said:
            assert int(said.replace(",", "")) == pytest.approx(sum(map(lines_of, row)), rel=0.05)


def test_each_decision_stands_in_the_index_with_its_title() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = dict(re.findall(r"^- \[\d{4}\]\((\S+)\) (.*)$", (folder / "README.md").read_text(), re.MULTILINE))
    titles = {path.name: path.read_text().splitlines()[0] for path in folder.glob("0*.md") if not path.name.startswith("0000")}
    assert listed.keys() == titles.keys()
    assert [name for name, title in listed.items() if title not in titles[name]] == []


def needed_by(requirements: list[str]) -> set[str]:
    """The names of all distributions that pip installs for these, on this Python."""
    found: set[str] = set()
    waiting = [Requirement(one) for one in requirements]
    while waiting:
        one = waiting.pop()
        name = re.sub(r"[-_.]+", "-", one.name.lower())
        if name not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
            found.add(name)
            waiting += [Requirement(further) for further in importlib.metadata.requires(name) or []]
    return found


@pytest.mark.parametrize("readme", [*READMES, "broker/README.md"])
def test_it_says_how_many_packages_the_broker_brings(readme: str) -> None:
    project = tomllib.loads((ROOT / "broker" / "pyproject.toml").read_text())["project"]
    said = re.findall(r"(\d+) (?:packages|个软件包)", (ROOT / readme).read_text())
    assert said == [str(len(needed_by(project["dependencies"])))]
