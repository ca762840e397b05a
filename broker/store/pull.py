"""Reading a queue from an offset on (RocketMQ's DefaultMessageStore.getMessage)."""

from __future__ import annotations

from collections.abc import Iterator

from broker.store.commit_log import CommitLog
from broker.store.consume_queue import BLANK_SIZE, ConsumeQueue, Unit
from broker.store.lost_unit import LostUnits, is_of
from broker.store.record_check import MAX_SIZE, check_record
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
) -> PulledMessages:
    """See `MessageStore.pull`."""
    if queue is None or queue.max_offset == 0:
        return PulledMessages(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
    if refusal := _offset_outside(queue, offset):
        return PulledMessages(*refusal, queue.min_offset, queue.max_offset)
    units = queue.units(offset, _UNITS_SEARCHED if tags_codes is not None else max(max_messages, 1))
    if not units:
        next_offset = queue.start_of_next_file(offset)
        return PulledMessages(GetMessageStatus.OFFSET_FOUND_NULL, next_offset, queue.min_offset, queue.max_offset)
    wanted, looked_at = _choose(units, max_messages, max_bytes, tags_codes)
    records, was_expired, stopped_at = _read(log, queue, offset, wanted, max_bytes)
    status = GetMessageStatus.FOUND
    if not records:
        status = GetMessageStatus.MESSAGE_WAS_REMOVING if was_expired else GetMessageStatus.NO_MATCHED_MESSAGE
    next_offset = offset + (looked_at if stopped_at is None else stopped_at)
    return PulledMessages(status, next_offset, queue.min_offset, queue.max_offset, records)


def _read(
    log: CommitLog, queue: ConsumeQueue, offset: int, wanted: list[tuple[int, Unit]], max_bytes: int
) -> tuple[list[bytes], bool, int | None]:
    """The intact records, whether any had expired, and the place of the unit the next pull begins with if not all were read."""
    lost_units = LostUnits(log, queue)
    records: list[bytes] = []
    total = 0
    was_expired = False
    for run in _adjacent(wanted, log.segments.segment_size):
        first = run[0][1].commit_log_offset
        length = run[-1][1].commit_log_offset + run[-1][1].size - first
        data = log.segments.read(first, max(0, min(length, MAX_SIZE)))
        was_expired = was_expired or not data
        for index, unit in run:
            at = unit.commit_log_offset - first
            checked = check_record(data, at, unit.commit_log_offset)
            if checked is not None and is_of(checked, queue, offset + index):
                record = data[at : at + checked.size]
            elif (found := lost_units.find(offset + index)) is not None:
                record = found
            elif lost_units.is_cut_short:
                return records, was_expired, index
            else:
                continue
            total += len(record)
            if records and total > max_bytes:  # a damaged unit did not say how much it would be
                return records, was_expired, index
            records.append(record)
    return records, was_expired, None


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


def _adjacent(wanted: list[tuple[int, Unit]], segment_size: int) -> Iterator[list[tuple[int, Unit]]]:
    """Runs of units whose records follow one another in one segment: one read each."""
    run: list[tuple[int, Unit]] = []
    for index, unit in wanted:
        if run:
            last = run[-1][1]
            follows = last.commit_log_offset + last.size == unit.commit_log_offset and unit.commit_log_offset % segment_size
            if not follows:
                yield run
                run = []
        run.append((index, unit))
    if run:
        yield run
