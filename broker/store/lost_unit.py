"""Finding a message whose consume queue unit is damaged: it lies behind that of the queue offset before it."""

from __future__ import annotations

from typing import Final

from broker.store.commit_log import CommitLog
from broker.store.consume_queue import ConsumeQueue, Unit
from broker.store.errors import CorruptRecord, RecordNotFound
from broker.store.record_check import CheckedRecord

_BYTES_SEARCHED: Final = 4 << 20
"""How much of the commit log is looked through: most messages of a queue follow one another closely."""
_UNITS_SEARCHED: Final = 256
"""How many units before the damaged one may be damaged as well: a page of the disk."""


def find_record(log: CommitLog, queue: ConsumeQueue, queue_offset: int) -> bytes | None:
    """The intact record of that queue offset, or None if it is damaged too, or too far away."""
    unit = queue.unit(queue_offset)
    if unit is not None and _is_marked_as_lost(queue, queue_offset, unit):
        return None
    position = _end_before(log, queue, queue_offset)
    end = position + _BYTES_SEARCHED
    while position < end:
        if log.is_blank(position):
            position = log.segments.start_of(position) + log.segments.segment_size
            continue
        try:
            data, checked = log.read(position)
        except (RecordNotFound, CorruptRecord):
            return None
        if is_of(checked, queue, queue_offset):
            return data
        position += checked.size
    return None


def _is_marked_as_lost(queue: ConsumeQueue, queue_offset: int, unit: Unit) -> bool:
    """Whether it is one of those by which recovery marks the messages of a damaged stretch of the log (ConsumeQueue.fill_gap)."""
    return unit.size > 0 and unit.tags_code == 0 and unit in (queue.unit(queue_offset - 1), queue.unit(queue_offset + 1))


def _end_before(log: CommitLog, queue: ConsumeQueue, queue_offset: int) -> int:
    """Where the nearest message before that queue offset ends whose unit is right."""
    for offset in range(queue_offset - 1, queue_offset - 1 - _UNITS_SEARCHED, -1):
        unit = queue.unit(offset)
        if unit is None:
            break
        try:
            _, checked = log.read(unit.commit_log_offset)
        except (RecordNotFound, CorruptRecord):
            continue
        if is_of(checked, queue, offset):
            return unit.commit_log_offset + checked.size
    return log.min_offset


def is_of(record: CheckedRecord, queue: ConsumeQueue, queue_offset: int) -> bool:
    """Whether the record is the message of that queue offset."""
    return record.queue_offset == queue_offset and record.queue_id == queue.queue_id and record.topic == queue.topic
