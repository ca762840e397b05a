"""Draws the results as an SVG that is readable on a phone. Each square shows one approach under one fault."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from tutorials.race.faults import Fault
from tutorials.race.results.figures import Figures
from tutorials.race.results.table import duration, titles
from tutorials.race.way import Way

_LEFT: Final = 8
_HEADS: Final = 132
"""The height of the headings in pixels. The headings are rotated so that the picture fits the width of a phone."""
_CELL_WIDTH: Final = 36
_CELL_HEIGHT: Final = 26
_TITLE_HEIGHT: Final = 20
_WAY_HEIGHT: Final = _TITLE_HEIGHT + _CELL_HEIGHT + 10
_LEGEND_LINE: Final = 17
_SHOWN_LARGER: Final = 1.4
"""The factor by which the picture is larger on screens wider than a phone."""
_FONT: Final = "font-family='system-ui, sans-serif'"
_GOOD: Final = "#d7f0dd"
_INK: Final = "#1f2328"


def picture(ways: Sequence[type[Way]], faults: Sequence[Fault], figures: Sequence[Figures], *, orders: int, seed: int) -> str:
    """Returns the SVG. Rows are approaches, columns are faults, and the numbers count wrong orders."""
    legend = [
        "-12: orders that never got their credit. +12: credits for no order.",
        "On the right: p50 and p99 without a fault.",
        f"{orders} orders a cell, one in five of them struck; seed {seed}.",
        "Made by make race.",
    ]
    width, bottom = 2 * _LEFT + _CELL_WIDTH * len(faults), _HEADS + _WAY_HEIGHT * len(ways)
    height = bottom + _LEGEND_LINE * len(legend) + 14
    shown = f"width='{width * _SHOWN_LARGER:.0f}' height='{height * _SHOWN_LARGER:.0f}'"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' {shown} role='img' {_FONT}>",
        f"<title>Ways to notify another service under faults, {orders} orders a cell, seed {seed}</title>",
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
        *_heads(faults),
        *_rows(ways, titles(ways, figures), faults, {(one.way, one.fault): one for one in figures}, width - _LEFT),
        *(_text(_LEFT, bottom + 14 + _LEGEND_LINE * number, line, "start") for number, line in enumerate(legend)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _heads(faults: Sequence[Fault]) -> Iterator[str]:
    for column, fault in enumerate(faults):
        x, y = _LEFT + _CELL_WIDTH * (column + 0.5) + 4, _HEADS - 8
        yield f"<g transform='rotate(-90 {x:g} {y:g})'>{_text(x, y, fault.heading, 'start')}</g>"


def _rows(
    ways: Sequence[type[Way]],
    called: Mapping[str, str],
    faults: Sequence[Fault],
    found: Mapping[tuple[str, str], Figures],
    right: float,
) -> Iterator[str]:
    for row, way in enumerate(ways):
        top = _HEADS + _WAY_HEIGHT * row
        yield _text(_LEFT + 2, top + 14, called[way.name], "start")
        for column, fault in enumerate(faults):
            yield from _square(found[way.name, fault.value], _LEFT + _CELL_WIDTH * column, top + _TITLE_HEIGHT)
        usual = found.get((way.name, Fault.NONE.value))
        if usual is not None:
            yield _text(right - 2, top + 14, f"{duration(usual.p50_ms)}, {duration(usual.p99_ms)}", "end", size=11)


def _square(figures: Figures, left: float, top: float) -> Iterator[str]:
    share = figures.wrong / max(1, figures.orders)
    colour = _GOOD if not figures.wrong else f"hsl(8 85% {78 - 120 * min(share, 0.25):.0f}%)"
    yield (f"<rect x='{left + 1}' y='{top}' width='{_CELL_WIDTH - 2}' height='{_CELL_HEIGHT}' rx='4' fill='{colour}'/>")
    kinds = [f"-{figures.missing}" if figures.missing else "", f"+{figures.phantom}" if figures.phantom else ""]
    lines = list(filter(None, kinds)) or ["0"]
    for number, line in enumerate(lines):
        lower = 0 if len(lines) == 1 else 11 * number - 5
        yield _text(left + _CELL_WIDTH / 2, top + _CELL_HEIGHT / 2 + 4 + lower, line, "middle", size=11)


def _text(x: float, y: float, words: str, anchor: str, *, size: int = 12) -> str:
    return f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}' font-size='{size}' fill='{_INK}'>{escape(words)}</text>"
