"""A dead letter, a message in `%DLQ%group` that its consumer group gave up, and the properties with which it is retried.

RocketMQ's tools send a dead letter to one chosen client (CONSUME_MESSAGE_DIRECTLY) or back into the dead-letter topic
(`queryMsgById -s`). Here it goes to the group's retry topic, as a message of its first attempt: no other group gets it, and a
further failure is redelivered as usual.
"""

from __future__ import annotations

from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record

RETRIES: Final = "DEAD_LETTER_RETRIES"
"""A property that is not RocketMQ's: how often the message was retried from the dead letters."""


def group_of(record: Record) -> str | None:
    """Returns the consumer group of a dead letter; None if the record is none."""
    topic = record.topic.decode(errors="replace")
    return topic.removeprefix(topics.DEAD_LETTER_PREFIX) if topic.startswith(topics.DEAD_LETTER_PREFIX) else None


def retries_of(record: Record) -> int:
    """Returns how often the dead letter had been retried when it was parked."""
    text = record.get_property(RETRIES) or ""
    return int(text) if text.isascii() and text.isdigit() else 0


def retried_properties(record: Record, retries: int) -> bytes:
    """Returns the dead letter's properties for its retry, without those that count its redeliveries."""
    kept = props.remove(record.properties, (props.RECONSUME_TIME, props.DELAY_TIME_LEVEL))
    return props.put_if_it_fits(kept, RETRIES, str(retries))


def with_origin(record: Record) -> bytes:
    """Returns the properties of a message that is stored for another attempt, with the topic and offset message id of the first.

    Messages keep both to their dead-letter topic. A message whose properties have no room for one goes without it.
    """
    encoded = record.properties
    if props.find(encoded, props.RETRY_TOPIC) is None:
        encoded = props.put_if_it_fits(encoded, props.RETRY_TOPIC, record.topic.decode())
    if not (props.find(encoded, props.ORIGIN_MESSAGE_ID) or "").strip():
        first_id = offset_message_id(record.store_host, record.commit_log_offset)
        encoded = props.put_if_it_fits(encoded, props.ORIGIN_MESSAGE_ID, first_id)
    return encoded
