"""The times of a client's regular work."""

from __future__ import annotations

import asyncio
from typing import Final

_EARLY_S: Final = 0.1
"""Work done within this time before a beat counts as the beat's. Timers may fire a moment early."""


class Rhythm:
    """A beat at fixed intervals. Work between two beats does not move it.

    So all 30 s work of a client stays together, and wakes its machine once.
    """

    def __init__(self, interval_s: float) -> None:
        """Begins now, on the running event loop."""
        self._interval_s = interval_s
        self._time = asyncio.get_running_loop().time
        self._next_s = self._time()

    @property
    def is_due(self) -> bool:
        """Whether the next beat has come."""
        return self._time() > self._next_s - _EARLY_S

    def next_s(self, sooner_s: float | None = None) -> float:
        """Returns the event loop's time of the next beat, or of `sooner_s` seconds later if that is sooner."""
        now_s = self._time()
        if self.is_due:
            self._next_s = now_s + self._interval_s
        return self._next_s if sooner_s is None else min(self._next_s, now_s + sooner_s)
