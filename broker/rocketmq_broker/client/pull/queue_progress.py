"""Whether the queues of a consumer move, for those who watch over it."""

from __future__ import annotations

from dataclasses import dataclass

from rocketmq_broker.message import MessageQueue


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """How one queue of a push consumer gets on."""

    queue: MessageQueue
    unacknowledged: int
    """Messages that were pulled, and that no listener has answered for yet."""
    stands_still_s: float
    """For how long its oldest unacknowledged message has been the same, or for how long no pull was answered with sense.

    0 while neither is the case: a queue without messages moves as long as the broker answers.
    """
