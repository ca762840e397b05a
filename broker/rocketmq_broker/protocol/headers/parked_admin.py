"""What operators ask about parked messages (dead letters and discarded ones), and do about them: requests of our own."""

from rocketmq_broker.message.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class ListMarksRequestHeader(CommandHeader):
    """LIST_MARKS: what was done last about each message of a part of a queue, or all that was done about its first message."""

    topic: str
    queue_id: Int32
    queue_offset: Int64
    count: Int32 = 1
    history: bool = False


class RetryDeadLetterRequestHeader(CommandHeader):
    """RETRY_DEAD_LETTER: delivers the dead letter at that commit log offset to its consumer group once more."""

    offset: Int64
    again: bool = False
    """Though it was treated already."""
    reason: str = ""


class DismissDeadLetterRequestHeader(CommandHeader):
    """DISMISS_DEAD_LETTER: the dead letter at that commit log offset needs no attention any more, and why."""

    offset: Int64
    reason: str
