"""Young queues: a new consumer group begins with their first message (checkInDiskByConsumeOffset in RocketMQ)."""

from __future__ import annotations

import os
from typing import Final

from rocketmq_broker.store import MessageStore

_SHARE_OF_MEMORY: Final = 0.4
"""While a queue's first message is no older than this part of the log, RocketMQ assumes it to be in memory."""


class YoungQueues:
    """Tells whether a queue still has its first message, near the log's end."""

    def __init__(self, store: MessageStore, most_bytes: int) -> None:
        """A queue counts as young while no more than `most_bytes` were stored since its first message."""
        self._store = store
        self._most_bytes = most_bytes

    def has(self, topic: bytes, queue_id: int) -> bool:
        """Returns whether the queue is young; an empty queue that never had a message is."""
        if self._store.min_offset(topic, queue_id) > 0:
            return False
        first = self._store.commit_log_offset(topic, queue_id, 0)
        return first is None or self._store.commit_log_max_offset - first <= self._most_bytes


def young_queue_bytes() -> int:
    """Returns the bytes for `YoungQueues` on this machine."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _SHARE_OF_MEMORY)
