"""Renders the lanes of a world (a simulated run) as an SVG picture, for documents.

Coordinates are pixels. The height depends on the number of events. Text widths are estimated for a common sans-serif font.
"""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rocketmq_broker.testing.simulation.page.folds import LONG_WAIT_NS
from rocketmq_broker.testing.simulation.page.grid import Grid, grid_of
from rocketmq_broker.testing.simulation.page.kinds import KINDS, kind_class
from rocketmq_broker.testing.simulation.page.markup import escaped, moment_text, wait_text
from rocketmq_broker.testing.simulation.page.scene import ShownEvent, scene_of
from rocketmq_broker.testing.simulation.page.world_report import ReportedEvent, ReportedKind, WorldReport

_WIDTH: Final = 1000
_TIMES: Final = 112
"""The width of the column of times, in pixels."""
_HEAD: Final = 34
_LINE: Final = 19
_LETTER: Final = 7.9
"""The estimated width in pixels of a letter in the bold text of broken promises."""
_MARGIN: Final = 12


def picture_of(world: WorldReport) -> str:
    """Returns an SVG file with the events related to the first broken promise, or all events of a short run."""
    scene = scene_of(world, world.first_broken)
    drawing = _Drawing(grid_of(world.lanes, scene.happenings), _HEAD + _MARGIN)
    style = Path(__file__).with_name("picture.css").read_text(encoding="utf-8")
    body = "".join(drawing.row(one) for one in scene.shown)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {drawing.bottom + _MARGIN}" role="img">\n'
        f"<title>{escaped(world.title, None)}</title>\n<style>\n{style}</style>\n"
        f'<rect class="ground" width="{_WIDTH}" height="{drawing.bottom + _MARGIN}" rx="8"/>\n'
        f"{drawing.heads()}{body}</svg>\n"
    )


@dataclass(slots=True)
class _Drawing:
    """The rows drawn so far, from top to bottom."""

    grid: Grid
    bottom: int
    """The y coordinate of the next row."""

    def heads(self) -> str:
        """Returns the SVG of the lanes' names and lines. Call it after all rows."""
        return "".join(
            f'<text class="head middle" x="{self._x(lane)}" y="24">{escaped(lane)}</text>'
            f'<line class="life" x1="{self._x(lane)}" x2="{self._x(lane)}" y1="{_HEAD}" y2="{self.bottom}"/>\n'
            for lane in self.grid.lanes
        )

    def row(self, one: ShownEvent) -> str:
        """Returns the SVG of an event and of the wait before it."""
        return "".join([*self._gap(one), *self._happening(one.happening)])

    def _gap(self, one: ShownEvent) -> Iterator[str]:
        if one.waited_ns >= LONG_WAIT_NS:
            yield f'<text class="at end" x="{_TIMES - 8}" y="{self.bottom + 14}">… {wait_text(one.waited_ns)} …</text>\n'
            self.bottom += _LINE + 4

    def _happening(self, happening: ReportedEvent) -> Iterator[str]:
        kind = kind_class(happening.kind)
        if happening.kind == ReportedKind.VIOLATION or not happening.process:
            yield from self._for_all(happening)
            return
        yield f'<text class="at end" x="{_TIMES - 8}" y="{self.bottom + 14}">{moment_text(happening.at_ns)}</text>\n'
        yield f'<g class="{kind}"><title>{escaped(KINDS.get(happening.kind, happening.kind))}</title>'
        yield from (self._arrow(happening) if happening.to and happening.to != happening.process else self._note(happening))
        yield "</g>\n"

    def _arrow(self, happening: ReportedEvent) -> Iterator[str]:
        begin, end = self._x(happening.process), self._x(happening.to or "")
        back = -9 if end > begin else 9
        y = self.bottom + _LINE + 3
        lost = " lost" if happening.kind == ReportedKind.FAULT else ""
        yield f'<text class="middle halo" x="{(begin + end) // 2}" y="{self.bottom + 14}">{escaped(happening.text, 75)}</text>'
        yield f'<line class="way{lost}" x1="{begin}" x2="{end + back}" y1="{y}" y2="{y}"/>'
        yield f'<path class="tip" d="M{end} {y}l{back} -5v10z"/>'
        self.bottom += _LINE + 13

    def _note(self, happening: ReportedEvent) -> Iterator[str]:
        x, is_left = self._x(happening.process), self.grid.is_noted_left(happening.process)
        wrong = " wrong" if happening.kind in (ReportedKind.FAULT, ReportedKind.DEATH) else ""
        yield f'<rect class="tip" x="{x - 2}" y="{self.bottom}" width="4" height="{_LINE}"/>'
        side = f'class="halo{wrong} end" x="{x - 9}"' if is_left else f'class="halo{wrong}" x="{x + 9}"'
        yield f'<text {side} y="{self.bottom + 14}">{escaped(happening.text, 75)}</text>'
        self.bottom += _LINE + 7

    def _for_all(self, happening: ReportedEvent) -> Iterator[str]:
        space = _WIDTH - _TIMES - 2 * _MARGIN
        lines = textwrap.wrap(happening.text, int(space / _LETTER))
        height = _LINE * len(lines) + 12
        yield f'<text class="at end" x="{_TIMES - 8}" y="{self.bottom + height // 2 + 4}">{moment_text(happening.at_ns)}</text>'
        yield f'<rect class="box" x="{_TIMES + 4}" y="{self.bottom}" width="{space}" height="{height}" rx="6"/>'
        for number, line in enumerate(lines):
            y = self.bottom + _LINE * (number + 1) + 1
            yield f'<text class="broken middle" x="{_TIMES + 4 + space // 2}" y="{y}">{escaped(line, None)}</text>'
        yield "\n"
        self.bottom += height + 10

    def _x(self, lane: str) -> int:
        width = (_WIDTH - _TIMES) / len(self.grid.lanes)
        return round(_TIMES + width * (self.grid.lanes.index(lane) + 0.5))
