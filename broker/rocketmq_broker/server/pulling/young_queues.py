"""Detects young queues, in which a new consumer group starts at the first message (RocketMQ's checkInDiskByConsumeOffset)."""

from typing import Final

from rocketmq_broker.platform.memory import physical_memory_bytes
from rocketmq_broker.store import MessageStore

_SHARE_OF_MEMORY: Final = 0.4
"""The share of memory in which RocketMQ expects the end of the commit log to be cached (page cache)."""


class YoungQueues:
    """Checks whether a queue is young.

    A young queue still contains its first message, and that message is near the end of the commit log.
    """

    def __init__(self, store: MessageStore, max_bytes: int) -> None:
        """Sets the limit. A queue is young while at most `max_bytes` of commit log have been written since its first message."""
        self._store = store
        self._max_bytes = max_bytes

    def has(self, topic: bytes, queue_id: int) -> bool:
        """Returns True if the queue is young. A queue that never had a message is young."""
        if self._store.min_offset(topic, queue_id) > 0:
            return False
        first = self._store.commit_log_offset(topic, queue_id, 0)
        return first is None or self._store.commit_log_max_offset - first <= self._max_bytes


def young_queue_bytes() -> int:
    """Returns the default for `max_bytes` of `YoungQueues`.

    The default depends on the machine's memory.
    """
    return int(physical_memory_bytes() * _SHARE_OF_MEMORY)
