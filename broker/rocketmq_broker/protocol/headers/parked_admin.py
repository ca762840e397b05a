"""Headers about parked messages (dead letters and discarded ones): operators' requests that are not RocketMQ's."""

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class ListMarksRequestHeader(CommandHeader):
    """LIST_MARKS: the last treatment of each message in a part of a queue, or all treatments of its first message."""

    topic: str
    queue_id: Int32
    queue_offset: Int64
    count: Int32 = 1
    history: bool = False


class RetryDeadLetterRequestHeader(CommandHeader):
    """RETRY_DEAD_LETTER: delivers the dead letter at that commit log offset to its consumer group once more."""

    offset: Int64
    again: bool = False
    """Retry a dead letter that was already treated."""
    reason: str = ""


class DismissDeadLetterRequestHeader(CommandHeader):
    """DISMISS_DEAD_LETTER: no one need look at the dead letter at that commit log offset, for the reason given."""

    offset: Int64
    reason: str
