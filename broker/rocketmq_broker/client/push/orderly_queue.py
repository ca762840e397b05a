"""One queue whose messages are consumed in order: its waiting messages, and the batch of a listener."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from rocketmq_broker.message import MessageExt


class OrderlyQueue:
    """The messages of one queue in order; a listener has at most one batch (RocketMQ's ProcessQueue, its orderly half)."""

    def __init__(self) -> None:
        """Begins empty."""
        self.is_busy = False
        """Whether a listener has a batch, or the queue is suspended."""
        self.put_down = asyncio.Event()
        """Set while no listener has a batch."""
        self.put_down.set()
        self._waiting: deque[MessageExt] = deque()

    def add(self, messages: Iterable[MessageExt]) -> None:
        """Adds messages after the waiting ones."""
        self._waiting.extend(messages)

    def take(self, count: int) -> list[MessageExt]:
        """Returns the next batch; empty if a listener has one or no message waits."""
        if self.is_busy or not self._waiting:
            return []
        self.is_busy = True
        self.put_down.clear()
        return [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]

    def put_back_untouched(self, messages: list[MessageExt]) -> None:
        """Puts back messages that no listener got: they come first again."""
        self._waiting.extendleft(reversed(messages))

    def put_back(self, messages: Iterable[MessageExt]) -> None:
        """Puts back failed messages: they come first again, each with one more redelivery counted."""
        self._waiting.extendleft(
            replace(message, reconsume_times=message.reconsume_times + 1) for message in reversed(list(messages))
        )


def split_at_first_postponed(
    messages: list[MessageExt], postponed: list[MessageExt]
) -> tuple[list[MessageExt], list[MessageExt]]:
    """Splits at the first message that comes again: in order, all messages after it come again too."""
    if not postponed:
        return messages, []
    first = postponed[0].queue_offset
    return [message for message in messages if message.queue_offset < first], [m for m in messages if m.queue_offset >= first]
