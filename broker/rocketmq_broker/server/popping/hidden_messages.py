"""Tracks hidden messages, which were popped and are not acknowledged yet (PopBufferMergeService and ConsumerOrderInfoManager)."""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.server.popping.pop_log import GroupQueue, PopEntry
from rocketmq_broker.server.shares import FEW, is_full

MAX_OF_A_QUEUE: Final = 10_000
"""The maximum number of messages in one queue that are hidden from one group (popInflightMessageThreshold)."""
MAX_OF_A_GROUP: Final = 100_000
"""The maximum number of messages in one topic that are hidden from one group: a fifth of MAX_IN_ALL."""
MAX_IN_ALL: Final = 500_000
"""The maximum number of hidden messages of all groups. Each takes about 100 bytes of memory, and a restart reads all of them."""
_FEW_STALE: Final = 1000


@dataclass(slots=True, eq=False)
class CheckPoint:
    """The messages of one queue that one pop returned (RocketMQ's PopCheckPoint), and the offset of its pop log entry."""

    entry: PopEntry
    log_offset: int
    attempt_id: str | None = None
    """The attempt id of an orderly pop. A pop with the same id returns the same messages. The id is lost at a restart."""
    left: int = 0
    """The number of messages that this check point still hides."""

    @property
    def is_ordered(self) -> bool:
        """Returns True if the check point belongs to an orderly pop. The messages of an orderly pop lock their queue."""
        return self.entry.attempt > 0


@dataclass(slots=True, eq=False)
class Hidden:
    """A message that is hidden from a group until its invisible time ends."""

    check_point: CheckPoint
    visible_ms: int
    """The end of the invisible time, in milliseconds since the epoch."""


