from pathlib import Path

import pytest

from rocketmq_broker.store.files import OpenFiles
from rocketmq_broker.store.log.segments import Segments
from rocketmq_broker.store.queues import unit_files
from rocketmq_broker.store.queues.consume_queue import BLANK_SIZE, UNIT, ConsumeQueue, Unit
from rocketmq_broker.store.queues.dispatch import DispatchRequest
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE, Unsynced
from tests.unit.store.crash_disk import CrashDisk

DIRECTORY = Path("/store/consumequeue/orders/0")


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


def test_a_file_is_synced_once_for_what_was_written(queue: ConsumeQueue) -> None:
    queue.put(0, 100, 10, 1)
    queue.write()
    assert [path.name for path in queue.take_unsynced().files] == ["00000000000000000000"]
    assert queue.take_unsynced() == Unsynced([], [])
    queue.put(1, 110, 10, 2)
    queue.write()
    assert len(queue.take_unsynced().files) == 1


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
    first = disk.memory.content(DIRECTORY / f"{0:020d}")
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


@pytest.fixture
def long_queue(disk: CrashDisk) -> ConsumeQueue:
    """Returns a queue of four files with 1024 messages each.

    The record of the first message is at commit log offset 1000. Each record has 100 bytes.
    """
    queue = ConsumeQueue(b"orders", 0, Segments(DIRECTORY, 1024 * UNIT_SIZE, OpenFiles(disk, 8)))
    for offset in range(4096):
        queue.put(offset, 1000 + offset * 100, 100, 0)
    queue.write()
    return queue


def cut_file(disk: CrashDisk, first_offset: int, units: int) -> None:
    path = DIRECTORY / f"{first_offset * UNIT_SIZE:020d}"
    disk.truncate(disk.open(path), units * UNIT_SIZE)


@pytest.mark.parametrize("expired", [100, 2100, 3000])
@pytest.mark.parametrize("damage", [bytes(UNIT_SIZE), UNIT.pack(0, BLANK_SIZE, 0), UNIT.pack(-5, 100, 0), UNIT.pack(0, -100, 0)])
def test_a_damaged_page_hides_no_message_from_a_search(
    long_queue: ConsumeQueue, disk: CrashDisk, damage: bytes, expired: int
) -> None:
    for first, last in ((1900, 2048), (2048, 2245)):
        long_queue.files.segments.write(first * UNIT_SIZE, damage * (last - first))
    right = expired if expired != 2100 else 1900  # one in the page counts as not expired
    log_begins = 1000 + expired * 100
    deleted = long_queue.forget_expired(log_begins)
    assert (long_queue.min_offset, len(deleted)) == (right, right // 1024)
    assert long_queue.find_first(lambda unit: unit.commit_log_offset >= log_begins) == right


@pytest.mark.parametrize("units", [0, 500])
def test_the_first_message_there_is_lies_before_a_file_that_was_cut(
    long_queue: ConsumeQueue, disk: CrashDisk, units: int
) -> None:
    cut_file(disk, 2048, units)
    assert long_queue.forget_expired(1000 + 100 * 100) == []
    assert long_queue.min_offset == 100
    assert len(long_queue.forget_expired(1000 + 3100 * 100)) == 3
    assert long_queue.min_offset == 3100


def test_zeroed_units_at_the_beginning_are_not_passed_over(long_queue: ConsumeQueue) -> None:
    long_queue.files.segments.write(0, bytes(205 * UNIT_SIZE))
    long_queue.correct_min_offset(500)
    assert long_queue.min_offset == 0


def test_a_queue_whose_units_are_all_damaged_keeps_them(long_queue: ConsumeQueue) -> None:
    for first in range(0, 4096, 1024):
        long_queue.files.segments.write(first * UNIT_SIZE, bytes(1024 * UNIT_SIZE))
    assert long_queue.forget_expired(1 << 40) == []
    assert long_queue.min_offset == 0


def test_mended_units_that_the_disk_refuses_are_kept_in_memory_but_not_all_of_them(
    long_queue: ConsumeQueue, disk: CrashDisk
) -> None:
    disk.refuse_writes_after = 0
    for offset in range(5, 6 + unit_files.MAX_REFUSED_UNITS):
        long_queue.repair(offset, Unit(9, 9, offset), may_write=True)
    assert [unit.tags_code for unit in long_queue.units(4, 5)] == [0, 0, 6, 7, 8]
    disk.refuse_writes_after = None
    long_queue.repair(5, Unit(9, 9, 5), may_write=True)
    assert [unit.tags_code for unit in long_queue.units(4, 5)] == [0, 5, 6, 7, 8]


def test_a_unit_that_is_not_written_yet_is_mended_in_memory(queue: ConsumeQueue) -> None:
    queue.put(0, 100, 10, 1)
    queue.put(1, 110, 10, 2)
    queue.repair(1, Unit(200, 20, 3), may_write=True)
    assert queue.units(0, 2) == [(100, 10, 1), (200, 20, 3)]
    assert queue.max_commit_log_offset == 220


def request(queue_offset: int) -> DispatchRequest:
    return DispatchRequest(b"orders", 0, queue_offset, 100 + queue_offset * 10, 10, queue_offset, 0, b"", True, True)


@pytest.mark.parametrize("offsets", [[0], [0, 1, 2], [0, 1, 2, 2, 3], [0, 2, 3], [0, 1, 5, 5]])
def test_units_of_a_run_are_those_that_come_one_by_one(queue: ConsumeQueue, disk: CrashDisk, offsets: list[int]) -> None:
    one_by_one = ConsumeQueue(b"orders", 1, Segments(DIRECTORY.parent / "1", 8 * UNIT_SIZE, OpenFiles(disk, 4)))
    for start in (0, 2):
        queue.put_run([request(offset) for offset in offsets[start:] or offsets])
        for offset in offsets[start:] or offsets:
            each = request(offset)
            one_by_one.put(offset, each.commit_log_offset, each.size, each.tags_code)
    assert queue.units(0, 9) == one_by_one.units(0, 9)
    assert (queue.max_offset, queue.max_commit_log_offset) == (one_by_one.max_offset, one_by_one.max_commit_log_offset)
