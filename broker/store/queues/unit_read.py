"""The records that consume queue units point to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from broker.store.log.record_check import MAX_SIZE, check_record
from broker.store.queues.consume_queue import Unit
from broker.store.queues.lost_unit import LostUnits, is_of


class UnitsRead(NamedTuple):
    """What was found."""

    records: list[bytes]
    """The intact ones."""
    was_expired: bool
    """Whether any had expired."""
    stopped_at: int | None
    """The place of the unit that the next pull begins with, if not all were read."""


def read_units(lost_units: LostUnits, offset: int, wanted: list[tuple[int, Unit]], max_bytes: int) -> UnitsRead:
    """Reads the records of some units, each given with its place behind `offset`, the queue offset where the pull begins.

    A unit without its record is looked up by `lost_units`, the pull's own.
    """
    log, queue = lost_units.log, lost_units.queue
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
                return UnitsRead(records, was_expired, index)
            else:
                continue
            total += len(record)
            if records and total > max_bytes:  # a damaged unit did not say how much it would be
                return UnitsRead(records, was_expired, index)
            records.append(record)
    return UnitsRead(records, was_expired, None)


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
