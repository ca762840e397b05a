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
    """The seconds since the oldest unacknowledged message last changed.

    For a queue without unacknowledged messages, the value is 0 while the broker answers, and otherwise the seconds since the last
    valid answer to a pull.
    """
