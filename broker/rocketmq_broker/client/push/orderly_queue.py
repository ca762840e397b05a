"""The waiting messages of one queue that is consumed in order."""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from rocketmq_broker.message import MessageExt


class OrderlyQueue:
    """Keeps the messages of one queue in order. At most one batch is being consumed (RocketMQ's ProcessQueue)."""

    def __init__(self) -> None:
        """Creates an empty queue."""
        self.is_busy = False
        """True while the listener consumes a batch or the queue is suspended."""
        self.idle = asyncio.Event()
        """An asyncio event that is set while the listener is not consuming a batch of this queue."""
        self.idle.set()
        self._waiting: deque[MessageExt] = deque()

    def add(self, messages: Iterable[MessageExt]) -> None:
        """Adds the messages after the waiting ones."""
        self._waiting.extend(messages)

    def take(self, count: int) -> list[MessageExt]:
        """Removes the next batch, and marks the queue as busy. Returns an empty batch if the queue is busy or empty."""
        if self.is_busy or not self._waiting:
            return []
        self.is_busy = True
        self.idle.clear()
        return [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]

    def put_back_uncounted(self, messages: list[MessageExt]) -> None:
        """Puts messages that were not consumed back at the front, without increasing their redelivery counts."""
        self._waiting.extendleft(reversed(messages))

    def put_back(self, messages: Iterable[MessageExt]) -> None:
        """Puts failed messages back at the front, and increases their redelivery counts by one."""
        self._waiting.extendleft(
            replace(message, reconsume_times=message.reconsume_times + 1) for message in reversed(list(messages))
        )


def split_at_first_postponed(
    messages: list[MessageExt], postponed: list[MessageExt]
) -> tuple[list[MessageExt], list[MessageExt]]:
    """Splits a batch at the first postponed message. To keep the order, all later messages must be delivered again too."""
    if not postponed:
        return messages, []
    first = postponed[0].queue_offset
    return [message for message in messages if message.queue_offset < first], [m for m in messages if m.queue_offset >= first]
