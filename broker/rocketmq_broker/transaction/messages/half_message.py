"""The half message: a message of an undecided transaction, stored in the half topic and invisible to consumers.

It is in queue 0 of RMQ_SYS_TRANS_HALF_TOPIC. Its properties REAL_TOPIC and REAL_QID contain the destination topic and queue id.
"""

from functools import lru_cache
from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import record, tags, topics
from rocketmq_broker.transaction.errors import NotAHalfMessage

HALF_TOPIC: Final = topics.HALF_TOPIC.encode()
DISCARD_TOPIC: Final = topics.CHECK_MAX_TIME_TOPIC.encode()

RESUMED_FROM: Final = "RESUMED_FROM"
"""A resumed message's property that contains the commit log offset of the discarded message. RocketMQ has no such property."""


class HalfMessage:
    """A half message, or the committed or discarded message made from it. Decodes properties only when needed."""

    __slots__ = (
        "_texts", "body", "body_crc", "born_host", "born_timestamp", "commit_log_offset", "flag", "prepared_transaction_offset",
        "properties", "queue_offset", "reconsume_times", "store_host", "store_timestamp", "sys_flag", "topic",
    )  # fmt: skip

    def __init__(
        self,
        topic: bytes,
        queue_offset: int,
        commit_log_offset: int,
        flag: int,
        sys_flag: int,
        born_timestamp: int,
        born_host: bytes,
        store_timestamp: int,
        store_host: bytes,
        reconsume_times: int,
        prepared_transaction_offset: int,
        body_crc: int,
        body: bytes,
        properties: bytes,
    ) -> None:
        self.topic = topic
        self.queue_offset = queue_offset
        self.commit_log_offset = commit_log_offset
        self.flag = flag
        self.sys_flag = sys_flag
        self.born_timestamp = born_timestamp
        self.born_host = born_host
        self.store_timestamp = store_timestamp
        self.store_host = store_host
        self.reconsume_times = reconsume_times
        self.prepared_transaction_offset = prepared_transaction_offset
        self.body_crc = body_crc
        self.body = body
        self.properties = properties
        self._texts: dict[str, str] | None = None

    def text(self, name: str) -> str | None:
        """Returns the value of one property, or None. The first call decodes all properties."""
        if self._texts is None:
            self._texts = props.decode(self.properties)
        return self._texts.get(name)

    def number(self, name: str) -> int | None:
        """Returns a property as a number, or None if it is missing or invalid."""
        return _number(self.text(name))

    @property
    def producer_group(self) -> str:
        """Returns the producer group, or an empty string if there is none."""
        return self.text(props.PRODUCER_GROUP) or ""

    @property
    def transaction_id(self) -> str | None:
        """Returns the producer's message id, which is also the transaction id, or None."""
        return self.text(props.UNIQUE_KEY)

    @property
    def keys(self) -> list[str]:
        """Returns the message's keys."""
        return (self.text(props.KEYS) or "").split()

    @property
    def check_times(self) -> int | None:
        """Returns the number of checks in the record, or None. The first half message of a transaction has no such number."""
        return self.number(props.TRANSACTION_CHECK_TIMES)

    @property
    def resumed_from(self) -> str | None:
        """Returns the commit log offset of the discarded message from which this message was resumed, or None."""
        return self.text(RESUMED_FROM)

    def destination(self) -> tuple[bytes, int]:
        """Returns the destination topic and queue id. Raises NotAHalfMessage if one is missing or invalid."""
        topic, queue_id = self.text(props.REAL_TOPIC), self.number(props.REAL_QUEUE_ID)
        if not topic or queue_id is None or not 0 <= queue_id < topics.MAX_QUEUES:
            raise NotAHalfMessage(f"half message at {self.commit_log_offset} has no valid destination topic and queue")
        if not topics.takes_transactions(topic):
            raise NotAHalfMessage(
                f"half message at {self.commit_log_offset} has topic {topic[:200]!r}, which does not accept transactions"
            )
        return topic.encode(), queue_id

    def tags_code(self) -> int:
        """Returns the hash code of the message's tag."""
        return tags_code(self.text(props.TAGS))


def read_half_message(data: bytes) -> HalfMessage:
    """Reads a half message or a discarded message. Raises CorruptRecord, or NotAHalfMessage for other topics."""
    half = read_any_message(data)
    if half.topic != HALF_TOPIC and half.topic != DISCARD_TOPIC:
        raise NotAHalfMessage(
            f"record at {half.commit_log_offset} is not a half message: topic {half.topic.decode(errors='replace')}"
        )
    return half


def read_any_message(data: bytes) -> HalfMessage:
    """Reads a record of any topic as a HalfMessage, for example a committed message. Raises CorruptRecord."""
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


def find_group(encoded: bytes) -> str:
    """Returns the producer group from encoded properties, or an empty string if there is none."""
    return props.find(encoded, props.PRODUCER_GROUP) or ""


@lru_cache(maxsize=1024)
def tags_code(tag: str | None) -> int:
    """Returns the hash code of a tag. The result is cached, because a topic has few tags."""
    return tags.tags_code(tag)


def find_number(encoded: bytes, name: str) -> int | None:
    """Returns a property from encoded properties as a number, or None if it is missing or invalid."""
    return _number(props.find(encoded, name))


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
