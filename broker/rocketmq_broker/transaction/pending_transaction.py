"""One pending transaction, and where its records lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class RecordOffsets(NamedTuple):
    """Where a record was appended."""

    commit_log_offset: int
    queue_offset: int


@dataclass(slots=True, eq=False)
class PendingTransaction:
    """A transaction that nobody has decided yet."""

    commit_log_offset: int
    """Of its first half message, which decisions name, however often a copy was put back."""
    queue_offset: int
    """Of its first half message in the half queue. RocketMQ calls it the transaction state table offset."""
    stored_at: int
    """The commit log offset of its newest half message: of the first one unless a copy was put back."""
    stored_queue_offset: int
    """The queue offset of its newest half message."""
    producer_group: str
    topic: bytes
    """The topic that its message is for."""
    queue_id: int
    tags_code: int | None
    begun_ms: int
    due_ms: int
    """When the check service looks at it next."""
    checks: int = 0
    """How many checks were sent about it."""
