"""A dead letter: a message that a consumer group gave up, in `%DLQ%group`, and the properties with which it is tried anew.

RocketMQ's tools send a dead letter to one chosen client (CONSUME_MESSAGE_DIRECTLY) or back into the dead-letter topic
(`queryMsgById -s`). Here it goes to the group's retry topic, as a message of its first attempt: no other group gets it, and a
further failure is redelivered as usual.
"""

from __future__ import annotations

from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.record import Record

RETRIES: Final = "DEAD_LETTER_RETRIES"
"""A property of ours: how often the message was taken out of the dead letters and tried anew."""


def group_of(record: Record) -> str | None:
    """The consumer group whose dead letter the record is; None if it is none."""
    topic = record.topic.decode(errors="replace")
    return topic.removeprefix(topics.DEAD_LETTER_PREFIX) if topic.startswith(topics.DEAD_LETTER_PREFIX) else None


def retries_of(record: Record) -> int:
    """How often it had been tried anew when it was parked."""
    text = record.get_property(RETRIES) or ""
    return int(text) if text.isascii() and text.isdigit() else 0


def retried_properties(record: Record, retries: int) -> bytes:
    """The properties of the message that is tried anew: all that the dead letter has, but not how often it was redelivered."""
    kept = props.remove(record.properties, (props.RECONSUME_TIME, props.DELAY_TIME_LEVEL))
    longer = props.put(kept, RETRIES, str(retries))
    return longer if len(longer) <= props.MAX_PROPERTIES_LENGTH else kept
