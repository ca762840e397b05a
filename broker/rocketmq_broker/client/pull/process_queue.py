"""One queue during consumption: its pulled messages, its unacknowledged ones, and the offset that may be committed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from rocketmq_broker.client.pull.queue_progress import QueueProgress
from rocketmq_broker.client.pull.withdrawal import Withdrawal
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.world import World

_PULL_TAKES_AT_MOST_S: Final = 30.0
"""Time for which a broker may hold a pull, with the grace for its answer."""


class ProcessQueue:
    """The messages of one queue between pull and acknowledgement (RocketMQ's ProcessQueue).

    The committable offset is that of the oldest unacknowledged message, so a crash redelivers and never skips. It belongs to the
    event loop and is not thread-safe, except `withdrawn`, for which listeners wait in their threads.
    """

    def __init__(self, queue: MessageQueue, begin_offset: int, world: World) -> None:
        """Starts at `begin_offset`."""
        self.now_s = world.steady_s
        """The clock of this queue's times; any thread may call it."""
        self._oldest_since_s = self.begun_s = self.pulled_s = self.acknowledged_s = self.now_s()
        self.queue = queue
        self.next_offset = begin_offset
        """The offset of the next pull: all messages before it were pulled or filtered out."""
        self.is_dropped = False
        """Whether another consumer has the queue now, so that results for it no longer count."""
        self.withdrawn = Withdrawal(world.watch)
        """Set when listeners must soon let go of the queue's messages; their answers count until the queue is dropped."""
        self.message_bytes = 0
        self._unacknowledged: dict[int, MessageExt] = {}
        self._order: deque[int] = deque()

    @property
    def message_count(self) -> int:
        """Returns the number of unacknowledged messages."""
        return len(self._unacknowledged)

    @property
    def committable_offset(self) -> int:
        """Returns the offset at which a successor must continue."""
        return self._order[0] if self._order else self.next_offset

    @property
    def cached_offsets(self) -> tuple[int, int] | None:
        """Returns the first and the last queue offset of the unacknowledged messages; None if there are none."""
        return (self._order[0], self._order[-1]) if self._order else None

    @property
    def span(self) -> int:
        """Returns the distance between the newest and the oldest unacknowledged message."""
        return self._order[-1] - self._order[0] if self._order else 0

    def put(self, messages: Iterable[MessageExt], next_offset: int) -> list[MessageExt]:
        """Adds the messages of one pull. Returns those that are new.

        Messages before the present `next_offset` are repetitions and skipped.
        """
        fresh = []
        self.pulled_s = self.now_s()
        if not self._order:
            self._oldest_since_s = self.pulled_s
        for message in messages:
            offset = message.queue_offset
            if offset >= self.next_offset and offset not in self._unacknowledged:
                self._unacknowledged[offset] = message
                self._order.append(offset)
                self.message_bytes += len(message.body)
                fresh.append(message)
        self.next_offset = max(next_offset, self._order[-1] + 1 if self._order else next_offset)
        return fresh

    def acknowledge(self, queue_offsets: Iterable[int]) -> None:
        """Removes messages that were consumed, or safely returned to the broker."""
        unacknowledged = self._unacknowledged
        for offset in queue_offsets:
            message = unacknowledged.pop(offset, None)
            if message is not None:
                self.message_bytes -= len(message.body)
        order = self._order
        oldest = self.committable_offset
        while order and order[0] not in unacknowledged:
            order.popleft()
        self.acknowledged_s = self.now_s()
        if self.committable_offset != oldest:
            self._oldest_since_s = self.acknowledged_s

    @property
    def progress(self) -> QueueProgress:
        """Returns the queue's progress. A broker may hold a pull for half a minute: silence counts after that."""
        now_s = self.now_s()
        stands_still_s = now_s - self._oldest_since_s if self._order else 0.0
        silent_s = now_s - self.pulled_s
        if not self._order and silent_s > _PULL_TAKES_AT_MOST_S:
            stands_still_s = silent_s
        return QueueProgress(self.queue, len(self._unacknowledged), stands_still_s)

    def withdraw(self) -> None:
        """Asks listeners to let go of messages that they only hold."""
        self.withdrawn.set()

    def drop(self) -> None:
        """Marks that another consumer has the queue now."""
        self.is_dropped = True
        self.withdrawn.set()

    def is_full(self, *, max_count: int, max_bytes: int, max_span: int | None) -> bool:
        """Returns whether pulling must wait until listeners catch up."""
        return self.message_count > max_count or self.message_bytes > max_bytes or (max_span is not None and self.span > max_span)
