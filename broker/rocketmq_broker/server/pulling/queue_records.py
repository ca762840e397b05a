"""Iterates over the records of a queue."""

from collections.abc import Iterator
from typing import Final

from rocketmq_broker.store import MessageStore

_PULL_MESSAGES: Final = 1024
_PULL_BYTES: Final = 4 << 20


def records_from(store: MessageStore, topic: bytes, queue_id: int, offset: int) -> Iterator[bytes]:
    """Yields all visible records of a queue, starting at `offset`. Includes records that become visible during the iteration."""
    while offset < store.max_offset(topic, queue_id):
        pulled = store.pull(topic, queue_id, offset, _PULL_MESSAGES, _PULL_BYTES)
        yield from pulled.records
        offset = max(pulled.next_begin_offset, offset + 1)
