"""One queue whose messages are consumed in order: what waits, what a listener has in hand."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from rocketmq_broker.message import MessageExt


class OrderlyQueue:
    """The messages of one queue in their order; at most one batch is in hand (RocketMQ's ProcessQueue, its orderly half)."""

    def __init__(self) -> None:
        """Nothing waits."""
        self.is_busy = False
        """Whether a batch is in hand, or the queue is suspended."""
        self.put_down = asyncio.Event()
        """Set while no listener has a batch in hand."""
        self.put_down.set()
        self._waiting: deque[MessageExt] = deque()

    def add(self, messages: Iterable[MessageExt]) -> None:
        """These come after what waits already."""
        self._waiting.extend(messages)

    def take(self, count: int) -> list[MessageExt]:
        """The next batch, now in hand; empty if one is in hand already or nothing waits."""
        if self.is_busy or not self._waiting:
            return []
        self.is_busy = True
        self.put_down.clear()
        return [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]

    def put_back_untouched(self, messages: list[MessageExt]) -> None:
        """No listener had these: they come first again."""
        self._waiting.extendleft(reversed(messages))

    def put_back(self, messages: Iterable[MessageExt]) -> None:
        """These failed: they come first again, each with one attempt more on its account."""
        self._waiting.extendleft(
            replace(message, reconsume_times=message.reconsume_times + 1) for message in reversed(list(messages))
        )


def split_at_first_postponed(
    messages: list[MessageExt], postponed: list[MessageExt]
) -> tuple[list[MessageExt], list[MessageExt]]:
    """In order, what follows a message that has to come again has to come again as well."""
    if not postponed:
        return messages, []
    first = postponed[0].queue_offset
    return [message for message in messages if message.queue_offset < first], [m for m in messages if m.queue_offset >= first]
