from __future__ import annotations

from pathlib import Path

import pytest

from broker.store.consume_queue import UNIT_SIZE, ConsumeQueue
from broker.store.files import OpenFiles
from broker.store.segments import Segments

from .crash_disk import CrashDisk

DIRECTORY = Path("/store/consumequeue/orders/0")


@pytest.fixture
def disk() -> CrashDisk:
    return CrashDisk()


@pytest.fixture
def queue(disk: CrashDisk) -> ConsumeQueue:
    return ConsumeQueue(b"orders", 0, Segments(DIRECTORY, 8 * UNIT_SIZE, OpenFiles(disk, 4)))


def test_a_unit_that_is_there_already_changes_nothing(queue: ConsumeQueue) -> None:
    queue.put(0, 100, 10, 1)
    queue.put(1, 110, 10, 2)
    queue.put(0, 900, 90, 9)
    assert queue.units(0, 9) == [(100, 10, 1), (110, 10, 2)]
    assert (queue.max_offset, queue.max_commit_log_offset) == (2, 120)


def test_offsets_that_were_skipped_hold_no_message_and_those_behind_them_keep_their_place(queue: ConsumeQueue) -> None:
    queue.put(0, 100, 10, 1)
    queue.put(3, 130, 10, 4)
    assert [queue.unit(offset) == (100, 10, 1) for offset in range(3)] == [True, False, False]
    assert queue.unit(3) == (130, 10, 4)
    queue.write()
    assert queue.units(3, 5) == [(130, 10, 4)]
    assert len({tuple(unit) for unit in queue.units(1, 2)}) == 1


def test_there_are_no_units_behind_the_last(queue: ConsumeQueue) -> None:
    assert queue.units(0, 5) == []
    queue.put(0, 100, 10, 1)
    assert (queue.units(1, 5), queue.units(7, 5), queue.unit(1)) == ([], [], None)
    queue.write()
    assert queue.units(1, 5) == []


def test_units_that_a_full_disk_refuses_are_read_from_memory_and_written_later(queue: ConsumeQueue, disk: CrashDisk) -> None:
    disk.refuse_writes_after = 0
    units = [(number * 10, 10, number) for number in range(5000)]
    for number, unit in enumerate(units):
        queue.put(number, *unit)
    assert queue.units(0, 6000) == units
    with pytest.raises(OSError, match="no space"):
        queue.write()
    disk.refuse_writes_after = None
    queue.write()
    assert [queue.unit(number) for number in range(5000)] == units
    first = disk.inodes[disk.names[DIRECTORY / f"{0:020d}"]].content
    assert len(first) == 8 * UNIT_SIZE
    assert int.from_bytes(first[20:28], "big") == 10


@pytest.mark.parametrize("is_written", [False, True])
def test_a_queue_may_begin_with_more_blank_units_than_are_looked_at_in_one_go(disk: CrashDisk, is_written: bool) -> None:
    queue = ConsumeQueue(b"orders", 0, Segments(DIRECTORY, 8000 * UNIT_SIZE, OpenFiles(disk, 4)))
    for offset in range(15_000, 15_010):
        queue.put(offset, offset * 100, 100, 0)
    if is_written:
        queue.write()
    queue.correct_min_offset(0)
    assert queue.min_offset == 15_000
    queue.correct_min_offset(1_500_300)
    assert queue.min_offset == 15_003
