"""A line chart of one value over the last few minutes."""

from collections.abc import Sequence
from typing import Final, NamedTuple

WIDTH: Final = 320
HEIGHT: Final = 72
_MARGIN: Final = 4

Point = tuple[int, float | None]
"""A time in milliseconds, and the value at that time, or None if the value is unknown."""


class Chart(NamedTuple):
    """A line chart of `width` by `height`, with gaps where the value is unknown."""

    title: str
    unit: str
    lines: list[str]
    """The `points` attributes of SVG polylines."""
    latest: str
    """The last value, or `unknown`."""
    highest: str
    minutes: str
    """The period that the chart covers, in minutes, such as `5 min`."""
    width: int = WIDTH
    height: int = HEIGHT


def chart(title: str, unit: str, points: Sequence[Point], *, span_ms: int) -> Chart:
    """Returns a chart of the values in the `span_ms` milliseconds before the last point.

    The vertical scale begins at 0 and ends at the maximum value, or at 1 if the maximum is lower.
    """
    known = [value for _, value in points if value is not None]
    top = max(1.0, *known) if known else 1.0
    end_ms = points[-1][0] if points else 0
    lines: list[list[str]] = [[]]
    for at_ms, value in points:
        if value is None:
            lines.append([])
            continue
        x = WIDTH - (end_ms - at_ms) / span_ms * WIDTH
        y = HEIGHT - _MARGIN - value / top * (HEIGHT - 2 * _MARGIN)
        lines[-1].append(f"{x:.1f},{y:.1f}")
    latest = points[-1][1] if points else None
    return Chart(
        title=title,
        unit=unit,
        lines=[" ".join(line if len(line) > 1 else line * 2) for line in lines if line],
        latest="unknown" if latest is None else _text(latest),
        highest=_text(max(known)) if known else "unknown",
        minutes=f"{span_ms // 60_000} min",
    )


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
