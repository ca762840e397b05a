"""The records that consume queue units point to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from broker.store.log.commit_log import CommitLog
from broker.store.log.record_check import MAX_SIZE, check_record
from broker.store.queues.consume_queue import ConsumeQueue, Unit


class UnitsRead(NamedTuple):
    """What was found."""

    records: list[bytes]
    """The intact ones."""
    stopped_at: int | None
    """The place of the unit that the next pull begins with, if not all were read."""
    is_damaged: bool
    """Whether that unit does not point to its message."""


def read_units(log: CommitLog, queue: ConsumeQueue, offset: int, wanted: list[tuple[int, Unit]], max_bytes: int) -> UnitsRead:
    """Reads the records of some units, each given with its place behind `offset`; ends before the first that has none."""
    records: list[bytes] = []
    total = 0
    for run in _adjacent(wanted, log.segments.segment_size):
        first = run[0][1].commit_log_offset
        length = run[-1][1].commit_log_offset + run[-1][1].size - first
        data = log.segments.read(first, max(0, min(length, MAX_SIZE)))
        for index, unit in run:
            at = unit.commit_log_offset - first
            checked = check_record(data, at, unit.commit_log_offset)
            if checked is None or (checked.queue_offset, checked.queue_id, checked.topic) != (
                offset + index, queue.queue_id, queue.topic,
            ):  # fmt: skip
                return UnitsRead(records, index, True)
            total += checked.size
            if records and total > max_bytes:
                return UnitsRead(records, index, False)
            records.append(data[at : at + checked.size])
    return UnitsRead(records, None, False)


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
