"""Times to store messages, for each minute (RocketMQ's StoreStatsService)."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

_MAX_MS: Final = 60_000
"""Longer times are counted as this: a bound for memory."""
_CLASSES: Final = (
    "<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s",
    "1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~",
)  # fmt: skip
_CLASS_BEGINS_MS: Final = (1, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000)
"""The lower bound of each class but the first."""


class PutTimes:
    """Counts storing requests by their time, from the append until they were as durable as promised."""

    def __init__(self) -> None:
        self.longest_ms = 0
        """Since the start."""
        self._counts: dict[int, int] = {}
        self._last_minute: dict[int, int] | None = None

    def observe(self, seconds: float, count: int) -> None:
        """Counts so many requests with that time."""
        milliseconds = int(seconds * 1000)
        if milliseconds > self.longest_ms:
            self.longest_ms = milliseconds
        kept = min(milliseconds, _MAX_MS)
        self._counts[kept] = self._counts.get(kept, 0) + count

    def begin_minute(self) -> None:
        """Publishes the figures of the past minute, and begins the next one."""
        self._last_minute, self._counts = self._counts, {}

    def distribution(self) -> str:
        """Formats the last minute's requests by time, as putMessageDistributeTime does; `null` in the first minute."""
        if self._last_minute is None:
            return "null"
        sums = [0] * len(_CLASSES)
        for milliseconds, count in self._last_minute.items():
            sums[bisect_right(_CLASS_BEGINS_MS, milliseconds)] += count
        return "".join(f"[{name}]:{count} " for name, count in zip(_CLASSES, sums, strict=True))

    def percentile_ms(self, share: float) -> float:
        """Returns the milliseconds within which that share of the last minute's requests ended; 0 without requests."""
        counts = self._last_minute or {}
        left = share * sum(counts.values())
        for milliseconds in sorted(counts):
            left -= counts[milliseconds]
            if left <= 0:
                return float(milliseconds)
        return 0.0
