"""Consumers of several queues read the same bytes of the commit log in turn. The disk reads them once."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocketmq_broker.message.record import decode_record
from rocketmq_broker.store import MessageStore
from rocketmq_broker.store.files import OsFileSystem
from rocketmq_broker.store.log.record_check import check_record, intact_size
from tests.unit.store.conftest import append, send, small_config

QUEUES = 4
SEGMENT = 4 << 20


class Disk(OsFileSystem):
    """A disk that records reads of the commit log's first file and cannot read beyond a position."""

    def __init__(self) -> None:
        self.reads: list[int] = []
        self.bad_from = SEGMENT
        self._log = -1

    def open(self, path: Path, *, create: bool = False) -> int:
        file = super().open(path, create=create)
        if path.parent.name == "commitlog":
            self._log = file
        return file

    def read(self, file: int, length: int, position: int) -> bytes:
        if file == self._log:
            self.reads.append(length)
            if position + length > self.bad_from:
                raise OSError(errno.EIO, "a bad sector")
        return super().read(file, length, position)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def store(tmp_path: Path, disk: Disk) -> Iterator[MessageStore]:
    opened = MessageStore.open(small_config(tmp_path, commit_log_segment_size=SEGMENT, consume_queue_units_per_file=4096), disk)
    disk.reads.clear()
    yield opened
    opened.close()


def send_in_turn(store: MessageStore, first: int, count: int) -> None:
    for number in range(first, first + count):
        append(store, b"%d" % number + bytes(1000), queue_id=number % QUEUES)
    store.publish(store.write())


def pulled(store: MessageStore, queue_id: int, offset: int) -> list[int]:
    records = store.pull(b"orders", queue_id, offset, 32, 1 << 20).records
    return [int(decode_record(record).body.rstrip(b"\0")) for record in records]


def test_four_queues_in_turn_read_the_log_little_more_than_once(store: MessageStore, disk: Disk) -> None:
    send_in_turn(store, 0, 2000)
    for offset in range(0, 500, 32):
        for queue_id in range(QUEUES):
            expected = [place * QUEUES + queue_id for place in range(offset, min(offset + 32, 500))]
            assert pulled(store, queue_id, offset) == expected
    assert sum(disk.reads) < 1.5 * store.commit_log_max_offset


def test_a_pull_here_and_there_reads_only_its_own(store: MessageStore, disk: Disk) -> None:
    send_in_turn(store, 0, 2000)
    for offset in (400, 0, 300, 100):
        disk.reads.clear()
        records = store.pull(b"orders", 1, offset, 1, 1 << 20).records
        assert disk.reads == [len(records[0])]


def test_messages_sent_after_a_pull_are_seen(store: MessageStore) -> None:
    for first in range(0, 40, 4):
        send_in_turn(store, first, 4)
        for queue_id in range(QUEUES):
            assert pulled(store, queue_id, first // 4) == [first + queue_id]


def test_records_taken_back_are_not_kept(store: MessageStore) -> None:
    send_in_turn(store, 0, 8)
    pulled(store, 0, 0)
    send_in_turn(store, 8, 2)
    store.flush()
    append(store, b"taken back" + bytes(1000))
    store.write()
    assert pulled(store, 0, 2) == [8]  # reads on, over what no consumer may see yet
    store.abandon_unflushed()
    append(store, b"in place.." + bytes(1000))
    store.publish(store.write())
    (record,) = store.pull(b"orders", 0, 3, 32, 1 << 20).records
    assert decode_record(record).body.startswith(b"in place..")


def test_a_bad_sector_behind_fails_only_the_pull_that_needs_it(store: MessageStore, disk: Disk) -> None:
    send_in_turn(store, 0, 400)
    disk.bad_from = store.commit_log_max_offset // 2
    assert pulled(store, 0, 0) == list(range(0, 128, 4))
    assert pulled(store, 1, 0) == list(range(1, 128, 4))
    with pytest.raises(OSError, match="bad sector"):
        pulled(store, 2, 64)


def test_what_was_kept_of_a_deleted_segment_is_not_shown(store: MessageStore) -> None:
    send_in_turn(store, 0, 8)
    store._log.read_run(0, 100)
    assert store._log.read_run(10, 50)[1] == 0
    store._log.segments.forget_before(SEGMENT)
    assert store._log.read_run(10, 50) == (b"", 10)


def test_a_byte_that_is_checked_cannot_change_unnoticed(store: MessageStore) -> None:
    place = send(store, b"a body", topic=b"orders", properties=b"KEYS\x01k\x02")[0]
    record = store.read(place.commit_log_offset)
    assert intact_size(record, 0, 0, b"orders", 0, 0) == len(record)
    for at in range(len(record)):
        damaged = bytearray(record)
        damaged[at] ^= 0x80
        taken = intact_size(bytes(damaged), 0, 0, b"orders", 0, 0)
        checked = check_record(bytes(damaged), 0, 0)
        same_place = checked is not None and (checked.queue_id, checked.queue_offset, checked.topic) == (0, 0, b"orders")
        assert taken == (len(record) if same_place else 0), f"the byte at {at}"
    for end in range(len(record)):
        assert intact_size(record[:end], 0, 0, b"orders", 0, 0) == 0
