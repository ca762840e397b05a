"""Limits the number of log lines of each kind in a time window. The caller passes the time."""

from dataclasses import dataclass
from typing import Final

MAX_LINES: Final = 100
"""The default maximum number of lines of one kind in one window."""
WINDOW_S: Final = 60.0

Kind = tuple[str, int]
"""The kind of a log line: the file and line number of the logging call. Untrusted input cannot create new kinds."""


@dataclass(slots=True)
class _Window:
    begun_s: float
    written: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The number of lines of one kind that were not written."""

    kind: Kind
    count: int
    seconds: float
    """The time in seconds from the start of the window to this count."""


class Flood:
    """Counts log lines by kind, and decides which of them may be written."""

    def __init__(self, max_lines: int = MAX_LINES, window_s: float = WINDOW_S) -> None:
        self._max_lines = max_lines
        self._window_s = window_s
        self._windows: dict[Kind, _Window] = {}
        self._flooded: set[Kind] = set()

    def admits(self, kind: Kind, now_s: float) -> bool:
        """Returns whether a line may be written, and counts the line. `now_s` is the time of a monotonic clock in seconds."""
        window = self._windows.get(kind)
        if window is None or (not window.left_out and now_s - window.begun_s >= self._window_s):
            window = self._windows[kind] = _Window(now_s)
        if window.written < self._max_lines:
            window.written += 1
            return True
        window.left_out += 1
        self._flooded.add(kind)
        return False

    def is_first_left_out(self, kind: Kind) -> bool:
        """Returns whether the current window has left out exactly one line of this kind."""
        return self._windows[kind].left_out == 1

    def take_over(self, now_s: float) -> list[LeftOut]:
        """Returns the counts of windows that have ended, and removes these windows."""
        return self._take(now_s, [kind for kind in self._flooded if now_s - self._windows[kind].begun_s >= self._window_s])

    def take_all(self, now_s: float) -> list[LeftOut]:
        """Returns all counts that have not been returned yet. Call it at the end of the process."""
        return self._take(now_s, list(self._flooded))

    def _take(self, now_s: float, kinds: list[Kind]) -> list[LeftOut]:
        taken = []
        for kind in kinds:
            window = self._windows.pop(kind)
            self._flooded.discard(kind)
            taken.append(LeftOut(kind, window.left_out, now_s - window.begun_s))
        return taken
