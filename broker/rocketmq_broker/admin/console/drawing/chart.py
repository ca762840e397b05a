"""A small chart of one figure over the last minutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

WIDTH: Final = 320
HEIGHT: Final = 72
_MARGIN: Final = 4

Point = tuple[int, float | None]
"""A time in milliseconds, and the figure; None where it could not be asked."""


class Chart(NamedTuple):
    """Lines in a space of `width` by `height`; a gap where the figure is not known."""

    title: str
    unit: str
    lines: list[str]
    """Each as the `points` of an SVG polyline."""
    latest: str
    """The last figure; `unknown` where it could not be asked."""
    highest: str
    minutes: str
    """The period of the chart."""
    width: int = WIDTH
    height: int = HEIGHT


def chart(title: str, unit: str, points: Sequence[Point], *, span_ms: int) -> Chart:
    """Draws the figure over the `span_ms` before the last point. The scale goes from 0 to the highest figure, 1 at least."""
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
