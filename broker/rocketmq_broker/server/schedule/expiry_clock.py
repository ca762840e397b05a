"""Implements a clock for deletions by age. It delays steps forward, because deletions cannot be undone."""

from collections.abc import Callable
from typing import Final

BELIEVED_AFTER_MS: Final = 3_600_000
"""The time, in milliseconds, after which the clock accepts a step forward of the system time.

Within this time, an operator or a time service can correct a wrong system time.
"""

_TOLERANCE_MS: Final = 60_000


class ExpiryClock:
    """Follows another clock, but accepts a step forward only after an hour. Accepts a step backward immediately."""

    def __init__(
        self,
        clock: Callable[[], int],
        steady_ms: Callable[[], int],
        newest_ms: int | None = None,
        believed_ms: int | None = None,
    ) -> None:
        """Starts the clock at the earliest of `clock()`, `newest_ms` and `believed_ms`, as the machine's clock may be wrong.

        `newest_ms` is the store time of the newest message, which may be wrong too. `believed_ms` is this clock's time at the
        last checkpoint.
        """
        self._clock = clock
        self._steady_ms = steady_ms
        self._anchor_ms = min(time_ms for time_ms in (clock(), newest_ms, believed_ms) if time_ms is not None)
        self._anchored_at_ms = steady_ms()
        self._ahead_since_ms: int | None = None

    def __call__(self) -> int:
        """Returns milliseconds since the epoch."""
        now_ms, steady_ms = self._clock(), self._steady_ms()
        sure_ms = self._anchor_ms + steady_ms - self._anchored_at_ms
        if now_ms - sure_ms <= _TOLERANCE_MS:
            self._ahead_since_ms = None
        elif self._ahead_since_ms is None:
            self._ahead_since_ms = steady_ms
            return sure_ms
        elif steady_ms - self._ahead_since_ms < BELIEVED_AFTER_MS:
            return sure_ms
        else:
            self._ahead_since_ms = None
        self._anchor_ms, self._anchored_at_ms = now_ms, steady_ms
        return now_ms
