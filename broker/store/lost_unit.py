"""Finding a message whose consume queue unit is damaged: it lies between those of the queue offsets before and after it."""

from __future__ import annotations

from typing import Final

from broker.store.commit_log import CommitLog
from broker.store.consume_queue import BLANK_SIZE, ConsumeQueue
from broker.store.errors import CorruptRecord, RecordNotFound
from broker.store.record_check import CheckedRecord

_BYTES_SEARCHED: Final = 4 << 20
"""How much of the commit log is looked through: most messages of a queue follow one another closely."""


def find_record(log: CommitLog, queue: ConsumeQueue, queue_offset: int) -> bytes | None:
    """The intact record of that queue offset, or None if it is damaged too, or too far away."""
    before, after = queue.unit(queue_offset - 1), queue.unit(queue_offset + 1)
    position = log.min_offset
    if before is not None and before.size != BLANK_SIZE:
        position = max(before.commit_log_offset + before.size, position)
    end = min(position + _BYTES_SEARCHED, after.commit_log_offset if after is not None else log.written_position)
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


def is_of(record: CheckedRecord, queue: ConsumeQueue, queue_offset: int) -> bool:
    """Whether the record is the message of that queue offset."""
    return record.queue_offset == queue_offset and record.queue_id == queue.queue_id and record.topic == queue.topic
