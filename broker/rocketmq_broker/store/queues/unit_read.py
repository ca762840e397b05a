"""Reads the records to which consume queue units point."""

from typing import Final, NamedTuple

from librt.strings import read_i32_be, read_i64_be

from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.record_check import MAX_SIZE, intact_size
from rocketmq_broker.store.queues.consume_queue import SIZE_AT, ConsumeQueue
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE

MAX_PASSED_OVER: Final = 8 << 10
"""The maximum gap in bytes between two wanted records in one read. Reading a short gap takes less time than a second read."""
MAX_RUN_LENGTH: Final = 512 << 10
"""The maximum size of one read in bytes. A longer record is still read in one piece."""


class UnitsRead(NamedTuple):
    """The result of reading some units' records."""

    records: list[bytes]
    """The intact records."""
    stopped_at: int | None
    """The index of the unit at which the next pull begins, or None if all records were read."""
    is_damaged: bool
    """Whether reading stopped because the unit at `stopped_at` does not point to its message."""


def read_units(log: CommitLog, queue: ConsumeQueue, offset: int, units: bytes, wanted: list[int], max_bytes: int) -> UnitsRead:
    """Reads the records of the wanted units. Stops before the first unit that does not point to its message.

    `offset` is the queue offset of the first unit in `units`. `wanted` contains the indexes of the wanted units, in ascending
    order.
    """
    records: list[bytes] = []
    total = 0
    topic, queue_id, segment_size = queue.topic, queue.queue_id, log.segments.segment_size
    number, count = 0, len(wanted)
    while number < count:
        first: int = read_i64_be(units, wanted[number] * UNIT_SIZE)
        length, behind = _run(units, wanted, number, segment_size)
        data, data_begin = log.read_run(first, min(length, MAX_SIZE))
        for place in wanted[number:behind]:
            begin: int = read_i64_be(units, place * UNIT_SIZE)
            at = begin - data_begin
            size = intact_size(data, at, begin, topic, queue_id, offset + place) if at >= 0 else 0
            if not size:
                return UnitsRead(records, place, True)
            total += size
            if total > max_bytes and records:
                return UnitsRead(records, place, False)
            records.append(data[at : at + size])
        number = behind
    return UnitsRead(records, None, False)


def _run(units: bytes, wanted: list[int], number: int, segment_size: int) -> tuple[int, int]:
    """Returns the length of one read in bytes, and the position in `wanted` of the first unit after this read.

    The read begins with the record of the unit at `wanted[number]`. It includes the next wanted records that are close to it in
    the same segment. The read also includes the records of other queues between them, because the queues of a topic alternate in
    the log.
    """
    begin: int = read_i64_be(units, wanted[number] * UNIT_SIZE)
    most = begin - begin % segment_size + segment_size - begin
    most = min(most, MAX_RUN_LENGTH)
    behind = len(wanted)
    length = _end_of(units, wanted[behind - 1]) - begin
    if 0 < length <= most and length <= (behind - number) * MAX_PASSED_OVER:
        return length, behind
    length, behind = max(_end_of(units, wanted[number]) - begin, 0), number + 1
    while behind < len(wanted):
        at = wanted[behind] * UNIT_SIZE
        passed_over = read_i64_be(units, at) - begin - length
        # A damaged unit may point anywhere. It must not shorten the read of the units before it.
        end = _end_of(units, wanted[behind]) - begin
        if not 0 <= passed_over <= MAX_PASSED_OVER or end > most:
            break
        length = max(end, length)
        behind += 1
    return length, behind


def _end_of(units: bytes, place: int) -> int:
    """Returns the commit log offset after the record of a unit, or the record's offset if the unit's size is damaged."""
    size: int = read_i32_be(units, place * UNIT_SIZE + SIZE_AT)
    return read_i64_be(units, place * UNIT_SIZE) + max(size, 0)
