"""Manages check points, which hide messages from a group. Changes apply in memory at once, and are recorded in the pop log.

A pop advances the group's offset in the queue, which pull consumers commit as well. After a crash, this offset may be seconds
old. Recovery therefore replays the pop log, so that acknowledged messages are not delivered again.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from rocketmq_broker.message import topics
from rocketmq_broker.server.popping.hidden_messages import CheckPoint, Hidden, HiddenMessages
from rocketmq_broker.server.popping.pop_log import AckEntry, GroupQueue, PopEntry, PopLog
from rocketmq_broker.server.topics.offset_commits import OffsetCommits
from rocketmq_broker.store import ConsumerOffsets

MAX_ENTRIES_KEPT: Final = 50_000
"""The maximum number of pop log entries that a restart reads. Older entries that still hide messages are appended again."""
_REWRITTEN_AT_ONCE: Final = 500

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Unconfirmed:
    """A change whose pop log entry may not be durable yet, and the state before the change."""

    end_position: int
    queue: GroupQueue
    hidden_before: dict[int, Hidden | None]
    offset_before: int | None
    """The group's offset in the queue before the change, or None if it did not change."""


class CheckPoints:
    """Hides messages from a group, and settles messages, which ends their delivery to the group.

    `hide` and `settle` return the commit log offset after the entry that they append. They raise StoreUnwritable if the entry
    cannot be appended, and change nothing in that case.
    """

    def __init__(self, log: PopLog, offsets: ConsumerOffsets, offset_commits: OffsetCommits, *, clock: Callable[[], int]) -> None:
        self.hidden = HiddenMessages()
        self.on_visible: Callable[[GroupQueue], None] = lambda queue: None
        """A function that is called with a queue when some of its messages may have become visible to the group again."""
        self._log = log
        self._offsets = offsets
        self._commits = offset_commits
        self._clock = clock
        self._unconfirmed: deque[_Unconfirmed] = deque()
        self._needed_from = 0
        """The pop log offset that the last call of `keep` determined."""

    def recover(self) -> None:
        """Replays the pop log. Call it once, before the first pop."""
        self._needed_from = self._offsets.get(topics.REVIVE_GROUP, topics.POP_LOG_TOPIC, 0) or 0
        if not self._log.end:
            return
        for log_offset, entry in self._log.entries(self._needed_from):
            if isinstance(entry, PopEntry):
                self._apply(CheckPoint(entry, log_offset))
            else:
                self._remove(entry.queue, entry.offsets)
        if self.hidden.count:
            logger.info("recovered %d unacknowledged popped messages", self.hidden.count)

    def position(self, queue: GroupQueue) -> int | None:
        """Returns the queue offset of the group's next message, or None if the group has no offset."""
        return self._offsets.get(*queue)

    def popped_up_to(self, queue: GroupQueue) -> int:
        """Returns the queue offset after the group's last popped message.

        An orderly pop advances the group's offset only when its messages are settled.
        """
        locked = self.ordered(queue).values()
        return max(self.position(queue) or 0, *(hidden.check_point.entry.next_offset for hidden in locked), 0)

    def set_position(self, queue: GroupQueue, offset: int) -> None:
        """Sets the group's offset in the queue.

        Raises RequestRefused if the queue does not exist, or if a limit of offsets is reached.
        """
        self._commits.commit(*queue, offset)

    def hide(self, entry: PopEntry, attempt_id: str | None = None) -> int:
        """Hides messages from a group, or changes how long they are hidden. Raises RequestRefused, StoreUnwritable."""
        queue = entry.queue
        if self._offsets.get(*queue) is None:
            self._commits.commit(*queue, entry.start_offset)
        appended = self._log.append(entry, self._clock())
        check_point = CheckPoint(entry, appended.queue_offset, attempt_id)
        offset_before = self._offsets.get(*queue)
        self._note(appended.end_position, queue, self._apply(check_point), offset_before)
        return appended.end_position

    def settle(self, queue: GroupQueue, offsets: list[int]) -> int:
        """Settles messages, so that the group does not receive them from this queue again. Raises StoreUnwritable."""
        end_position = self._log.append(AckEntry(*queue, offsets), self._clock()).end_position
        offset_before = self._offsets.get(*queue)
        self._note(end_position, queue, self._remove(queue, offsets), offset_before)
        return end_position

    def ordered(self, queue: GroupQueue) -> dict[int, Hidden]:
        """Returns the messages of orderly pops that lock the queue, keyed by offset."""
        found = self.hidden.of(queue)
        return {offset: found[offset] for offset in sorted(found) if found[offset].check_point.is_ordered}

    def confirm(self, position: int) -> None:
        """Makes changes final whose entries before the commit log offset `position` are durable. `take_back` cannot undo them."""
        while self._unconfirmed and self._unconfirmed[0].end_position <= position:
            self._unconfirmed.popleft()

    def take_back(self, position: int) -> None:
        """Undoes the changes whose entries at or after the commit log offset `position` are lost."""
        while self._unconfirmed and self._unconfirmed[-1].end_position > position:
            change = self._unconfirmed.pop()
            for offset, before in change.hidden_before.items():
                self.hidden.put(change.queue, offset, before)
                if before is not None:
                    self.hidden.watch(before.check_point, before.visible_ms)
            if change.offset_before is not None:
                self._offsets.commit(*change.queue, change.offset_before)
            self.on_visible(change.queue)

    def keep(self) -> None:
        """Commits the pop log offset at which recovery starts, and rewrites old entries if recovery would read too many.

        Call it every few seconds. A call commits the offset that the previous call determined. Recovery does not need
        earlier entries, because the group offsets that replace them have been written to disk since then.
        """
        end = self._log.end
        if not end:
            return
        self._offsets.commit(topics.REVIVE_GROUP, topics.POP_LOG_TOPIC, 0, self._needed_from)
        live = self.hidden.live()
        self._needed_from = live[0].log_offset if live else end
        if end - self._needed_from > MAX_ENTRIES_KEPT:
            for check_point in live[:_REWRITTEN_AT_ONCE]:
                self._rewrite(check_point)

    def _note(
        self, end_position: int, queue: GroupQueue, hidden_before: dict[int, Hidden | None], offset_before: int | None
    ) -> None:
        has_moved = self._offsets.get(*queue) != offset_before
        self._unconfirmed.append(_Unconfirmed(end_position, queue, hidden_before, offset_before if has_moved else None))

    def _apply(self, check_point: CheckPoint) -> dict[int, Hidden | None]:
        entry = check_point.entry
        if not check_point.is_ordered:
            self._move(entry.queue, entry.start_offset, entry.next_offset)
        return self.hidden.hide(check_point)

    def _remove(self, queue: GroupQueue, offsets: list[int]) -> dict[int, Hidden | None]:
        before = {offset: self.hidden.put(queue, offset, None) for offset in offsets}
        for hidden in before.values():
            if hidden is not None and hidden.check_point.is_ordered and not self.ordered(queue):
                self._move(queue, hidden.check_point.entry.start_offset, hidden.check_point.entry.next_offset)
                self.on_visible(queue)
                break
        return before

    def _move(self, queue: GroupQueue, start_offset: int, next_offset: int) -> None:
        """Advances the group's offset, unless it has been set to another position since the pop."""
        known = self._offsets.get(*queue)
        if known is None or start_offset <= known < next_offset:
            self._offsets.commit(*queue, next_offset)

    def _rewrite(self, check_point: CheckPoint) -> None:
        entry = check_point.entry
        left = self.hidden.held_by(check_point)
        start_offset = entry.start_offset if check_point.is_ordered else entry.next_offset
        invisible_ms = max(hidden.visible_ms for _, hidden in left) - entry.pop_time_ms
        offsets = [offset for offset, _ in left]
        again = replace(entry, start_offset=start_offset, offsets=offsets, invisible_ms=invisible_ms)
        self.hide(again, check_point.attempt_id)
