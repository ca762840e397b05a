"""When something that a client does regularly is due next."""

from __future__ import annotations

import asyncio
from typing import Final

_EARLY_S: Final = 0.1
"""What is done so shortly before a beat is done for it. Timers may fire a moment early."""


class Rhythm:
    """A beat every so many seconds. What is done in between does not move it.

    So what a client does every 30 s stays together, and wakes its machine once.
    """

    def __init__(self, interval_s: float) -> None:
        """Begins now, on the event loop that runs."""
        self._interval_s = interval_s
        self._time = asyncio.get_running_loop().time
        self._next_s = self._time()

    def next_s(self, sooner_s: float | None = None) -> float:
        """The event loop's time at the next beat, or after `sooner_s` seconds if that is sooner."""
        now_s = self._time()
        if now_s > self._next_s - _EARLY_S:
            self._next_s = now_s + self._interval_s
        return self._next_s if sooner_s is None else min(self._next_s, now_s + sooner_s)
