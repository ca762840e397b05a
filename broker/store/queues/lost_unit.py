"""Finding a message whose consume queue unit is damaged: it lies behind that of the queue offset before it."""

from __future__ import annotations

from typing import Final

from broker.store.errors import UnreadableRecord
from broker.store.log.commit_log import CommitLog
from broker.store.log.record_check import CheckedRecord
from broker.store.queues.consume_queue import ConsumeQueue, Unit

_BYTES_SEARCHED: Final = 4 << 20
"""How much of the commit log is looked through: most messages of a queue follow one another closely."""
_UNITS_SEARCHED: Final = 256
"""How many units before the damaged one may be damaged as well: a page of the disk."""


def find_record(log: CommitLog, queue: ConsumeQueue, queue_offset: int) -> bytes | None:
    """The intact record of that queue offset, or None if it is damaged too, or too far away."""
    return LostUnits(log, queue).find(queue_offset)


class LostUnits:
    """Finds the messages of several damaged units of one queue, and in all reads little more than is read for one."""

    def __init__(self, log: CommitLog, queue: ConsumeQueue) -> None:
        """Begins anew: the first search may be as long as any."""
        self.is_cut_short = False
        """Whether the last search ended too early because of those before it, and has to be made again by itself."""
        self.log = log
        self.queue = queue
        self._bytes_left = _BYTES_SEARCHED

    def find(self, queue_offset: int) -> bytes | None:
        """The intact record of that queue offset, or None if it is damaged too, too far away, or the search is cut short."""
        self.is_cut_short = False
        unit = self.queue.unit(queue_offset)
        if unit is not None and _is_marked_as_lost(self.queue, queue_offset, unit):
            return None
        if (known := self._read_known(queue_offset)) is not None:
            return known[0]
        is_first = self._bytes_left == _BYTES_SEARCHED
        if self._bytes_left > 0:
            begin = self._end_before(queue_offset)
            data, end = self._walk(begin, queue_offset)
            self._bytes_left -= max(end - begin, 1)  # 1: the next search is not the first, even if this one read nothing
            if data is not None:
                self.queue.note_found(queue_offset, end - len(data))
                return data
        self.is_cut_short = self._bytes_left <= 0 and not is_first
        return None

    def _walk(self, position: int, queue_offset: int) -> tuple[bytes | None, int]:
        """The record, or None, and where the search ended."""
        end = position + self._bytes_left
        while position < end:
            if self.log.is_blank(position):
                position = self.log.segments.start_of(position) + self.log.segments.segment_size
                continue
            try:
                data, checked = self.log.read(position)
            except UnreadableRecord:
                break
            position += checked.size
            if is_of(checked, self.queue, queue_offset):
                return data, position
        return None, position

    def _end_before(self, queue_offset: int) -> int:
        """Where the nearest message before that queue offset ends whose unit is right, or that was found without it."""
        for offset in range(queue_offset - 1, max(queue_offset - 1 - _UNITS_SEARCHED, -1), -1):
            if (known := self._read_known(offset)) is not None:
                return known[1]
        return self.log.min_offset

    def _read_known(self, queue_offset: int) -> tuple[bytes, int] | None:
        """The record where its unit or an earlier search says it is, and where it ends; None if it is not there."""
        place = self.queue.places_found.get(queue_offset)
        if place is None:
            unit = self.queue.unit(queue_offset)
            if unit is None:
                return None
            place = unit.commit_log_offset
        try:
            data, checked = self.log.read(place)
        except UnreadableRecord:
            return None
        return (data, place + checked.size) if is_of(checked, self.queue, queue_offset) else None


def _is_marked_as_lost(queue: ConsumeQueue, queue_offset: int, unit: Unit) -> bool:
    """Whether it is one of those by which recovery marks the messages of a damaged stretch of the log (ConsumeQueue.fill_gap)."""
    return unit.size > 0 and unit.tags_code == 0 and unit in (queue.unit(queue_offset - 1), queue.unit(queue_offset + 1))


def is_of(record: CheckedRecord, queue: ConsumeQueue, queue_offset: int) -> bool:
    """Whether the record is the message of that queue offset."""
    return record.queue_offset == queue_offset and record.queue_id == queue.queue_id and record.topic == queue.topic
