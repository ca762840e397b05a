"""Headers of the operators' requests that this project adds for parked messages (dead letters and discarded messages)."""

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class ListMarksRequestHeader(CommandHeader):
    """The header of LIST_MARKS, which lists operators' actions on parked messages.

    The request lists the latest action on each message in a range of a queue. With `history`, it lists all actions on one
    message.
    """

    topic: str
    queue_id: Int32
    queue_offset: Int64
    count: Int32 = 1
    history: bool = False


class RetryDeadLetterRequestHeader(CommandHeader):
    """The header of RETRY_DEAD_LETTER, which delivers the dead letter at a commit log offset to its consumer group again."""

    offset: Int64
    again: bool = False
    """True to retry a dead letter that was already retried or dismissed."""
    reason: str = ""


class DismissDeadLetterRequestHeader(CommandHeader):
    """The header of DISMISS_DEAD_LETTER.

    The request marks the dead letter at a commit log offset as handled, with a reason.
    """

    offset: Int64
    reason: str
