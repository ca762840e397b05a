"""The schedule of a client's periodic tasks."""

import asyncio
from typing import Final

_EARLY_S: Final = 0.1
"""The tolerance in seconds. A beat is due this much earlier, because timers may fire slightly too early."""


class Rhythm:
    """A schedule of beats at fixed intervals. A task runs at each beat, and its duration does not delay the next beat.

    Tasks with the same interval therefore run at the same time, and wake the machine only once.
    """

    def __init__(self, interval_s: float) -> None:
        """Makes the first beat due immediately. Must be called on a running event loop."""
        self._interval_s = interval_s
        self._time = asyncio.get_running_loop().time
        self._next_s = self._time()

    @property
    def is_due(self) -> bool:
        """Returns True if the next beat is due."""
        return self._time() > self._next_s - _EARLY_S

    def next_s(self, sooner_s: float | None = None) -> float:
        """Returns the event loop's time of the next beat, or the time `sooner_s` seconds from now if that is earlier."""
        now_s = self._time()
        if self.is_due:
            self._next_s = now_s + self._interval_s
        return self._next_s if sooner_s is None else min(self._next_s, now_s + sooner_s)
