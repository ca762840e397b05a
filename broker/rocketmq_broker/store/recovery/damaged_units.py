"""Repairs damaged consume queue units that a pull finds. Searches the commit log for their messages and rewrites the units.

The messages of a queue are in the commit log in the order of their queue offsets, so the search begins after the nearest earlier
message. One search repairs all damaged units whose messages it finds, so that the next pull reads them normally.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rocketmq_broker.store.errors import UnreadableRecord
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.record_check import CheckedRecord
from rocketmq_broker.store.queues.consume_queue import ConsumeQueue, Unit
from rocketmq_broker.store.queues.consume_queue_table import ConsumeQueueTable
from rocketmq_broker.store.queues.dispatch import is_queued, unit_tags_code

_BYTES_SEARCHED: Final = 4 << 20
"""The maximum number of bytes of the commit log to search. Most messages of a queue are close together."""
_UNITS_SEARCHED: Final = 256
"""The maximum number of units before the damaged one to examine. Units in the same page may be damaged as well."""


class Search:
    """A search in the commit log for messages of a queue. One pull uses one search, which reads a limited number of bytes."""

    def __init__(self) -> None:
        self._bytes_left = _BYTES_SEARCHED

    @property
    def is_over(self) -> bool:
        """Returns whether the maximum number of bytes has been read."""
        return self._bytes_left <= 0

    def messages_of(self, log: CommitLog, queue: ConsumeQueue, begin: int | None) -> Iterator[tuple[int, CheckedRecord]]:
        """Yields the queue's messages from position `begin`, or from the log's start if it is None.

        Ends at a damaged record, or at the limit of the search.
        """
        position = log.min_offset if begin is None else begin
        while not self.is_over:
            if log.is_blank(position):
                position = log.segments.start_of(position) + log.segments.segment_size
                continue
            try:
                _, record = log.read(position)
            except UnreadableRecord:
                return
            self._bytes_left -= record.size
            if record.queue_id == queue.queue_id and record.topic == queue.topic and is_queued(record.sys_flag):
                yield position, record
            position += record.size


class DamagedUnits:
    """Repairs damaged units in all queues of a store."""

    def __init__(self, log: CommitLog, queues: ConsumeQueueTable, delay_levels_ms: Sequence[int]) -> None:
        self._log = log
        self._queues = queues
        self._delay_levels_ms = delay_levels_ms

    def repair(self, queue: ConsumeQueue, queue_offset: int, search: Search) -> int:
        """Repairs the unit at `queue_offset`, which does not point to its message. Returns the offset where the pull continues.

        This is the same offset if the message was found and its unit repaired. It is a later offset if the message is lost, has
        expired, or is too far away.
        """
        if (after_lost := _end_of_lost(queue, queue_offset)) > queue_offset:
            return after_lost
        begin = _end_before(self._log, queue, queue_offset)
        if begin is None and (after_expired := self._end_of_expired(queue, queue_offset)) > queue_offset:
            return after_expired
        is_repaired = False
        for position, record in search.messages_of(self._log, queue, begin):
            if not queue_offset <= record.queue_offset < queue.max_offset:
                continue
            tags_code = unit_tags_code(record.topic, record.properties, record.store_timestamp, self._delay_levels_ms)
            right = Unit(position, record.size, tags_code)
            is_repaired = is_repaired or record.queue_offset == queue_offset
            if queue.unit(record.queue_offset) == right:
                break  # This unit is intact, so the damage ends before it.
            self._queues.repair(queue, record.queue_offset, right)
        return queue_offset if is_repaired else queue_offset + 1

    def _end_of_expired(self, queue: ConsumeQueue, queue_offset: int) -> int:
        """Returns the offset of the first unexpired message if the message at `queue_offset` has expired.

        Otherwise returns `queue_offset`.
        """
        unit = queue.unit(queue_offset)
        if unit is None or not unit.holds_message or unit.commit_log_offset >= self._log.min_offset:
            return queue_offset
        first_kept = queue.find_first(lambda later: later.commit_log_offset >= self._log.min_offset)
        return max(first_kept, queue_offset + 1)


def find_message(log: CommitLog, queue: ConsumeQueue, queue_offset: int) -> int | None:
    """Returns the commit log offset of the message at a queue offset, or None if it is not found. The unit may be damaged."""
    if _end_at(log, queue, queue_offset) is not None and (unit := queue.unit(queue_offset)) is not None:
        return unit.commit_log_offset
    for position, record in Search().messages_of(log, queue, _end_before(log, queue, queue_offset)):
        if record.queue_offset == queue_offset:
            return position
    return None


def _end_before(log: CommitLog, queue: ConsumeQueue, queue_offset: int) -> int | None:
    """Returns the commit log offset after the nearest earlier message with an intact unit, or None if there is none nearby."""
    for offset in range(queue_offset - 1, max(queue_offset - 1 - _UNITS_SEARCHED, -1), -1):
        if (end := _end_at(log, queue, offset)) is not None:
            return end
    return None


def _end_at(log: CommitLog, queue: ConsumeQueue, queue_offset: int) -> int | None:
    """Returns the commit log offset after the message at a queue offset, or None if its unit is damaged."""
    unit = queue.unit(queue_offset)
    if unit is None:
        return None
    try:
        _, record = log.read(unit.commit_log_offset)
    except UnreadableRecord:
        return None
    is_right = (record.topic, record.queue_id, record.queue_offset) == (queue.topic, queue.queue_id, queue_offset)
    return unit.commit_log_offset + record.size if is_right else None


def _end_of_lost(queue: ConsumeQueue, queue_offset: int) -> int:
    """Returns the offset after the units at `queue_offset` that mark a damaged stretch of the log (see `fill_gap`).

    Returns `queue_offset` if there are no such units.
    """
    unit = queue.unit(queue_offset)
    if unit is None or unit.size <= 0 or unit.tags_code:
        return queue_offset
    end = queue_offset
    while queue.unit(end) == unit:
        end += 1
    is_marked = end > queue_offset + 1 or queue.unit(queue_offset - 1) == unit
    return end if is_marked else queue_offset