class HiddenMessages:
    """The hidden messages, keyed by group and queue, and the times when they become visible."""

    def __init__(self) -> None:
        self._by_queue: dict[GroupQueue, dict[int, Hidden]] = {}
        self._by_group: Counter[tuple[str, str]] = Counter()
        """The number of hidden messages, keyed by group and topic."""
        self._live: dict[int, CheckPoint] = {}
        self._due: list[tuple[int, int, CheckPoint]] = []
        self._number = 0
        self.count = 0
        """The number of hidden messages."""

    def of(self, queue: GroupQueue) -> Mapping[int, Hidden]:
        """Returns the hidden messages of a queue, keyed by offset. Callers must not change the result."""
        return self._by_queue.get(queue, {})

    def counts(self) -> Iterator[tuple[GroupQueue, int]]:
        """Yields each queue that has hidden messages, and the number of these messages."""
        return ((queue, len(messages)) for queue, messages in self._by_queue.items())

    def hide(self, check_point: CheckPoint) -> dict[int, Hidden | None]:
        """Hides the messages of a check point. Returns the previous state of each message."""
        entry = check_point.entry
        visible_ms = entry.pop_time_ms + entry.invisible_ms
        before = {offset: self.put(entry.queue, offset, Hidden(check_point, visible_ms)) for offset in entry.offsets}
        self.watch(check_point, visible_ms)
        return before

    def put(self, queue: GroupQueue, offset: int, hidden: Hidden | None) -> Hidden | None:
        """Hides a message, or makes it visible if `hidden` is None. Returns the previous state of the message."""
        messages = self._by_queue.setdefault(queue, {})
        before = messages.pop(offset, None)
        if before is not None:
            self._leave(before.check_point)
        if hidden is not None:
            messages[offset] = hidden
            hidden.check_point.left += 1
            self._live[hidden.check_point.log_offset] = hidden.check_point
        self._count(queue, (hidden is not None) - (before is not None))
        if not messages:
            del self._by_queue[queue]
        return before

    def refusal(self, queue: GroupQueue) -> str | None:
        """Returns the reason why no more messages of the queue may be hidden from the group.

        Returns None if more may be hidden.
        """
        of_group = self._by_group[queue.group, queue.topic]
        if len(self.of(queue)) >= MAX_OF_A_QUEUE:
            what = f"queue {queue.queue_id} of topic {queue.topic}"
            return _too_many(queue.group, len(self.of(queue)), what, MAX_OF_A_QUEUE)
        if of_group >= MAX_OF_A_GROUP:
            return _too_many(queue.group, of_group, f"topic {queue.topic}", MAX_OF_A_GROUP)
        if is_full(self.count, MAX_IN_ALL, of_group):
            return _IN_ALL.format(count=self.count)
        return None

    def refusals(self) -> Iterator[str]:
        """Yields the reasons why pops are refused now, as texts for operators."""
        if self.count >= MAX_IN_ALL:
            yield _IN_ALL.format(count=self.count)
        for (group, topic), count in list(self._by_group.items()):
            if count >= MAX_OF_A_GROUP:
                yield _too_many(group, count, f"topic {topic}", MAX_OF_A_GROUP)
        for queue, count in list(self.counts()):
            if count >= MAX_OF_A_QUEUE:
                yield _too_many(queue.group, count, f"queue {queue.queue_id} of topic {queue.topic}", MAX_OF_A_QUEUE)

    def watch(self, check_point: CheckPoint, due_ms: int) -> None:
        """Schedules the check point. `take_due` returns it once `due_ms`, in milliseconds since the epoch, has passed."""
        self._number += 1
        heapq.heappush(self._due, (due_ms, self._number, check_point))
        if len(self._due) > 2 * len(self._live) + _FEW_STALE:
            self._due = [due for due in self._due if due[2].left]
            heapq.heapify(self._due)

    def take_due(self, now_ms: int) -> CheckPoint | None:
        """Removes and returns a check point whose messages may have become visible. Returns None if there is none."""
        while self._due and (not self._due[0][2].left or self._due[0][0] <= now_ms):
            check_point = heapq.heappop(self._due)[2]
            if check_point.left:
                return check_point
        return None

    def next_due_ms(self) -> int | None:
        """Returns the time of the next check point for `take_due`, in milliseconds since the epoch, or None if there is none."""
        return self._due[0][0] if self._due else None

    def held_by(self, check_point: CheckPoint) -> list[tuple[int, Hidden]]:
        """Returns the messages that this check point hides, with their offsets."""
        messages = self.of(check_point.entry.queue)
        found = ((offset, messages.get(offset)) for offset in check_point.entry.offsets)
        return [(offset, hidden) for offset, hidden in found if hidden is not None and hidden.check_point is check_point]

    def live(self) -> list[CheckPoint]:
        """Returns the check points that still hide messages, in the order of the pop log."""
        return [self._live[log_offset] for log_offset in sorted(self._live)]

    def shift(self, step_ms: int) -> None:
        """Shifts all times after a change of the system time, so that each message stays hidden for the same duration."""
        for messages in self._by_queue.values():
            for hidden in messages.values():
                hidden.visible_ms += step_ms
        self._due = [(due_ms + step_ms, number, check_point) for due_ms, number, check_point in self._due]

    def _count(self, queue: GroupQueue, change: int) -> None:
        key = queue.group, queue.topic
        self.count += change
        self._by_group[key] += change
        if not self._by_group[key]:
            del self._by_group[key]

    def _leave(self, check_point: CheckPoint) -> None:
        check_point.left -= 1
        if not check_point.left:
            self._live.pop(check_point.log_offset, None)


_IN_ALL: Final = (
    f"too many unacknowledged popped messages: {{count}}, limit {MAX_IN_ALL}; each group gets messages of a topic only while "
    f"it has fewer than {FEW} unacknowledged ones there"
)


def _too_many(group: str, count: int, what: str, limit: int) -> str:
    return f"too many unacknowledged messages in {what}: group {group} has {count}, limit {limit}; acknowledge some first"
