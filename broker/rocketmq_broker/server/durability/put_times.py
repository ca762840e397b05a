"""Counts messages per minute by the time needed to store them (RocketMQ's StoreStatsService)."""

from bisect import bisect_right
from typing import Final

_MAX_MS: Final = 60_000
"""The maximum duration that is counted, in milliseconds. Longer durations are counted as this maximum, to save memory."""
_CLASSES: Final = (
    "<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s",
    "1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~",
)  # fmt: skip
_CLASS_BEGINS_MS: Final = (1, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000)
"""The lower bound of each class of durations, in milliseconds. The first class begins at 0 and is omitted."""


class PutTimes:
    """Counts messages by their duration from append to durability."""

    def __init__(self) -> None:
        self.max_ms = 0
        """The longest duration since the start, in milliseconds."""
        self._counts: dict[int, int] = {}
        self._last_minute: dict[int, int] | None = None

    def observe(self, seconds: float, count: int) -> None:
        """Counts `count` messages with this duration."""
        milliseconds = int(seconds * 1000)
        if milliseconds > self.max_ms:
            self.max_ms = milliseconds
        kept = min(milliseconds, _MAX_MS)
        self._counts[kept] = self._counts.get(kept, 0) + count

    def begin_minute(self) -> None:
        """Publishes the counts of the past minute, and starts the next minute."""
        self._last_minute, self._counts = self._counts, {}

    def distribution(self) -> str:
        """Formats the counts of the last full minute, as in putMessageDistributeTime. Returns `null` in the first minute."""
        if self._last_minute is None:
            return "null"
        sums = [0] * len(_CLASSES)
        for milliseconds, count in self._last_minute.items():
            sums[bisect_right(_CLASS_BEGINS_MS, milliseconds)] += count
        return "".join(f"[{name}]:{count} " for name, count in zip(_CLASSES, sums, strict=True))

    def percentile_ms(self, share: float) -> float:
        """Returns the time, in milliseconds, within which the broker stored the given share of the last full minute's messages.

        `share` is between 0 and 1. Returns 0 if there were no messages.
        """
        counts = self._last_minute or {}
        left = share * sum(counts.values())
        for milliseconds in sorted(counts):
            left -= counts[milliseconds]
            if left <= 0:
                return float(milliseconds)
        return 0.0
