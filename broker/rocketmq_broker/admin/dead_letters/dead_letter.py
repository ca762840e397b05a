"""A dead letter and its treatment, as the commands print them."""

import msgspec

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.dead_letters import group_of, retries_of
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record


class Treated(msgspec.Struct, frozen=True, rename="camel"):
    """A treatment of a dead letter by an operator."""

    treatment: str
    """`retried` or `dismissed`."""
    at_ms: int | None = None
    by: str | None = None
    reason: str = ""
    retries: int = 0


class DeadLetter(msgspec.Struct, frozen=True, rename="camel"):
    """A message that a consumer group failed to consume in all its attempts."""

    offset_message_id: str
    """The id derived from the message's position. Operators use it to refer to the dead letter."""
    message_id: str
    """The unique id assigned by the producer. It does not change when the message is redelivered."""
    consumer_group: str
    topic: str
    """The topic to which the message was originally sent; empty if the topic is not recorded."""
    keys: list[str]
    tags: str | None
    redeliveries: int
    retries: int
    """The number of retries before the message became a dead letter."""
    body_size: int
    born_ms: int
    parked_ms: int
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    treatment: Treated | None = None
    """The last treatment; None if there is none."""


def read_dead_letter(record: Record) -> DeadLetter:
    """Decodes a record of a dead-letter topic."""
    place = offset_message_id(record.store_host, record.commit_log_offset)
    return DeadLetter(
        offset_message_id=place,
        message_id=record.get_property(props.UNIQUE_KEY) or place,
        consumer_group=group_of(record) or "",
        topic=record.get_property(props.RETRY_TOPIC) or "",
        keys=(record.get_property(props.KEYS) or "").split(),
        tags=record.get_property(props.TAGS),
        redeliveries=record.reconsume_times,
        retries=retries_of(record),
        body_size=len(record.body),
        born_ms=record.born_timestamp,
        parked_ms=record.store_timestamp,
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        commit_log_offset=record.commit_log_offset,
    )
