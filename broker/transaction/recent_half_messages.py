"""Half messages that were stored a moment ago, kept in memory for the decision that most of them get within milliseconds."""

from __future__ import annotations

from broker.transaction.half_message import HalfMessage


class RecentHalfMessages:
    """As many as a bound in bytes allows; the oldest go first. What is not here must be read from the store."""

    def __init__(self, max_bytes: int = 8 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: dict[int, HalfMessage] = {}

    def keep(self, half: HalfMessage) -> None:
        """A half message was appended."""
        self.take(half.commit_log_offset)
        self._kept[half.commit_log_offset] = half
        self._bytes += len(half.body) + len(half.properties)
        while self._bytes > self._max_bytes:
            self.take(next(iter(self._kept)))

    def take(self, commit_log_offset: int) -> HalfMessage | None:
        """The half message at that offset, which is kept no longer."""
        half = self._kept.pop(commit_log_offset, None)
        if half is not None:
            self._bytes -= len(half.body) + len(half.properties)
        return half

    def clear(self) -> None:
        """Other messages may come to lie at the offsets known here."""
        self._kept.clear()
        self._bytes = 0
