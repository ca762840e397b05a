"""Reads a queue with a filter on the properties of each record (MessageFilter.isMatchedByCommitLog)."""

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from librt.strings import read_i32_be

from rocketmq_broker.message.record import properties_of, queue_offset_of
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.record_check import MAX_SIZE
from rocketmq_broker.store.queues.consume_queue import BLANK_SIZE, SIZE_AT, ConsumeQueue
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE
from rocketmq_broker.store.queues.unit_read import read_units

READ_AT_ONCE: Final = 256 << 10
"""The maximum size of one read in bytes. A longer record is still read in one piece."""
MAX_READ: Final = 4 << 20
"""The maximum number of bytes that one pull reads in search of matches."""
MAX_COST_NS: Final = 10_000_000
"""The maximum time that one pull may spend in the filter, in nanoseconds. The filter blocks all other work of the broker."""


class RecordFilter(Protocol):
    """A filter on the properties of records."""

    def matches(self, properties: bytes) -> bool:
        """Returns whether a record with these encoded properties matches."""

    def cost_ns(self, properties: bytes) -> int:
        """Returns an estimate of the time that `matches` takes, in nanoseconds."""


class FilteredRecords(NamedTuple):
    """The result of one filtered read."""

    records: list[bytes]
    examined: int
    """The number of examined units, counted from the pull's offset."""
    is_damaged: bool = False
    """Whether the read stopped at a unit that does not point to its message."""
    cost_ns: int = 0


def find_wanted(
    log: CommitLog, queue: ConsumeQueue, offset: int, units: bytes, max_messages: int, max_bytes: int, wants: RecordFilter
) -> FilteredRecords:
    """Returns the records that match the filter. `offset` is the queue offset of the first unit.

    Stops early after MAX_READ bytes or MAX_COST_NS nanoseconds, so that one pull cannot block the broker.
    """
    wanted: list[bytes] = []
    wanted_bytes = read_bytes = cost_ns = 0
    for end, size, part in _parts(units):
        read = read_units(log, queue, offset, units, part, READ_AT_ONCE)
        for record in read.records:
            place = queue_offset_of(record) - offset
            properties = properties_of(record)
            cost_ns += wants.cost_ns(properties)
            if wants.matches(properties):
                wanted_bytes += len(record)
                if wanted and wanted_bytes > max_bytes:
                    return FilteredRecords(wanted, place, cost_ns=cost_ns)
                wanted.append(record)
            if len(wanted) >= max_messages or cost_ns > MAX_COST_NS:
                return FilteredRecords(wanted, place + 1, cost_ns=cost_ns)
        read_bytes += min(size, MAX_SIZE)
        if read.stopped_at is not None:
            return FilteredRecords(wanted, read.stopped_at, read.is_damaged, cost_ns)
        if read_bytes > MAX_READ:
            return FilteredRecords(wanted, end, cost_ns=cost_ns)
    return FilteredRecords(wanted, len(units) // UNIT_SIZE, cost_ns=cost_ns)


def _parts(units: bytes) -> Iterator[tuple[int, int, list[int]]]:
    """Divides the units into reads of at most READ_AT_ONCE bytes.

    For each read, yields the index after its last unit, its size in bytes, and the indexes of its units.
    """
    part: list[int] = []
    size = 0
    for place in range(len(units) // UNIT_SIZE):
        unit_size: int = read_i32_be(units, place * UNIT_SIZE + SIZE_AT)
        if unit_size == BLANK_SIZE:
            continue
        if part and size + unit_size > READ_AT_ONCE:
            yield place, size, part
            part, size = [], 0
        part.append(place)
        size += max(unit_size, 0)
    if part:
        yield len(units) // UNIT_SIZE, size, part
