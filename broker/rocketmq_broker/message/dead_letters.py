"""Dead letters, which are messages in `%DLQ%group` that failed too often, and the properties with which they are retried.

RocketMQ's tools send a dead letter to one chosen client (CONSUME_MESSAGE_DIRECTLY) or back to the dead-letter topic
(`queryMsgById -s`). This project's tools send it to the group's retry topic, where it counts as a first attempt. No other
group receives the message, and it is redelivered as usual if it fails again.
"""

from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record

RETRIES: Final = "DEAD_LETTER_RETRIES"
"""The property with the number of times that a message was retried as a dead letter. RocketMQ has no such property."""


def group_of(record: Record) -> str | None:
    """Returns the consumer group of a dead letter, or None if the record is not a dead letter."""
    topic = record.topic.decode(errors="replace")
    return topic.removeprefix(topics.DEAD_LETTER_PREFIX) if topic.startswith(topics.DEAD_LETTER_PREFIX) else None


def retries_of(record: Record) -> int:
    """Returns the number of times that the message was retried as a dead letter before it became this dead letter."""
    text = record.get_property(RETRIES) or ""
    return int(text) if text.isascii() and text.isdigit() else 0


def retried_properties(record: Record, retries: int) -> bytes:
    """Returns the properties with which a dead letter is retried, without its redelivery count and delay level."""
    kept = props.remove(record.properties, (props.RECONSUME_TIME, props.DELAY_TIME_LEVEL))
    return props.put_if_it_fits(kept, RETRIES, str(retries))


def with_origin(record: Record) -> bytes:
    """Returns the record's properties, with the topic and the offset message id of the first attempt added.

    A redelivered message keeps both properties until it becomes a dead letter. A property that does not fit is omitted.
    """
    encoded = record.properties
    if props.find(encoded, props.RETRY_TOPIC) is None:
        encoded = props.put_if_it_fits(encoded, props.RETRY_TOPIC, record.topic.decode())
    if not (props.find(encoded, props.ORIGIN_MESSAGE_ID) or "").strip():
        first_id = offset_message_id(record.store_host, record.commit_log_offset)
        encoded = props.put_if_it_fits(encoded, props.ORIGIN_MESSAGE_ID, first_id)
    return encoded
