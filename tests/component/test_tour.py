"""docs/tour.md: twelve files, as long as it says; each change that it proposes can be made, and the named test then fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tour.md").read_text()


@dataclass(frozen=True)
class Stop:
    """One file of the tour."""

    number: int
    path: str
    change: str
    test: str

    @property
    def before(self) -> str:
        """What the file has."""
        return "".join(f"{line[1:]}\n" for line in self.change.splitlines() if not line.startswith("+"))

    @property
    def after(self) -> str:
        """What the change makes of it."""
        return "".join(f"{line[1:]}\n" for line in self.change.splitlines() if not line.startswith("-"))


def stops() -> Iterator[Stop]:
    pattern = r"^## (\d+)\. \[\S+\]\(\.\./(\S+)\)$.*?^```diff\n(.*?)^```\n\n    \.venv/bin/python -m pytest (\S+)$"
    for number, path, change, test in re.findall(pattern, PAGE, re.MULTILINE | re.DOTALL):
        yield Stop(int(number), path, change, test)


STOPS = list(stops())
each_stop = pytest.mark.parametrize("stop", STOPS, ids=lambda stop: Path(stop.path).stem)


def test_the_tour_has_twelve_stops_in_order() -> None:
    assert [stop.number for stop in STOPS] == list(range(1, 13))
    assert len({stop.path for stop in STOPS}) == 12


def test_the_tour_is_as_long_as_it_says() -> None:
    lines = sum(len((ROOT / stop.path).read_text().splitlines()) for stop in STOPS)
    (said,) = re.findall(r"some ([\d,]+) lines", PAGE)
    assert abs(lines - int(said.replace(",", ""))) <= 100, f"the twelve files have {lines} lines"


@each_stop
def test_each_look_names_what_is_there(stop: Stop) -> None:
    source = (ROOT / stop.path).read_text()
    text = PAGE.split(f"## {stop.number}. ")[1].split("**Try**")[0]
    (look,) = re.findall(r"\*\*Look at\*\* (.*?)\n\n", text, re.DOTALL)
    assert [word for word in re.findall(r"`(\w+)`", look) if word not in source] == []


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout in which files may be changed; it has the same .venv."""
    copy = tmp_path_factory.mktemp("tour") / "checkout"
    left_out = shutil.ignore_patterns(".git", ".venv", "build", "data", "dist", "__pycache__", ".*_cache", "node_modules")
    shutil.copytree(ROOT, copy, ignore=left_out, symlinks=True)
    (copy / ".venv").symlink_to(ROOT / ".venv")
    return copy


def run(checkout: Path, test: str) -> subprocess.CompletedProcess[str]:
    python = checkout / ".venv" / "bin" / "python"
    command = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", test]
    environment = {**os.environ, "PYTHONPATH": ""}  # a Spark session of this process left the first checkout's folders there
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.slow
@each_stop
def test_each_change_makes_its_test_fail(stop: Stop, checkout: Path) -> None:
    path = checkout / stop.path
    source = path.read_text()
    assert source.count(stop.before) == 1, f"{stop.path} does not have these lines once:\n{stop.before}"
    path.write_text(source.replace(stop.before, stop.after))
    try:
        done = run(checkout, stop.test)
    finally:
        path.write_text(source)
    assert done.returncode == 1, f"{sys.executable}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    assert "1 failed" in done.stdout, done.stdout[-2000:]
