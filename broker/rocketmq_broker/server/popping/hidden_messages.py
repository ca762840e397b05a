"""Hidden messages: popped, and not yet acknowledged (RocketMQ's PopBufferMergeService and ConsumerOrderInfoManager)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.server.popping.pop_log import GroupQueue, PopEntry

_FEW: Final = 1000


@dataclass(slots=True, eq=False)
class CheckPoint:
    """One pop's messages of one queue (RocketMQ's PopCheckPoint), and the place of its entry in the pop log."""

    entry: PopEntry
    log_offset: int
    left: int = 0
    """The number of its messages that are still hidden by it."""

    @property
    def is_ordered(self) -> bool:
        """Returns whether an orderly pop gave the messages: they lock their queue."""
        return self.entry.attempt > 0


@dataclass(slots=True, eq=False)
class Hidden:
    """A hidden message."""

    check_point: CheckPoint
    visible_ms: int
    """The end of its invisible time, in milliseconds since the epoch."""


class HiddenMessages:
    """The hidden messages by group and queue, and the times at which they become visible."""

    def __init__(self) -> None:
        self._by_queue: dict[GroupQueue, dict[int, Hidden]] = {}
        self._live: dict[int, CheckPoint] = {}
        self._due: list[tuple[int, int, CheckPoint]] = []
        self._number = 0
        self.count = 0
        """The number of hidden messages."""

    def of(self, queue: GroupQueue) -> Mapping[int, Hidden]:
        """Returns the hidden messages of a queue by their offsets; to be read only."""
        return self._by_queue.get(queue, {})

    def counts(self) -> Iterator[tuple[GroupQueue, int]]:
        """Yields each queue with hidden messages, and their number."""
        return ((queue, len(messages)) for queue, messages in self._by_queue.items())

    def hide(self, check_point: CheckPoint) -> dict[int, Hidden | None]:
        """Hides the check point's messages. Returns what hid each of them before."""
        entry = check_point.entry
        visible_ms = entry.pop_time_ms + entry.invisible_ms
        before = {offset: self.put(entry.queue, offset, Hidden(check_point, visible_ms)) for offset in entry.offsets}
        self.watch(check_point, visible_ms)
        return before

    def put(self, queue: GroupQueue, offset: int, hidden: Hidden | None) -> Hidden | None:
        """Hides a message, or shows it (None). Returns what hid it before."""
        messages = self._by_queue.setdefault(queue, {})
        before = messages.pop(offset, None)
        if before is not None:
            self._leave(before.check_point)
        if hidden is not None:
            messages[offset] = hidden
            hidden.check_point.left += 1
            self._live[hidden.check_point.log_offset] = hidden.check_point
        self.count += (hidden is not None) - (before is not None)
        if not messages:
            del self._by_queue[queue]
        return before

    def watch(self, check_point: CheckPoint, due_ms: int) -> None:
        """Lets `take_due` look at the check point at that time."""
        self._number += 1
        heapq.heappush(self._due, (due_ms, self._number, check_point))
        if len(self._due) > 2 * len(self._live) + _FEW:
            self._due = [due for due in self._due if due[2].left]
            heapq.heapify(self._due)

    def take_due(self, now_ms: int) -> CheckPoint | None:
        """Takes a check point with messages that may have become visible; None if there is none."""
        while self._due and (not self._due[0][2].left or self._due[0][0] <= now_ms):
            check_point = heapq.heappop(self._due)[2]
            if check_point.left:
                return check_point
        return None

    def next_due_ms(self) -> int | None:
        """Returns when `take_due` has something next; None without hidden messages."""
        return self._due[0][0] if self._due else None

    def held_by(self, check_point: CheckPoint) -> list[tuple[int, Hidden]]:
        """Returns the messages that this check point hides, by offset."""
        messages = self.of(check_point.entry.queue)
        found = ((offset, messages.get(offset)) for offset in check_point.entry.offsets)
        return [(offset, hidden) for offset, hidden in found if hidden is not None and hidden.check_point is check_point]

    def live(self) -> list[CheckPoint]:
        """Returns the check points that hide a message, the oldest in the pop log first."""
        return [self._live[log_offset] for log_offset in sorted(self._live)]

    def shift(self, step_ms: int) -> None:
        """Moves all times: the clock leapt, and no wait becomes longer or shorter for it."""
        for messages in self._by_queue.values():
            for hidden in messages.values():
                hidden.visible_ms += step_ms
        self._due = [(due_ms + step_ms, number, check_point) for due_ms, number, check_point in self._due]

    def _leave(self, check_point: CheckPoint) -> None:
        check_point.left -= 1
        if not check_point.left:
            self._live.pop(check_point.log_offset, None)
