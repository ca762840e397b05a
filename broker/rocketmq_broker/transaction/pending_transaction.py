"""One pending transaction, and the offsets of its records."""

from typing import NamedTuple


class RecordOffsets(NamedTuple):
    """The offsets of an appended record."""

    commit_log_offset: int
    queue_offset: int


class PendingTransaction:
    """A transaction that is not decided yet."""

    __slots__ = (
        "begun_ms", "checks", "commit_log_offset", "due_ms", "producer_group", "queue_id", "queue_offset", "stored_at",
        "stored_queue_offset", "tags_code", "topic",
    )  # fmt: skip

    def __init__(
        self,
        commit_log_offset: int,
        queue_offset: int,
        stored_at: int,
        stored_queue_offset: int,
        producer_group: str,
        topic: bytes,
        queue_id: int,
        tags_code: int | None,
        begun_ms: int,
        due_ms: int,
        checks: int = 0,
    ) -> None:
        self.commit_log_offset = commit_log_offset
        """The commit log offset of the first half message. Decisions refer to it, even after a copy was put back."""
        self.queue_offset = queue_offset
        """The offset of the first half message in the half queue. RocketMQ calls it the transaction state table offset."""
        self.stored_at = stored_at
        """The commit log offset of the newest half message, which is the first one unless a copy was put back."""
        self.stored_queue_offset = stored_queue_offset
        """The offset of the newest half message in the half queue."""
        self.producer_group = producer_group
        self.topic = topic
        """The destination topic of the message."""
        self.queue_id = queue_id
        self.tags_code = tags_code
        self.begun_ms = begun_ms
        self.due_ms = due_ms
        """The time at which the check service next examines the transaction, in milliseconds since the epoch."""
        self.checks = checks
        """The number of checks sent to producers."""
