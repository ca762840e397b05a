"""Selects the queue of a message: round robin, avoiding failed brokers (RocketMQ's TopicPublishInfo, MQFaultStrategy)."""

from collections.abc import Collection, Sequence

from rocketmq_broker.message import MessageQueue

AVOIDED_FOR_MS = 30_000


class QueueSelector:
    """Selects queues round robin. A failed broker is avoided for 30 s if there is another broker."""

    def __init__(self, start: int = 0) -> None:
        """`start` is the start position in the round robin.

        It should be random, so that clients do not all start with the same queue.
        """
        self._turn = start
        self._avoided_until_ms: dict[str, int] = {}

    def select(self, queues: Sequence[MessageQueue], now_ms: int, failed_brokers: Collection[str] = ()) -> MessageQueue:
        """Returns the next queue. `failed_brokers` have already failed for this message. `queues` must not be empty."""
        for _ in range(len(queues)):
            queue = self._next(queues)
            if queue.broker_name not in failed_brokers and now_ms >= self._avoided_until_ms.get(queue.broker_name, 0):
                return queue
        for _ in range(len(queues)):
            queue = self._next(queues)
            if queue.broker_name not in failed_brokers:
                return queue
        return self._next(queues)

    def broker_failed(self, broker_name: str, now_ms: int) -> None:
        """Avoids the broker for the next 30 s."""
        self._avoided_until_ms[broker_name] = now_ms + AVOIDED_FOR_MS

    def broker_answered(self, broker_name: str) -> None:
        """Stops avoiding the broker."""
        self._avoided_until_ms.pop(broker_name, None)

    def _next(self, queues: Sequence[MessageQueue]) -> MessageQueue:
        self._turn += 1
        return queues[self._turn % len(queues)]
