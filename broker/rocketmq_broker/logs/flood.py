"""The bound on log lines of one kind in a minute. Pure: the caller passes the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_LINES: Final = 100
"""Lines of one kind in one window."""
WINDOW_S: Final = 60.0

Kind = tuple[str, int]
"""The place in the source that logs: file and line. Input from strangers cannot make new kinds."""


@dataclass(slots=True)
class _Window:
    begun_s: float
    written: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Lines that were not written."""

    kind: Kind
    count: int
    seconds: float
    """Seconds since the window of these lines began."""


class Flood:
    """A counter of log lines by kind, which bounds how many of them are written."""

    def __init__(self, most_lines: int = MAX_LINES, window_s: float = WINDOW_S) -> None:
        self._most_lines = most_lines
        self._window_s = window_s
        self._windows: dict[Kind, _Window] = {}
        self._flooded: set[Kind] = set()

    def admits(self, kind: Kind, now_s: float) -> bool:
        """Returns whether the line may be written; counts it as left out if not. `now_s`: a clock that never goes back."""
        window = self._windows.get(kind)
        if window is None or (not window.left_out and now_s - window.begun_s >= self._window_s):
            window = self._windows[kind] = _Window(now_s)
        if window.written < self._most_lines:
            window.written += 1
            return True
        window.left_out += 1
        self._flooded.add(kind)
        return False

    def is_first_left_out(self, kind: Kind) -> bool:
        """Returns whether exactly one line of the kind was left out so far in its window."""
        return self._windows[kind].left_out == 1

    def take_over(self, now_s: float) -> list[LeftOut]:
        """Returns, once, the lines left out in windows that are over."""
        return self._take(now_s, [kind for kind in self._flooded if now_s - self._windows[kind].begun_s >= self._window_s])

    def take_all(self, now_s: float) -> list[LeftOut]:
        """Returns all lines left out and not yet returned, for the end of the process."""
        return self._take(now_s, list(self._flooded))

    def _take(self, now_s: float, kinds: list[Kind]) -> list[LeftOut]:
        taken = []
        for kind in kinds:
            window = self._windows.pop(kind)
            self._flooded.discard(kind)
            taken.append(LeftOut(kind, window.left_out, now_s - window.begun_s))
        return taken
