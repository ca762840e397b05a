"""The progress of a consumer's queues, for supervision."""

from __future__ import annotations

from dataclasses import dataclass

from rocketmq_broker.message import MessageQueue


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """The progress of one queue of a push consumer."""

    queue: MessageQueue
    unacknowledged: int
    """Messages that were pulled and that no listener has answered for."""
    stands_still_s: float
    """Seconds for which its oldest unacknowledged message has been the same, or for which no pull had a usable answer.

    0 while neither is the case: a queue without messages moves as long as the broker answers.
    """
