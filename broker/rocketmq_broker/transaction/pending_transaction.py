"""One pending transaction, and the offsets of its records."""

from dataclasses import dataclass
from typing import NamedTuple


class RecordOffsets(NamedTuple):
    """The offsets of an appended record."""

    commit_log_offset: int
    queue_offset: int


@dataclass(slots=True, eq=False)
class PendingTransaction:
    """A transaction that is not decided yet."""

    commit_log_offset: int
    """The commit log offset of the first half message. Decisions refer to it, even after a copy was put back."""
    queue_offset: int
    """The offset of the first half message in the half queue. RocketMQ calls it the transaction state table offset."""
    stored_at: int
    """The commit log offset of the newest half message, which is the first one unless a copy was put back."""
    stored_queue_offset: int
    """The offset of the newest half message in the half queue."""
    producer_group: str
    topic: bytes
    """The destination topic of the message."""
    queue_id: int
    tags_code: int | None
    begun_ms: int
    due_ms: int
    """The time at which the check service next examines the transaction, in milliseconds since the epoch."""
    checks: int = 0
    """The number of checks sent to producers."""
