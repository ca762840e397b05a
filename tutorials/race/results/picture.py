"""The race as a picture: an SVG with a square for each cell, drawn from the figures."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from tutorials.race.faults import Fault
from tutorials.race.results.figures import Figures
from tutorials.race.results.table import duration, titles
from tutorials.race.way import Way

_LEFT: Final = 330
_TOP: Final = 74
_CELL_WIDTH: Final = 82
_CELL_HEIGHT: Final = 34
_FONT: Final = "font-family='system-ui, sans-serif'"
_GOOD: Final = "#d7f0dd"
_INK: Final = "#1f2328"


def picture(ways: Sequence[type[Way]], faults: Sequence[Fault], figures: Sequence[Figures], *, orders: int, seed: int) -> str:
    """Returns the SVG's text. A row is a way and a column a fault; a number counts the wrong orders."""
    width, bottom = _LEFT + _CELL_WIDTH * (len(faults) + 1) + 40, _TOP + _CELL_HEIGHT * len(ways)
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {bottom + 70}' role='img' {_FONT} font-size='13'>",
        f"<title>Ways to tell another database under faults, {orders} orders a cell, seed {seed}</title>",
        f"<rect width='{width}' height='{bottom + 70}' fill='#ffffff'/>",
        *_heads(faults),
        *_rows(ways, titles(ways, figures), faults, {(one.way, one.fault): one for one in figures}),
        _text(_LEFT, bottom + 26, "-12: orders that never got their credit. +12: credits for no order.", "start"),
        _text(
            _LEFT, bottom + 46,
            f"{orders} orders a cell, one in five of them struck; seed {seed}. Made by make race.", "start",
        ),
        "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _heads(faults: Sequence[Fault]) -> Iterator[str]:
    for column, fault in enumerate(faults):
        for line, words in enumerate(_two_lines(fault.heading)):
            yield _text(_LEFT + _CELL_WIDTH * (column + 0.5), _TOP - 26 + 16 * line, words, "middle")
    for line, words in enumerate(("p50, p99", "no fault")):
        yield _text(_LEFT + _CELL_WIDTH * (len(faults) + 0.7), _TOP - 26 + 16 * line, words, "middle")


def _rows(
    ways: Sequence[type[Way]], called: Mapping[str, str], faults: Sequence[Fault], found: Mapping[tuple[str, str], Figures]
) -> Iterator[str]:
    for row, way in enumerate(ways):
        top = _TOP + _CELL_HEIGHT * row
        middle = top + _CELL_HEIGHT / 2 + 5
        yield _text(_LEFT - 10, middle, called[way.name], "end")
        for column, fault in enumerate(faults):
            yield from _square(found[way.name, fault.value], _LEFT + _CELL_WIDTH * column, top, middle)
        usual = found.get((way.name, Fault.NONE.value))
        if usual is not None:
            times = f"{duration(usual.p50_ms)}, {duration(usual.p99_ms)}"
            yield _text(_LEFT + _CELL_WIDTH * (len(faults) + 0.7), middle, times, "middle")


def _square(figures: Figures, left: float, top: float, middle: float) -> Iterator[str]:
    share = figures.wrong / max(1, figures.orders)
    colour = _GOOD if not figures.wrong else f"hsl(8 85% {78 - 120 * min(share, 0.25):.0f}%)"
    yield (f"<rect x='{left + 2}' y='{top + 2}' width='{_CELL_WIDTH - 4}' height='{_CELL_HEIGHT - 4}' rx='4' fill='{colour}'/>")
    kinds = [f"-{figures.missing}" if figures.missing else "", f"+{figures.phantom}" if figures.phantom else ""]
    yield _text(left + _CELL_WIDTH / 2, middle, " ".join(filter(None, kinds)) or "0", "middle")


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}' fill='{_INK}'>{escape(words)}</text>"


def _two_lines(words: str) -> tuple[str, str]:
    split = words.split(" ")
    half = (len(split) + 1) // 2
    return " ".join(split[:half]), " ".join(split[half:])
