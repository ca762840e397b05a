"""One queue that is being consumed: what was pulled, what is not acknowledged yet, and the offset that may be committed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from rocketmq_broker.client.pull.queue_progress import QueueProgress
from rocketmq_broker.client.pull.withdrawal import Withdrawal
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.world import World

_PULL_TAKES_AT_MOST_S: Final = 30.0
"""What a broker may hold a pull back, and the grace for its answer."""


class ProcessQueue:
    """The messages of one queue between pull and acknowledgement (RocketMQ's ProcessQueue).

    The committable offset is that of the oldest message not acknowledged, so a crash redelivers and never skips. Belongs to the
    event loop: not safe for several threads, but for `withdrawn`, which listeners wait for in threads of their own.
    """

    def __init__(self, queue: MessageQueue, begin_offset: int, world: World) -> None:
        """Consumption begins at `begin_offset`."""
        self.now_s = world.steady_s
        """The clock by which the times of this queue are; any thread may ask it."""
        self._oldest_since_s = self.begun_s = self.pulled_s = self.acknowledged_s = self.now_s()
        self.queue = queue
        self.next_offset = begin_offset
        """The offset to pull next: everything before it was pulled or filtered out."""
        self.is_dropped = False
        """Whether the queue now belongs to somebody else: results for it no longer count."""
        self.withdrawn = Withdrawal(world.watch)
        """Set once listeners have to let go of the queue's messages soon; what they answer still counts until it is dropped."""
        self.message_bytes = 0
        self._unacknowledged: dict[int, MessageExt] = {}
        self._order: deque[int] = deque()

    @property
    def message_count(self) -> int:
        """How many messages are not acknowledged."""
        return len(self._unacknowledged)

    @property
    def committable_offset(self) -> int:
        """The offset from which a successor has to go on."""
        return self._order[0] if self._order else self.next_offset

    @property
    def cached_offsets(self) -> tuple[int, int] | None:
        """The first and the last queue offset of the messages that are not acknowledged; None if there are none."""
        return (self._order[0], self._order[-1]) if self._order else None

    @property
    def span(self) -> int:
        """How far the newest unacknowledged message is ahead of the oldest."""
        return self._order[-1] - self._order[0] if self._order else 0

    def put(self, messages: Iterable[MessageExt], next_offset: int) -> list[MessageExt]:
        """Take in what one pull brought; returns the messages that are new.

        What lies before the present `next_offset` is a repetition and passed over.
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
        """These messages are done with: consumed, or safely handed back to the broker."""
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
        """Whether the queue moves. A broker may hold a pull back for half a minute: silence counts from then on."""
        now_s = self.now_s()
        stands_still_s = now_s - self._oldest_since_s if self._order else 0.0
        silent_s = now_s - self.pulled_s
        if not self._order and silent_s > _PULL_TAKES_AT_MOST_S:
            stands_still_s = silent_s
        return QueueProgress(self.queue, len(self._unacknowledged), stands_still_s)

    def withdraw(self) -> None:
        """Ask listeners to let go of messages that they only hold."""
        self.withdrawn.set()

    def drop(self) -> None:
        """The queue belongs to somebody else from now on."""
        self.is_dropped = True
        self.withdrawn.set()

    def is_full(self, *, max_count: int, max_bytes: int, max_span: int | None) -> bool:
        """Whether pulling has to wait until listeners catch up."""
        return self.message_count > max_count or self.message_bytes > max_bytes or (max_span is not None and self.span > max_span)
