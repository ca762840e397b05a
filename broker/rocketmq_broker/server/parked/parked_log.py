"""Formats the log line of each parked message, with the command that retries or resumes it."""

from __future__ import annotations

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record
from rocketmq_broker.message.text.printable import printable


def parked_line(record: Record) -> str:
    """Returns the log line for a newly parked message."""
    topic = record.topic.decode(errors="replace")
    message_id = offset_message_id(record.store_host, record.commit_log_offset)
    if topic.startswith(topics.DEAD_LETTER_PREFIX):
        return _dead_letter_line(record, topic.removeprefix(topics.DEAD_LETTER_PREFIX), message_id)
    return _discarded_line(record, message_id)


def waiting_line(discarded: int, dead_letters: int) -> str:
    """Returns the log line for the parked messages found at startup."""
    return (
        f"parked messages: {discarded} discarded, {dead_letters} dead letters. "
        "To list them: python -m rocketmq_broker.admin discarded; python -m rocketmq_broker.admin dead-letters list"
    )


def _dead_letter_line(record: Record, group: str, message_id: str) -> str:
    return (
        f"dead letter: message {_property(record, props.UNIQUE_KEY)} of topic {_property(record, props.RETRY_TOPIC)}, "
        f"keys {_property(record, props.KEYS)}, consumer group {printable(group)}, redeliveries {record.reconsume_times}. "
        f"To retry it after the group is fixed: python -m rocketmq_broker.admin dead-letters retry {message_id}"
    )


def _discarded_line(record: Record, message_id: str) -> str:
    return (
        f"discarded: transaction {_property(record, props.UNIQUE_KEY)}, its message for topic "
        f"{_property(record, props.REAL_TOPIC)}, keys {_property(record, props.KEYS)}, "
        f"producer group {_property(record, props.PRODUCER_GROUP)}, "
        f"checks {_property(record, props.TRANSACTION_CHECK_TIMES)}. "
        f"To check it again after the producer is fixed: python -m rocketmq_broker.admin resume {message_id}"
    )


def _property(record: Record, name: str) -> str:
    return printable(record.get_property(name) or "(none)")
