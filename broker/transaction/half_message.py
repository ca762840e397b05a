"""A record of the half topic or the discard topic as transactions see it: read in one go, its properties left as bytes."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from broker.message import properties as props
from broker.message import record, sysflag, tags, topics
from broker.message.errors import CorruptRecord
from broker.message.record import HEAD_V4
from broker.transaction.errors import NotAHalfMessage

HALF_TOPIC: Final = topics.HALF_TOPIC.encode()
DISCARD_TOPIC: Final = topics.CHECK_MAX_TIME_TOPIC.encode()

RESUMED_FROM: Final = "RESUMED_FROM"
"""A property of ours in a resumed message."""

_UINT16 = struct.Struct(">H")


class HalfMessage(NamedTuple):
    """A record of the half topic, or of the discard topic, its strings left as bytes."""

    topic: bytes
    queue_offset: int
    commit_log_offset: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    crc: int
    body: bytes
    properties: bytes

    @property
    def producer_group(self) -> str:
        """The group that decides; empty if the message does not say."""
        return find_group(self.properties)

    @property
    def transaction_id(self) -> str | None:
        """The producer's id of the message, which is its transaction's as well."""
        return props.find(self.properties, props.UNIQUE_KEY)

    @property
    def check_times(self) -> int | None:
        """How often it had been checked when it was written; None if it was never rewritten or resumed."""
        return find_number(self.properties, props.TRANSACTION_CHECK_TIMES)

    @property
    def first_queue_offset(self) -> int | None:
        """Of a copy: the half queue offset of the first one, where the copy tells."""
        return find_number(self.properties, props.TRANSACTION_PREPARED_QUEUE_OFFSET)

    @property
    def first_commit_log_offset(self) -> int | None:
        """Of a copy of ours: the commit log offset of the first one."""
        return max(self.prepared_transaction_offset, 0) if self.prepared_transaction_offset else None

    @property
    def resumed_from(self) -> str | None:
        """The commit log offset of the discarded message that this one was made from, or its half message was."""
        return props.find(self.properties, RESUMED_FROM)

    @property
    def origin(self) -> tuple[str | None, str, int, bytes]:
        """Which message it was that a producer sent. One that sends the same message twice changes the born timestamp.

        The host is what the broker saw: nobody else can send a message that looks the same.
        """
        return self.transaction_id, self.producer_group, self.born_timestamp, self.born_host

    @property
    def identity(self) -> tuple[str | None, str, int, bytes, str | None]:
        """What copies of one half message share, and the messages made from it."""
        return (*self.origin, self.resumed_from)

    def destination(self) -> tuple[bytes, int]:
        """The message's own topic and queue id. Raises NotAHalfMessage if it does not say, or names what cannot be."""
        topic = props.find(self.properties, props.REAL_TOPIC)
        queue_id = find_number(self.properties, props.REAL_QUEUE_ID)
        if not topic or queue_id is None or not 0 <= queue_id < topics.MOST_QUEUES:
            raise NotAHalfMessage(f"the half message at {self.commit_log_offset} does not say which topic and queue it is for")
        if not topics.takes_transactions(topic):
            raise NotAHalfMessage(
                f"the half message at {self.commit_log_offset} is for {topic[:200]!r}, which takes no transactions"
            )
        return topic.encode(), queue_id

    def tags_code(self) -> int:
        """The hash of its tag."""
        return tags_code(find_tag(self.properties))


def read_half_message(data: bytes) -> HalfMessage:
    """The half message, or discarded one, that a record holds. Raises CorruptRecord, or NotAHalfMessage for other topics."""
    half = _read(data)
    if half.topic != HALF_TOPIC and half.topic != DISCARD_TOPIC:
        raise NotAHalfMessage(f"the record at {half.commit_log_offset} is a message of {half.topic.decode(errors='replace')}")
    return half


def read_any_message(data: bytes) -> HalfMessage:
    """The same of a record of any topic: of a committed message, for one. Raises CorruptRecord."""
    return _read(data)


def find_group(encoded: bytes) -> str:
    """The producer group among the properties; empty if there is none."""
    return props.find(encoded, props.PRODUCER_GROUP) or ""


def find_tag(encoded: bytes) -> str | None:
    """The tag among the properties."""
    return props.find(encoded, props.TAGS)


@lru_cache(maxsize=1024)
def tags_code(tag: str | None) -> int:
    """The hash of a tag, remembered: a topic has few tags."""
    return tags.tags_code(tag)


def find_number(encoded: bytes, name: str) -> int | None:
    """A property that is a number; None if it is missing or none."""
    text = props.find(encoded, name)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def _read(data: bytes) -> HalfMessage:
    try:
        (
            size, magic, crc, _, flag, queue_offset, commit_log_offset, sys_flag, born_timestamp, born_host,
            store_timestamp, store_host, reconsume_times, prepared_transaction_offset, body_length,
        ) = HEAD_V4.unpack_from(data)  # fmt: skip
        if sys_flag & sysflag.HOSTS_V6:
            return _from_record(record.decode_record(data))
        body_end = HEAD_V4.size + body_length
        topic_end = body_end + 1 + data[body_end]
        (properties_length,) = _UINT16.unpack_from(data, topic_end)
    except (struct.error, IndexError) as error:
        raise CorruptRecord(f"no whole record: {error}") from None
    if magic != record.MESSAGE_MAGIC or size > len(data) or topic_end + 2 + properties_length != size or body_length < 0:
        raise CorruptRecord("no whole record: its parts do not add up")
    return HalfMessage(
        data[body_end + 1 : topic_end],
        queue_offset,
        commit_log_offset,
        flag,
        sys_flag,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        crc,
        data[HEAD_V4.size : body_end],
        data[topic_end + 2 : size],
    )


def _from_record(decoded: record.Record) -> HalfMessage:
    return HalfMessage(
        decoded.topic,
        decoded.queue_offset,
        decoded.commit_log_offset,
        decoded.flag,
        decoded.sys_flag,
        decoded.born_timestamp,
        decoded.born_host,
        decoded.store_timestamp,
        decoded.store_host,
        decoded.reconsume_times,
        decoded.prepared_transaction_offset,
        decoded.body_crc,
        decoded.body,
        decoded.properties,
    )
