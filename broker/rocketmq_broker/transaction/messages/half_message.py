"""The half message: a message kept where no consumer sees it. Read from its record in one go, its properties left as bytes.

topic RMQ_SYS_TRANS_HALF_TOPIC, queue 0; the message's own topic and queue id in the properties REAL_TOPIC and REAL_QID
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import record, tags, topics
from rocketmq_broker.transaction.errors import NotAHalfMessage

HALF_TOPIC: Final = topics.HALF_TOPIC.encode()
DISCARD_TOPIC: Final = topics.CHECK_MAX_TIME_TOPIC.encode()

RESUMED_FROM: Final = "RESUMED_FROM"
"""The property of a resumed message that names the discarded one; RocketMQ has no such property."""


class HalfMessage(NamedTuple):
    """A half message, or a message made from one, as its record holds it."""

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
    body_crc: int
    body: bytes
    properties: bytes

    def text(self, name: str) -> str | None:
        """The value of one property, or None."""
        return _named(self.properties).get(name)

    def number(self, name: str) -> int | None:
        """The value of one property that is a number; None if it is missing or none."""
        return _number(self.text(name))

    @property
    def producer_group(self) -> str:
        """The group that decides; empty if the message does not say."""
        return self.text(props.PRODUCER_GROUP) or ""

    @property
    def transaction_id(self) -> str | None:
        """The id that the producer gave the message; it names the transaction, too."""
        return self.text(props.UNIQUE_KEY)

    @property
    def keys(self) -> list[str]:
        """The keys that the producer gave the message."""
        return (self.text(props.KEYS) or "").split()

    @property
    def check_times(self) -> int | None:
        """How often the transaction had been checked when the record was written; None in a first half message."""
        return self.number(props.TRANSACTION_CHECK_TIMES)

    @property
    def resumed_from(self) -> str | None:
        """The commit log offset of the discarded message that was resumed, if the transaction began so."""
        return self.text(RESUMED_FROM)

    def destination(self) -> tuple[bytes, int]:
        """The topic and queue id that the message is for. Raises NotAHalfMessage if they are missing or cannot be."""
        topic, queue_id = self.text(props.REAL_TOPIC), self.number(props.REAL_QUEUE_ID)
        if not topic or queue_id is None or not 0 <= queue_id < topics.MOST_QUEUES:
            raise NotAHalfMessage(f"the half message at {self.commit_log_offset} does not say which topic and queue it is for")
        if not topics.takes_transactions(topic):
            raise NotAHalfMessage(
                f"the half message at {self.commit_log_offset} is for {topic[:200]!r}, which takes no transactions"
            )
        return topic.encode(), queue_id

    def tags_code(self) -> int:
        """The hash of its tag."""
        return tags_code(self.text(props.TAGS))


def read_half_message(data: bytes) -> HalfMessage:
    """The half message, or discarded one, that a record holds. Raises CorruptRecord, or NotAHalfMessage for other topics."""
    half = _read(data)
    if half.topic != HALF_TOPIC and half.topic != DISCARD_TOPIC:
        raise NotAHalfMessage(f"the record at {half.commit_log_offset} is a message of {half.topic.decode(errors='replace')}")
    return half


def read_any_message(data: bytes) -> HalfMessage:
    """Reads a record of any topic in this form: a committed message, for example. Raises CorruptRecord."""
    return _read(data)


def find_group(encoded: bytes) -> str:
    """The producer group among the properties; empty if there is none."""
    return props.find(encoded, props.PRODUCER_GROUP) or ""


def find_tag(encoded: bytes) -> str | None:
    """The tag among the properties."""
    return props.find(encoded, props.TAGS)


@lru_cache(maxsize=1024)
def tags_code(tag: str | None) -> int:
    """The hash of a tag. It is cached, because a topic has few tags."""
    return tags.tags_code(tag)


def find_number(encoded: bytes, name: str) -> int | None:
    """A property that is a number; None if it is missing or none."""
    return _number(props.find(encoded, name))


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


@lru_cache(maxsize=4)
def _named(encoded: bytes) -> Mapping[str, str]:
    """All properties of a half message. Recovery asks each half message for a dozen of them, one half message after the other."""
    return props.decode(encoded)


def _read(data: bytes) -> HalfMessage:
    head, body_at, topic_at, properties_at = record.read_fields(data)
    (
        size, _, crc, _, flag, queue_offset, commit_log_offset, sys_flag, born_timestamp, born_host,
        store_timestamp, store_host, reconsume_times, prepared_transaction_offset, body_length,
    ) = head  # fmt: skip
    return HalfMessage(
        data[topic_at : properties_at - 2],
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
        data[body_at : body_at + body_length],
        data[properties_at:size],
    )
