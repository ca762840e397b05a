"""Progress lines for long runs whose output is not a terminal."""

from collections.abc import Callable
from dataclasses import dataclass, field

_BETWEEN_LINES_S = 10.0


@dataclass(slots=True)
class ProgressLines:
    """The progress lines of one run. `now_s` is a monotonic clock in seconds."""

    what: str
    """The name of the counted items, for example "cells played"."""
    total: int
    now_s: Callable[[], float]
    _began_s: float = field(init=False)
    _printed_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Starts the clock."""
        self._began_s = self._printed_s = self.now_s()

    def after(self, done: int) -> str | None:
        """Returns a line with the estimated remaining time, or None within ten seconds of the last line."""
        now_s = self.now_s()
        if now_s - self._printed_s < _BETWEEN_LINES_S or not done:
            return None
        self._printed_s = now_s
        taken_s = now_s - self._began_s
        return f"{done} of {self.total} {self.what} in {taken_s:.0f} s; about {taken_s * (self.total - done) / done:.0f} s more"
