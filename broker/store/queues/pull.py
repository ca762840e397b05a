"""Reading a queue from an offset on (RocketMQ's DefaultMessageStore.getMessage)."""

from __future__ import annotations

from broker.store.log.commit_log import CommitLog
from broker.store.queues.consume_queue import BLANK_SIZE, ConsumeQueue, Unit
from broker.store.queues.filtered_read import Found, RecordFilter, find_wanted
from broker.store.queues.lost_unit import LostUnits
from broker.store.queues.unit_read import read_units
from broker.store.results import GetMessageStatus, PulledMessages

_UNITS_SEARCHED = 800
"""How many units one pull looks through for matching tags: RocketMQ's 16,000 bytes."""


def pull_messages(
    log: CommitLog,
    queue: ConsumeQueue | None,
    offset: int,
    max_messages: int,
    max_bytes: int,
    tags_codes: frozenset[int] | None,
    record_filter: RecordFilter | None,
) -> PulledMessages:
    """See `MessageStore.pull`."""
    if queue is None or queue.max_offset == 0:
        return PulledMessages(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
    if refusal := _offset_outside(queue, offset):
        return PulledMessages(*refusal, queue.min_offset, queue.max_offset)
    is_searched = tags_codes is not None or record_filter is not None
    units = queue.units(offset, _UNITS_SEARCHED if is_searched else max(max_messages, 1))
    if not units:
        next_offset = queue.start_of_next_file(offset)
        return PulledMessages(GetMessageStatus.OFFSET_FOUND_NULL, next_offset, queue.min_offset, queue.max_offset)
    if record_filter is None:
        wanted, looked_at = _choose(units, max_messages, max_bytes, tags_codes)
        read = read_units(LostUnits(log, queue), offset, wanted, max_bytes)
        found = Found(read.records, read.was_expired, looked_at if read.stopped_at is None else read.stopped_at)
    else:
        found = find_wanted(LostUnits(log, queue), offset, units, max_messages, max_bytes, record_filter)
    status = GetMessageStatus.FOUND
    if not found.records:
        status = GetMessageStatus.MESSAGE_WAS_REMOVING if found.was_expired else GetMessageStatus.NO_MATCHED_MESSAGE
    next_offset = offset + found.looked_at
    return PulledMessages(status, next_offset, queue.min_offset, queue.max_offset, found.records, found.cost_ns)


def _offset_outside(queue: ConsumeQueue, offset: int) -> tuple[GetMessageStatus, int] | None:
    if offset < queue.min_offset:
        return GetMessageStatus.OFFSET_TOO_SMALL, queue.min_offset
    if offset == queue.max_offset:
        return GetMessageStatus.OFFSET_OVERFLOW_ONE, offset
    if offset > queue.max_offset:
        return GetMessageStatus.OFFSET_OVERFLOW_BADLY, queue.max_offset
    return None


def _choose(
    units: list[Unit], max_messages: int, max_bytes: int, tags_codes: frozenset[int] | None
) -> tuple[list[tuple[int, Unit]], int]:
    """The units to read, each with its place among those given, and how many were looked at.

    A damaged unit is one of them whatever its tags code: clients look at the tags of what they get.
    """
    wanted: list[tuple[int, Unit]] = []
    total = 0
    for index, unit in enumerate(units):
        if unit.size == BLANK_SIZE:
            continue
        if tags_codes is not None and unit.tags_code not in tags_codes and unit.holds_message:
            continue
        if wanted and (len(wanted) >= max_messages or total + unit.size > max_bytes):
            return wanted, index
        wanted.append((index, unit))
        total += unit.size
    return wanted, len(units)
