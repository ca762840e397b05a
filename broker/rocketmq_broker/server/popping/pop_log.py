"""Reads and appends to the pop log, which records popped and settled messages, so that a crash loses neither.

    topic rmq_sys_POP_LOG_TOPIC, queue 0
    ["pop", group, topic, queue id, start offset, next offset, [offsets], pop time, invisible time, attempt]
    ["ack", group, topic, queue id, [offsets]]

A `pop` record hides messages, or changes how long they are hidden. Its `attempt` is 0 unless the pop is orderly. An `ack` record
settles messages that were acknowledged, or stored again for a retry. RocketMQ stores such records in its revive topic.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from rocketmq_broker.message import topics
from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import decode_record
from rocketmq_broker.server.ports import SystemTopics
from rocketmq_broker.server.pulling.queue_records import records_from
from rocketmq_broker.store import Appended, MessageStore

POP_LOG: Final = topics.POP_LOG_TOPIC.encode()


class GroupQueue(NamedTuple):
    """A queue and a group that consumes it."""

    group: str
    topic: str
    queue_id: int


class PopEntry(msgspec.Struct, array_like=True, tag="pop", frozen=True):
    """An entry that hides messages of a queue from a group."""

    group: str
    topic: str
    queue_id: int
    start_offset: int
    next_offset: int
    """The offset of the group's next message.

    If it differs from `start_offset`, the pop advanced the group's offset to this value.
    """
    offsets: list[int]
    pop_time_ms: int
    invisible_ms: int
    attempt: int = 0

    @property
    def queue(self) -> GroupQueue:
        """Returns the group and its queue."""
        return GroupQueue(self.group, self.topic, self.queue_id)


class AckEntry(msgspec.Struct, array_like=True, tag="ack", frozen=True):
    """An entry that settles messages, so that the group does not receive them from this queue again."""

    group: str
    topic: str
    queue_id: int
    offsets: list[int]

    @property
    def queue(self) -> GroupQueue:
        """Returns the group and its queue."""
        return GroupQueue(self.group, self.topic, self.queue_id)


Entry = PopEntry | AckEntry
_decode: Final = msgspec.json.Decoder(Entry).decode


class PopLog:
    """Appends entries to the pop log, and reads them. The first entry creates the topic."""

    def __init__(self, store: MessageStore, topic_table: SystemTopics) -> None:
        self._store = store
        self._topics = topic_table
        self._has_topic = False

    def append(self, entry: Entry, now_ms: int) -> Appended:
        """Appends an entry. The entry may use disk space that is reserved for records such as ends of transactions.

        Raises StoreUnwritable.
        """
        if not self._has_topic:
            self._topics.internal(topics.POP_LOG_TOPIC, 1)
            self._has_topic = True
        body = msgspec.json.encode(entry)
        message = InnerMessage(POP_LOG, 0, body, b"", 0, 0, now_ms, self._store.config.store_host)
        return self._store.append(message, now_ms, was_accepted=True, may_use_reserve=True)

    @property
    def end(self) -> int:
        """Returns the queue offset after the last visible entry. It is 0 before the first pop."""
        return self._store.max_offset(POP_LOG, 0)

    def entries(self, first: int) -> Iterator[tuple[int, Entry]]:
        """Yields the visible entries that can be decoded, with their offsets. Starts at the queue offset `first`."""
        for data in records_from(self._store, POP_LOG, 0, max(first, self._store.min_offset(POP_LOG, 0))):
            try:
                record = decode_record(data)
                yield record.queue_offset, _decode(record.body)
            except (CorruptRecord, msgspec.DecodeError):
                continue
