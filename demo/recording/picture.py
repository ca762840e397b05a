"""Draws a recording as an animated SVG, without scripts, fonts or external content."""

from __future__ import annotations

from itertools import pairwise
from typing import Final
from xml.sax.saxutils import escape

from demo.recording.cast import Cast, Line

ROWS: Final = 30
"""The maximum number of visible lines."""
MAX_PAUSE_S: Final = 1.5
"""The maximum pause in seconds. Longer pauses are shortened to this."""
MIN_PAUSE_S: Final = 0.15
"""The minimum time in seconds between lines, so that viewers can follow."""
LAST_PICTURE_S: Final = 8.0
"""The duration of the last screen in seconds.

The animation begins with it, so that the result is visible at once.
"""

_CHARACTER: Final = 7.8
_ROW: Final = 17
_MARGIN: Final = 14
_STYLE: Final = """\
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d8dee9; white-space: pre; }
.typed { fill: #a3be8c; }
.killed { fill: #ebcb8b; }
.well { fill: #a3be8c; font-weight: bold; }
@media (prefers-reduced-motion: reduce) { * { animation: none !important; } }
"""


def picture(cast: Cast) -> str:
    """Returns the SVG. Without animation it shows the last screen."""
    lines = [Line(0.0, f"$ {cast.command}"), *cast.lines]
    times = shown_at(lines)
    length_s = LAST_PICTURE_S + times[-1]
    width, height = round(cast.width * _CHARACTER + 2 * _MARGIN), min(ROWS, len(lines)) * _ROW + 2 * _MARGIN
    scrolled = max(0, len(lines) - ROWS) * _ROW
    rows = "\n".join(_row(number, line.text) for number, line in enumerate(lines))
    animations = "\n".join(_appearance(number, at_s, length_s) for number, at_s in enumerate(times) if number)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>{escape(cast.command)}, as it ran</title>
<style>
{_STYLE}{_scrolling(times, length_s)}
{animations}
</style>
<rect width="100%" height="100%" rx="8" fill="#2e3440"/>
<clipPath id="screen"><rect y="{_MARGIN // 2}" width="{width}" height="{height - _MARGIN}"/></clipPath>
<g clip-path="url(#screen)"><g id="paper" transform="translate(0 {-scrolled})">
{rows}
</g></g>
</svg>
"""


def shown_at(lines: list[Line]) -> list[float]:
    """Returns the time of each line in seconds. It is the recorded time, with pauses shortened or extended to the limits."""
    times = [0.0]
    for before, after in pairwise(lines):
        pause_s = min(max(after.at_s - before.at_s, MIN_PAUSE_S), MAX_PAUSE_S)
        times.append(round(times[-1] + pause_s, 3))
    return times


def _row(number: int, text: str) -> str:
    y = _MARGIN + _ROW * (number + 1) - 4
    return f'<text id="l{number}" x="{_MARGIN}" y="{y}"{_class_of(number, text)} xml:space="preserve">{escape(text)}</text>'


def _class_of(number: int, text: str) -> str:
    kind = "typed" if number == 0 else "killed" if "SIGKILL" in text else "well" if text.lstrip().startswith("consistent") else ""
    return f' class="{kind}"' if kind else ""


def _appearance(number: int, at_s: float, length_s: float) -> str:
    return (
        f"#l{number} {{ animation: a{number} {length_s:g}s infinite step-end; }} "
        f"@keyframes a{number} {{ 0% {{ opacity: 1; }} {_percent(0.0, length_s)} {{ opacity: 0; }} "
        f"{_percent(at_s, length_s)} {{ opacity: 1; }} }}"
    )


def _scrolling(times: list[float], length_s: float) -> str:
    last = f"0% {{ transform: translateY({-max(0, len(times) - ROWS) * _ROW}px); }}"
    steps = [
        f"{_percent(at_s, length_s)} {{ transform: translateY({-max(0, number + 1 - ROWS) * _ROW}px); }}"
        for number, at_s in enumerate(times)
        if number == 0 or number >= ROWS
    ]
    return f"#paper {{ animation: paper {length_s:g}s infinite step-end; }} @keyframes paper {{ {last} {' '.join(steps)} }}"


def _percent(at_s: float, length_s: float) -> str:
    """Returns the position of `at_s`, a time in the recording, as a percentage of an animation of `length_s` seconds.

    The recording begins after the last screen, because the animation shows the last screen first.
    """
    return f"{100 * (LAST_PICTURE_S + at_s) / length_s:.3f}%"
