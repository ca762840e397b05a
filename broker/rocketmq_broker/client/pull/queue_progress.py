"""The progress of a consumer's queues, for health checks."""

from __future__ import annotations

from dataclasses import dataclass

from rocketmq_broker.message import MessageQueue


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """The progress of one queue of a push consumer."""

    queue: MessageQueue
    unacknowledged: int
    """The number of messages that were pulled but not yet acknowledged."""
    stands_still_s: float
    """The seconds since the oldest unacknowledged message last changed, or since the last valid answer to a pull.

    The value is 0 for a queue without unacknowledged messages while the broker answers.
    """
