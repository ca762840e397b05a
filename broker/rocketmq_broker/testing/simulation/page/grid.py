"""Computes the positions of events in the grid of lanes. Each lane has two columns, with the lane's line between them.

column   1      2     3     4     5   …
       times |  lane 0   |  lane 1  | …
line   1     2     3     4     5     6
                   ↑ its line: 3     ↑ 5
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.testing.simulation.page.world_report import ReportedEvent

_NOTE_WIDTH: Final = 5
"""The maximum width of an event's text beside a lane, in columns."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The horizontal position of an item: the grid lines at which it begins and ends."""

    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.begin}/{self.end}"


@dataclass(frozen=True, slots=True)
class Grid:
    """The lanes that a page shows, and their positions in the grid."""

    lanes: tuple[str, ...]

    @property
    def end(self) -> int:
        """The last grid line."""
        return 2 + 2 * len(self.lanes)

    def line(self, lane: str) -> int:
        """Returns the grid line of a lane."""
        return 3 + 2 * self.lanes.index(lane)

    def head(self, lane: str) -> Columns:
        """Returns the columns of a lane."""
        return Columns(self.line(lane) - 1, self.line(lane) + 1)

    def arrow(self, process: str, to: str) -> Columns:
        """Returns the columns of an arrow in either direction."""
        first, last = sorted((self.line(process), self.line(to)))
        return Columns(first, last)

    def above_arrow(self, process: str, to: str) -> Columns:
        """Returns the columns of an arrow's text, which is half a lane wider on each side."""
        arrow = self.arrow(process, to)
        return Columns(arrow.begin - 1, arrow.end + 1)

    def note(self, process: str) -> Columns:
        """Returns the columns of an event's text beside a lane: right of the lane's line, or left of it in the last lanes."""
        line = self.line(process)
        if self.is_noted_left(process):
            return Columns(max(2, line - _NOTE_WIDTH), line)
        return Columns(line, min(line + _NOTE_WIDTH, self.end))

    def is_noted_left(self, process: str) -> bool:
        """Returns whether the text is placed to the left of the lane, because there is more space than to the right."""
        line = self.line(process)
        return self.end - line < min(_NOTE_WIDTH, line - 2)


def grid_of(lanes: Sequence[str], happenings: Iterable[ReportedEvent]) -> Grid:
    """Returns the grid of the lanes with events, in the given order. Lanes not in `lanes` are added at the end."""
    used = dict.fromkeys(name for one in happenings for name in (one.process, one.to) if name)
    announced = [lane for lane in dict.fromkeys(lanes) if lane in used]
    return Grid((*announced, *(name for name in used if name not in set(announced))))
