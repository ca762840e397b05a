"""Reads a queue from an offset (RocketMQ's DefaultMessageStore.getMessage)."""

from typing import NamedTuple

from librt.strings import read_i32_be, read_i64_be

from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.queues.consume_queue import BLANK_SIZE, SIZE_AT, TAGS_CODE_AT, ConsumeQueue
from rocketmq_broker.store.queues.filtered_read import FilteredRecords, RecordFilter, find_wanted
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE
from rocketmq_broker.store.queues.unit_read import read_units
from rocketmq_broker.store.results import GetMessageStatus, PulledMessages

_UNITS_SEARCHED = 800
"""The number of units that one pull examines for matching tags. 800 units are RocketMQ's limit of 16,000 bytes."""


class Pulled(NamedTuple):
    """The result of one read of a queue."""

    messages: PulledMessages
    damaged_at: int | None = None
    """The queue offset of the damaged unit at which reading stopped, or None if there was none."""


def pull_messages(
    log: CommitLog,
    queue: ConsumeQueue,
    offset: int,
    max_messages: int,
    max_bytes: int,
    tags_codes: frozenset[int] | None,
    record_filter: RecordFilter | None,
) -> Pulled:
    """Returns the messages for `StoreReader.pull`. Stops before the first damaged unit."""
    if refusal := _offset_outside(queue, offset):
        return _nothing(queue, *refusal)
    is_searched = tags_codes is not None or record_filter is not None
    units = queue.encoded_units(offset, _UNITS_SEARCHED if is_searched else max(max_messages, 1))
    if not units:
        return _nothing(queue, GetMessageStatus.OFFSET_FOUND_NULL, queue.start_of_next_file(offset))
    if record_filter is None:
        found = _find(log, queue, offset, units, max_messages, max_bytes, tags_codes)
    else:
        found = find_wanted(log, queue, offset, units, max_messages, max_bytes, record_filter)
    end = offset + found.examined
    status = GetMessageStatus.FOUND if found.records else GetMessageStatus.NO_MATCHED_MESSAGE
    messages = PulledMessages(status, end, queue.min_offset, queue.max_offset, found.records, found.cost_ns)
    return Pulled(messages, end if found.is_damaged else None)


def _nothing(queue: ConsumeQueue, status: GetMessageStatus, next_offset: int) -> Pulled:
    return Pulled(PulledMessages(status, next_offset, queue.min_offset, queue.max_offset))


def _find(
    log: CommitLog,
    queue: ConsumeQueue,
    offset: int,
    units: bytes,
    max_messages: int,
    max_bytes: int,
    tags_codes: frozenset[int] | None,
) -> FilteredRecords:
    wanted, examined = _choose(units, max_messages, max_bytes, tags_codes)
    read = read_units(log, queue, offset, units, wanted, max_bytes)
    return FilteredRecords(read.records, examined if read.stopped_at is None else read.stopped_at, read.is_damaged)


def _offset_outside(queue: ConsumeQueue, offset: int) -> tuple[GetMessageStatus, int] | None:
    if offset < queue.min_offset:
        return GetMessageStatus.OFFSET_TOO_SMALL, queue.min_offset
    if offset == queue.max_offset:
        return GetMessageStatus.OFFSET_OVERFLOW_ONE, offset
    if offset > queue.max_offset:
        return GetMessageStatus.OFFSET_OVERFLOW_BADLY, queue.max_offset
    return None


def _choose(units: bytes, max_messages: int, max_bytes: int, tags_codes: frozenset[int] | None) -> tuple[list[int], int]:
    """Returns the indexes of the units to read, and the number of examined units.

    Includes damaged units regardless of their tags code, because clients check the tags of the messages that they receive.
    """
    wanted: list[int] = []
    total = 0
    count = len(units) // UNIT_SIZE
    for place in range(count):
        size: int = read_i32_be(units, place * UNIT_SIZE + SIZE_AT)
        if size == BLANK_SIZE or (tags_codes is not None and _is_of_others(units, place, size, tags_codes)):
            continue
        if (total + size > max_bytes or len(wanted) >= max_messages) and wanted:
            return wanted, place
        wanted.append(place)
        total += size
    return wanted, count


def _is_of_others(units: bytes, place: int, size: int, tags_codes: frozenset[int]) -> bool:
    at = place * UNIT_SIZE
    is_damaged = size <= 0 or read_i64_be(units, at) < 0
    return not is_damaged and read_i64_be(units, at + TAGS_CODE_AT) not in tags_codes
