"""The records that consume queue units point to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.record_check import MAX_SIZE, intact_size
from rocketmq_broker.store.queues.consume_queue import ConsumeQueue, Unit

MOST_PASSED_OVER: Final = 8 << 10
"""Bytes of other queues' records between two wanted ones: reading them too takes less time than a second read."""
LONGEST_RUN: Final = 512 << 10
"""Bytes of one read, unless one record has more."""


class UnitsRead(NamedTuple):
    """The result of reading some units' records."""

    records: list[bytes]
    """The intact records."""
    stopped_at: int | None
    """The place of the unit at which the next pull begins, if not all were read."""
    is_damaged: bool
    """Whether that unit does not point to its message."""


def read_units(log: CommitLog, queue: ConsumeQueue, offset: int, wanted: list[tuple[int, Unit]], max_bytes: int) -> UnitsRead:
    """Reads the records of some units, each given with its place after `offset`; ends before the first that has none."""
    records: list[bytes] = []
    total = 0
    topic, queue_id = queue.topic, queue.queue_id
    for length, run in _runs(wanted, log.segments.segment_size):
        first = run[0][1].commit_log_offset
        data = log.segments.read(first, min(length, MAX_SIZE))
        for index, unit in run:
            begin = unit.commit_log_offset
            at = begin - first
            size = intact_size(data, at, begin, topic, queue_id, offset + index)
            if not size:
                return UnitsRead(records, index, True)
            total += size
            if records and total > max_bytes:
                return UnitsRead(records, index, False)
            records.append(data[at : at + size])
    return UnitsRead(records, None, False)


def _runs(wanted: list[tuple[int, Unit]], segment_size: int) -> Iterator[tuple[int, list[tuple[int, Unit]]]]:
    """Yields units whose records lie close together in one segment, one read each, with its length.

    The queues of a topic take turns in the log, so records of others lie in between.
    """
    run: list[tuple[int, Unit]] = []
    run_begin = run_end = segment_end = 0
    for place in wanted:
        begin, size, _ = place[1]
        # A damaged unit may name any place, and must not shorten the read for the units before it.
        end = begin + size if size > 0 else begin
        is_near = run_end <= begin <= run_end + MOST_PASSED_OVER and begin < segment_end and end <= run_begin + LONGEST_RUN
        if run and not is_near:
            yield run_end - run_begin, run
            run = []
        if not run:
            run_begin, segment_end = begin, begin - begin % segment_size + segment_size
        run.append(place)
        run_end = end
    if run:
        yield run_end - run_begin, run
