"""How far a long run is, where no terminal can draw a bar: a line now and then."""

from collections.abc import Callable
from dataclasses import dataclass, field

_BETWEEN_LINES_S = 10.0


@dataclass(slots=True)
class ProgressLines:
    """The lines of one run; `now_s` is a clock that never goes back."""

    what: str
    """What is counted, such as "cells played"."""
    total: int
    now_s: Callable[[], float]
    _began_s: float = field(init=False)
    _told_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Begins to count the time."""
        self._began_s = self._told_s = self.now_s()

    def after(self, done: int) -> str | None:
        """Returns a line once ten seconds have passed since the last one, with an estimate of the rest; otherwise None."""
        now_s = self.now_s()
        if now_s - self._told_s < _BETWEEN_LINES_S or not done:
            return None
        self._told_s = now_s
        taken_s = now_s - self._began_s
        return f"{done} of {self.total} {self.what} in {taken_s:.0f} s; about {taken_s * (self.total - done) / done:.0f} s more"
