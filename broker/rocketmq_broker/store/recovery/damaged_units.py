"""Consume queue units that a pull found damaged: their messages are searched for, and the units are written anew.

A message lies in the commit log behind the one of the queue offset before it. One search puts right all damaged units that it
comes across, so that the next pull reads them as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rocketmq_broker.store.errors import UnreadableRecord
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.record_check import CheckedRecord
from rocketmq_broker.store.queues.consume_queue import ConsumeQueue, Unit
from rocketmq_broker.store.queues.consume_queue_table import ConsumeQueueTable
from rocketmq_broker.store.queues.dispatch import is_queued, unit_tags_code

_BYTES_SEARCHED: Final = 4 << 20
"""How much of the commit log is looked through: most messages of a queue follow one another closely."""
_UNITS_SEARCHED: Final = 256
"""How many units before the damaged one may be damaged as well: a page of the disk."""


class Search:
    """Reads the commit log for messages of a queue, not more in all than one pull may."""

    def __init__(self) -> None:
        self._bytes_left = _BYTES_SEARCHED

    @property
    def is_over(self) -> bool:
        """Whether as much was read as may be."""
        return self._bytes_left <= 0

    def messages_of(self, log: CommitLog, queue: ConsumeQueue, begin: int | None) -> Iterator[tuple[int, CheckedRecord]]:
        """The queue's messages from a record on, or from the first there is; until the log is damaged or the search is over."""
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
    """Mends the units of all queues of a store."""

    def __init__(self, log: CommitLog, queues: ConsumeQueueTable, delay_levels_ms: Sequence[int]) -> None:
        self._log = log
        self._queues = queues
        self._delay_levels_ms = delay_levels_ms

    def mend(self, queue: ConsumeQueue, queue_offset: int, search: Search) -> int:
        """Where a pull goes on that found no record for the unit of that queue offset.

        At that very offset if the message was found, and its unit is right by now. Behind it if the message is lost, has expired,
        or is too far away.
        """
        if (after_lost := _end_of_lost(queue, queue_offset)) > queue_offset:
            return after_lost
        begin = _end_before(self._log, queue, queue_offset)
        if begin is None and (after_expired := self._end_of_expired(queue, queue_offset)) > queue_offset:
            return after_expired
        is_mended = False
        for position, record in search.messages_of(self._log, queue, begin):
            if not queue_offset <= record.queue_offset < queue.max_offset:
                continue
            tags_code = unit_tags_code(record.topic, record.properties, record.store_timestamp, self._delay_levels_ms)
            right = Unit(position, record.size, tags_code)
            is_mended = is_mended or record.queue_offset == queue_offset
            if queue.unit(record.queue_offset) == right:
                break  # the damage ends before it
            self._queues.mend(queue, record.queue_offset, right)
        return queue_offset if is_mended else queue_offset + 1

    def _end_of_expired(self, queue: ConsumeQueue, queue_offset: int) -> int:
        """The first offset whose message the log still has, if that of this offset is one of those that have expired."""
        unit = queue.unit(queue_offset)
        if unit is None or not unit.holds_message or unit.commit_log_offset >= self._log.min_offset:
            return queue_offset
        first_kept = queue.find_first(lambda later: later.commit_log_offset >= self._log.min_offset)
        return max(first_kept, queue_offset + 1)


def find_message(log: CommitLog, queue: ConsumeQueue, queue_offset: int) -> int | None:
    """The commit log offset of the message of a queue offset, which need not have a unit; None if it is not found."""
    if _end_at(log, queue, queue_offset) is not None and (unit := queue.unit(queue_offset)) is not None:
        return unit.commit_log_offset
    for position, record in Search().messages_of(log, queue, _end_before(log, queue, queue_offset)):
        if record.queue_offset == queue_offset:
            return position
    return None


def _end_before(log: CommitLog, queue: ConsumeQueue, queue_offset: int) -> int | None:
    """Where the nearest message before that queue offset ends whose unit is right; None if there is none near."""
    for offset in range(queue_offset - 1, max(queue_offset - 1 - _UNITS_SEARCHED, -1), -1):
        if (end := _end_at(log, queue, offset)) is not None:
            return end
    return None


def _end_at(log: CommitLog, queue: ConsumeQueue, queue_offset: int) -> int | None:
    """Where the message of that queue offset ends; None unless its unit is right."""
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
    """The offset after those by which recovery marks the messages of a damaged stretch of the log (see `fill_gap`)."""
    unit = queue.unit(queue_offset)
    if unit is None or unit.size <= 0 or unit.tags_code:
        return queue_offset
    end = queue_offset
    while queue.unit(end) == unit:
        end += 1
    is_marked = end > queue_offset + 1 or queue.unit(queue_offset - 1) == unit
    return end if is_marked else queue_offset
