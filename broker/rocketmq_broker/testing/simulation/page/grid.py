"""Where a happening stands in the picture of lanes: columns of a grid with two for each lane, so that a lane's line has a middle.

column   1      2     3     4     5   …
       times |  lane 0   |  lane 1  | …
line   1     2     3     4     5     6
                   ↑ its line: 3     ↑ 5
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.testing.simulation.page.told import ToldHappening

_NOTE_WIDTH: Final = 5
"""Columns of a text at a lane, if there are so many."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The lines of the grid between which a part of a row stands."""

    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.begin}/{self.end}"


@dataclass(frozen=True, slots=True)
class Grid:
    """The lanes that a picture shows."""

    lanes: tuple[str, ...]

    @property
    def end(self) -> int:
        """The last line."""
        return 2 + 2 * len(self.lanes)

    def line(self, lane: str) -> int:
        """Returns the line that a lane's happenings stand at."""
        return 3 + 2 * self.lanes.index(lane)

    def head(self, lane: str) -> Columns:
        """Returns the columns of a lane."""
        return Columns(self.line(lane) - 1, self.line(lane) + 1)

    def arrow(self, process: str, to: str) -> Columns:
        """Returns the columns of an arrow, whichever direction it has."""
        first, last = sorted((self.line(process), self.line(to)))
        return Columns(first, last)

    def above_arrow(self, process: str, to: str) -> Columns:
        """Returns the columns of an arrow's text: half a lane wider on each side."""
        arrow = self.arrow(process, to)
        return Columns(arrow.begin - 1, arrow.end + 1)

    def note(self, process: str) -> Columns:
        """Returns the columns of a text at a lane: to the right of its line, and in the last lanes to the left."""
        line = self.line(process)
        if self.is_noted_left(process):
            return Columns(max(2, line - _NOTE_WIDTH), line)
        return Columns(line, min(line + _NOTE_WIDTH, self.end))

    def is_noted_left(self, process: str) -> bool:
        """Returns True for a lane that has more space to its left than a text would find to its right."""
        line = self.line(process)
        return self.end - line < min(_NOTE_WIDTH, line - 2)


def grid_of(lanes: Sequence[str], happenings: Iterable[ToldHappening]) -> Grid:
    """Returns the lanes in which something happens, in their order; lanes that nobody announced stand at the end."""
    used = dict.fromkeys(name for one in happenings for name in (one.process, one.to) if name)
    announced = [lane for lane in dict.fromkeys(lanes) if lane in used]
    return Grid((*announced, *(name for name in used if name not in set(announced))))
