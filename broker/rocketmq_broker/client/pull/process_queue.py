"""The state of a queue during consumption: the unacknowledged messages and the committable offset."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.client.pull.withdrawal import Withdrawal
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.world import World

_PULL_TAKES_AT_MOST_S: Final = 30.0
"""The maximum seconds between a pull request and its answer. A broker may hold a pull until a message arrives."""


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


class ProcessQueue:
    """The messages of one queue between pull and acknowledgement (RocketMQ's ProcessQueue).

    The committable offset is the offset of the oldest unacknowledged message. Therefore, no message is skipped after a crash.
    Use this object on the event loop only. Only `withdrawn` may be used in other threads, where listeners wait for it.
    """

    def __init__(self, queue: MessageQueue, begin_offset: int, world: World) -> None:
        """Creates the state of a queue that is consumed from `begin_offset`."""
        self.now_s = world.steady_s
        """A function that returns the steady clock's seconds. Any thread may call the function."""
        self._oldest_since_s = self.begun_s = self.pulled_s = self.acknowledged_s = self.now_s()
        self.queue = queue
        self.next_offset = begin_offset
        """The offset of the next pull. All messages before it were pulled or filtered out."""
        self.is_dropped = False
        """True if this consumer no longer owns the queue. The results of its messages are then ignored."""
        self.withdrawn = Withdrawal(world.watch)
        """An event that is set when listeners must stop handling the queue's messages. Their results count until `drop`."""
        self.message_bytes = 0
        self._unacknowledged: dict[int, MessageExt] = {}
        self._order: deque[int] = deque()

    @property
    def message_count(self) -> int:
        """Returns the number of unacknowledged messages."""
        return len(self._unacknowledged)

    @property
    def committable_offset(self) -> int:
        """Returns the offset at which the queue's next owner must continue."""
        return self._order[0] if self._order else self.next_offset

    @property
    def cached_offsets(self) -> tuple[int, int] | None:
        """Returns the first and the last queue offset of the unacknowledged messages, or None."""
        return (self._order[0], self._order[-1]) if self._order else None

    @property
    def span(self) -> int:
        """Returns the offset difference between the newest and the oldest unacknowledged message."""
        return self._order[-1] - self._order[0] if self._order else 0

    def put(self, messages: Iterable[MessageExt], next_offset: int) -> list[MessageExt]:
        """Adds the messages of one pull. Returns the messages that are new.

        Messages before the current `next_offset` are repetitions, and are skipped.
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
        """Removes messages that were consumed or stored again by the broker."""
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
        """Returns the queue's progress.

        A queue without unacknowledged messages counts as stalled after 30 s without a response to a pull, because brokers may
        hold pulls.
        """
        now_s = self.now_s()
        stands_still_s = now_s - self._oldest_since_s if self._order else 0.0
        silent_s = now_s - self.pulled_s
        if not self._order and silent_s > _PULL_TAKES_AT_MOST_S:
            stands_still_s = silent_s
        return QueueProgress(self.queue, len(self._unacknowledged), stands_still_s)

    def withdraw(self) -> None:
        """Signals all listeners that hold messages of this queue to stop."""
        self.withdrawn.set()

    def drop(self) -> None:
        """Marks the queue as no longer owned by this consumer."""
        self.is_dropped = True
        self.withdrawn.set()

    def is_full(self, *, max_count: int, max_bytes: int, max_span: int | None) -> bool:
        """Returns True if pulling must pause until listeners catch up."""
        return self.message_count > max_count or self.message_bytes > max_bytes or (max_span is not None and self.span > max_span)
