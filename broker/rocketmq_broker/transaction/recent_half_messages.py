"""A cache of recent half messages. Most of them are decided within milliseconds and need not be read from the store."""

from rocketmq_broker.message.inner_message import InnerMessage


class RecentHalfMessages:
    """A cache of half messages with a maximum size in bytes. It drops the oldest half messages first."""

    def __init__(self, max_bytes: int = 8 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: dict[int, tuple[int, InnerMessage]] = {}

    def keep(self, commit_log_offset: int, queue_offset: int, half: InnerMessage) -> None:
        """Adds a half message. Call it after the half message was appended."""
        self._drop(commit_log_offset)
        self._kept[commit_log_offset] = queue_offset, half
        self._bytes += len(half.body) + len(half.properties)
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def take(self, commit_log_offset: int, queue_offset: int) -> InnerMessage | None:
        """Removes and returns the half message with these offsets, or None."""
        kept = self._kept.pop(commit_log_offset, None)
        if kept is None:
            return None
        kept_queue_offset, half = kept
        self._bytes -= len(half.body) + len(half.properties)
        return half if kept_queue_offset == queue_offset else None

    def _drop(self, commit_log_offset: int) -> None:
        self.take(commit_log_offset, -1)

    def clear(self) -> None:
        """Drops all half messages. Call it after records were lost, because new records will reuse their offsets."""
        self._kept.clear()
        self._bytes = 0
