"""Tests that docs/tour.md has twelve files, the stated length, and the lines that it proposes to change.

`tests/lab/test_changes_of_the_tour.py` applies the changes and runs pytest for each.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tour.md").read_text()


@dataclass(frozen=True)
class Stop:
    """A stop of the tour, which presents one file."""

    number: int
    path: str
    change: str
    test: str

    @property
    def before(self) -> str:
        """Returns the lines of the file before the change."""
        return "".join(f"{line[1:]}\n" for line in self.change.splitlines() if not line.startswith("+"))

    @property
    def after(self) -> str:
        """Returns the lines of the file after the change."""
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


@each_stop
def test_each_change_can_be_made(stop: Stop) -> None:
    assert (ROOT / stop.path).read_text().count(stop.before) == 1, f"{stop.path} does not have these lines once:\n{stop.before}"
    assert (ROOT / stop.test).is_file()
