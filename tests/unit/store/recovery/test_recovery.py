import errno
import os
import shutil
from pathlib import Path

import pytest

from rocketmq_broker.message import sysflag
from rocketmq_broker.message.record import HEAD_V4, QUEUE_OFFSET_POSITION, decode_record
from rocketmq_broker.store import DamagedStore, MessageStore, StoreConfig, StoreUnwritable
from rocketmq_broker.store.files import OsFileSystem
from rocketmq_broker.store.queues.consume_queue import UNIT
from tests.stored_records import encoded
from tests.unit.store.conftest import (
    NOW,
    append,
    bodies,
    crash,
    delete_topic,
    offsets,
    open_store,
    said,
    send,
    small_config,
)

SEGMENT = "00000000000000000000"


def patch(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def files_of(config: StoreConfig) -> dict[str, bytes]:
    return {
        str(path.relative_to(config.root)): path.read_bytes()
        for path in config.root.rglob("*")
        if path.is_file() and path.name not in ("lock", "progress.json")
    }


def test_a_clean_stop_leaves_nothing_to_do(config: StoreConfig, store: MessageStore) -> None:
    send(store, b"1", b"2", properties=b"KEYS\x01k")
    assert (config.root / "abort").exists()
    store.close()
    assert not (config.root / "abort").exists()
    again = open_store(config)
    assert again.recovery.was_stopped_cleanly
    assert again.recovery.actions == []
    assert again.recovery.records_scanned <= 1
    assert bodies(again) == [b"1", b"2"]
    assert send(again, b"3")[0].queue_offset == 2


def test_opening_and_closing_changes_no_file(config: StoreConfig, store: MessageStore) -> None:
    for number in range(30):
        send(store, b"%d" % number, properties=b"KEYS\x01k%d" % number)
    store.close()
    before = files_of(config)
    open_store(config).close()
    assert files_of(config) == before


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_a_killed_broker_loses_nothing_that_was_written(config: StoreConfig, store: MessageStore, is_checkpointed: bool) -> None:
    for number in range(40):
        send(store, b"%d" % number, queue_id=number % 3, properties=b"KEYS\x01k%d" % number)
        if is_checkpointed and number == 20:
            store.flush()
    crash(store)
    again = open_store(config)
    assert not again.recovery.was_stopped_cleanly
    assert [bodies(again, queue_id=queue_id) for queue_id in range(3)] == [
        [b"%d" % number for number in range(40) if number % 3 == queue_id] for queue_id in range(3)
    ]
    assert all(len(again.query(b"orders", f"k{number}", 32, 0, NOW * 2).records) == 1 for number in range(40))
    assert (again.recovery.scanned_from > 0) is is_checkpointed


def test_recovering_twice_doubles_nothing(config: StoreConfig, store: MessageStore) -> None:
    send(store, b"1", b"2")
    for _ in range(3):
        crash(store)
        store = open_store(config)
    assert bodies(store) == [b"1", b"2"]
    assert store.max_offset(b"orders", 0) == 2


@pytest.mark.parametrize("kept", [0, 3, 8, 40, 100])
def test_a_torn_tail_is_cut_off_and_zeroed(config: StoreConfig, store: MessageStore, kept: int) -> None:
    send(store, b"whole")
    (torn,) = send(store, b"t" * 200)
    crash(store)
    path = config.commit_log_directory / SEGMENT
    patch(path, torn.commit_log_offset + kept, bytes(torn.end_position - torn.commit_log_offset - kept))
    again = open_store(config)
    assert bodies(again) == [b"whole"]
    assert again.written_position == torn.commit_log_offset
    assert path.read_bytes()[torn.commit_log_offset :].strip(b"\0") == b""
    assert path.stat().st_size == 1024
    assert ("torn" in said(again)) is (kept > 2)
    assert offsets(send(again, b"next")[0]) == (torn.commit_log_offset, 1, torn.commit_log_offset + 101)


def test_old_bytes_behind_a_cut_are_never_taken_for_records(config: StoreConfig, store: MessageStore) -> None:
    first, _, third = send(store, b"a" * 100, b"b" * 100, b"c" * 100)
    crash(store)
    patch(
        config.commit_log_directory / SEGMENT,
        first.commit_log_offset,
        bytes(third.commit_log_offset + 8 - first.commit_log_offset),
    )
    again = open_store(config)
    send(again, b"A" * 100, b"B" * 100)
    crash(again)
    assert bodies(open_store(config)) == [b"A" * 100, b"B" * 100]


def test_left_overs_of_an_uncleared_end_are_not_revived(config: StoreConfig, store: MessageStore) -> None:
    """Recovery ignores old records after the end of the log, which RocketMQ does not clear when it truncates a log."""
    (first,) = send(store, b"first", store_timestamp=NOW + 5000)
    crash(store)
    left_over = first.end_position + 50
    record = encoded("other", b"old", commit_log_offset=left_over, born_timestamp=NOW, store_timestamp=NOW)
    patch(config.commit_log_directory / SEGMENT, left_over, record)
    again = open_store(config)
    assert again.written_position == first.end_position
    assert again.max_offset(b"other", 0) == 0


@pytest.mark.parametrize("was_killed", [True, False])
@pytest.mark.parametrize("is_foreign", [True, False])
@pytest.mark.parametrize("position", [0, 4, 8, 20, 28, 36, 60, 84, 90, 100])
def test_damage_in_the_middle_costs_that_record_only(
    config: StoreConfig, store: MessageStore, position: int, was_killed: bool, is_foreign: bool
) -> None:
    places = send(store, *[b"%d" % number * 30 for number in range(12)])
    other = send(store, b"other", queue_id=1)
    store.flush()
    crash(store) if was_killed else store.close()
    damaged = places[3].commit_log_offset + position
    segment = config.commit_log_directory / f"{damaged // 1024 * 1024:020d}"
    byte = segment.read_bytes()[damaged % 1024]
    patch(segment, damaged % 1024, bytes([byte ^ 0x41]))
    if is_foreign:
        (config.root / "progress.json").unlink()
    again = open_store(config)
    survivors = [b"%d" % number * 30 for number in range(12) if number != 3]
    got = bodies(again)
    # Fields that no checksum covers may change a message unseen; it must not cost others.
    assert [body for body in got if body != b"3" * 30] == survivors
    assert bodies(again, queue_id=1) == [b"other"]
    assert again.written_position == other[0].end_position
    assert send(again, b"next")[0].queue_offset == 12
    again.close()
    assert [body for body in bodies(open_store(config)) if body != b"3" * 30] == [*survivors, b"next"]


def test_damage_that_hits_a_record_in_front_of_others_is_reported(config: StoreConfig, store: MessageStore) -> None:
    places = send(store, b"1" * 50, b"2" * 50, b"3" * 50)
    crash(store)
    patch(config.commit_log_directory / SEGMENT, places[1].commit_log_offset, b"\xff" * 60)
    again = open_store(config)
    assert bodies(again) == [b"1" * 50, b"3" * 50]
    assert again.recovery.damaged == [(places[1].commit_log_offset, places[2].commit_log_offset - places[1].commit_log_offset)]
    assert "damaged bytes at" in said(again)
    assert "lost 1 damaged messages" in said(again)
    assert again.max_offset(b"orders", 0) == 3


@pytest.mark.parametrize(
    ("damaged", "flipped"),
    [({2, 4}, None), ({0, 1, 3, 5, 6}, None), ({1, 3, 4, 6, 8, 10}, None), ({2, 4, 6, 7}, 5), (set(range(1, 150, 2)), None)],
    ids=["one between two", "a lost beginning", "several between", "one with a wrong offset", "very many"],
)
def test_messages_between_damaged_ones_keep_their_queue_offsets(tmp_path: Path, damaged: set[int], flipped: int | None) -> None:
    config = small_config(tmp_path, commit_log_segment_size=1 << 20)
    store = MessageStore.open(config)
    count = max(damaged) + 2
    places = [it.commit_log_offset for it in send(store, *[b"%d" % number * 30 for number in range(count)])]
    send(store, b"other", queue_id=1)
    crash(store)
    for number in damaged:
        patch(config.commit_log_directory / SEGMENT, places[number] + HEAD_V4.size, b"damaged")
    if flipped is not None:
        patch(config.commit_log_directory / SEGMENT, places[flipped] + QUEUE_OFFSET_POSITION, b"\x00\x10")

    again = open_store(config)

    expected = {number: b"%d" % number * 30 for number in range(count) if number not in damaged and number != flipped}
    found = [decode_record(it) for at in range(count) for it in again.pull(b"orders", 0, at, 1, 1 << 20).records]
    assert {record.queue_offset: record.body for record in found} == expected
    assert send(again, b"next")[0].queue_offset == count


def test_damage_at_a_segments_end_does_not_hide_the_next_segment(config: StoreConfig, store: MessageStore) -> None:
    send(store, *[b"x" * 200] * 3)
    (second,) = send(store, b"second segment" * 10)
    crash(store)
    assert second.commit_log_offset == 1024 or second.commit_log_offset < 1024
    send_again = open_store(config)
    for number in range(4):
        send(send_again, b"later %d" % number * 20)
    crash(send_again)
    patch(config.commit_log_directory / SEGMENT, 3 * 297, b"\xee" * (1024 - 3 * 297))
    got = bodies(open_store(config))
    assert got[:3] == [b"x" * 200] * 3
    assert got[-1] == b"later 3" * 20


def test_missing_consume_queues_are_rebuilt_byte_for_byte(config: StoreConfig, store: MessageStore) -> None:
    send(store, *[b"%d" % number for number in range(30)], properties=b"TAGS\x01A")
    store.close()
    before = files_of(config)
    shutil.rmtree(config.consume_queue_directory)
    again = open_store(config)
    assert "consume queues are missing" in said(again)
    again.close()
    assert files_of(config) == before


@pytest.mark.parametrize("is_foreign", [True, False])
def test_one_missing_consume_queue_is_rebuilt(config: StoreConfig, store: MessageStore, is_foreign: bool) -> None:
    for number in range(60):
        send(store, b"%d" % number * 20, queue_id=number % 2)
    store.close()
    shutil.rmtree(config.consume_queue_directory / "orders" / "1")
    if is_foreign:
        (config.root / "progress.json").unlink()
    again = open_store(config)
    for queue_id in range(2):
        assert bodies(again, queue_id=queue_id) == [b"%d" % number * 20 for number in range(60) if number % 2 == queue_id]


@pytest.mark.parametrize("damage", ["empty", "short", "zeros", "nonsense"])
def test_a_damaged_consume_queue_file_is_rebuilt(config: StoreConfig, store: MessageStore, damage: str) -> None:
    sent = [b"%d" % number for number in range(12)]
    send(store, *sent)
    store.close()
    path = config.consume_queue_directory / "orders" / "0" / f"{8 * 20:020d}"
    contents = {"empty": b"", "short": path.read_bytes()[:35], "zeros": bytes(160), "nonsense": b"\xff" * 160}
    path.write_bytes(contents[damage])
    again = open_store(config)
    assert bodies(again) == sent
    assert again.recovery.actions


def test_a_consume_queue_that_points_past_the_log_is_cut(config: StoreConfig, store: MessageStore) -> None:
    (first,) = send(store, b"kept")
    send(store, b"lost", b"lost 2")
    store.flush()
    crash(store)
    patch(config.commit_log_directory / SEGMENT, first.end_position, bytes(1024 - first.end_position))
    (config.root / "progress.json").unlink()
    again = open_store(config)
    assert bodies(again) == [b"kept"]
    assert again.max_offset(b"orders", 0) == 1
    assert send(again, b"next")[0].queue_offset == 1
    assert "dropped 2 units" in said(again)


def test_a_last_unit_that_points_to_a_message_of_another_queue_is_cut(config: StoreConfig, store: MessageStore) -> None:
    (other,) = send(store, b"other", topic=b"others")
    send(store, b"kept")
    store.flush()
    crash(store)
    unit = UNIT.pack(other.commit_log_offset, other.end_position - other.commit_log_offset, 0)
    patch(config.root / "consumequeue" / "orders" / "0" / SEGMENT, UNIT.size, unit)
    again = open_store(config)
    assert send(again, b"next")[0].queue_offset == 1
    assert bodies(again) == [b"kept", b"next"]
    assert "dropped 1 unit" in said(again)


def test_a_missing_index_is_rebuilt(config: StoreConfig, store: MessageStore) -> None:
    for number in range(20):
        send(store, b"%d" % number, properties=b"KEYS\x01k%d\x02UNIQ_KEY\x01id%d" % (number, number))
    store.close()
    shutil.rmtree(config.index_directory)
    again = open_store(config)
    assert all(len(again.query(b"orders", f"id{number}", 32, 0, NOW * 2).records) == 1 for number in range(20))
    assert "index" in said(again)


def test_an_empty_segment_file_is_given_its_size(config: StoreConfig, store: MessageStore) -> None:
    send(store, b"1")
    store.close()
    (config.commit_log_directory / f"{1024:020d}").touch()
    again = open_store(config)
    assert bodies(again) == [b"1"]
    send(again, *[b"x" * 300] * 4)
    assert len(bodies(again)) == 5


def test_a_store_without_its_commit_log_starts_empty(config: StoreConfig, store: MessageStore) -> None:
    send(store, b"1")
    store.close()
    shutil.rmtree(config.commit_log_directory)
    again = open_store(config)
    assert (again.max_offset(b"orders", 0), again.queues()) == (0, {})
    assert "commit log is missing" in said(again)
    assert offsets(send(again, b"new")[0]) == (0, 0, 100)


def test_a_segment_missing_in_the_middle_is_for_a_person_to_look_at(config: StoreConfig, store: MessageStore) -> None:
    send(store, *[b"x" * 600] * 4)
    store.close()
    (config.commit_log_directory / f"{1024:020d}").unlink()
    with pytest.raises(DamagedStore, match="a file is missing in"):
        open_store(config)


def test_another_segment_size_is_refused(config: StoreConfig, store: MessageStore) -> None:
    send(store, *[b"x" * 600] * 2)
    store.close()
    with pytest.raises(DamagedStore, match="set the file size with which the store was created"):
        open_store(small_config(config.root, commit_log_segment_size=512))
    assert bodies(open_store(config)) == [b"x" * 600] * 2


def test_the_checkpoint_is_4096_bytes_of_which_three_timestamps(config: StoreConfig, store: MessageStore) -> None:
    send(store, b"1", properties=b"KEYS\x01k", store_timestamp=NOW + 7)
    store.close()
    content = (config.root / "checkpoint").read_bytes()
    assert content == (NOW + 7).to_bytes(8, "big") * 3 + bytes(4072)


def test_without_progress_a_killed_store_is_read_from_the_checkpoint_on(config: StoreConfig, store: MessageStore) -> None:
    for number in range(20):
        send(store, b"x" * 300, properties=b"KEYS\x01k", store_timestamp=NOW + number * 1000)
    store.flush()
    crash(store)
    (config.root / "progress.json").unlink()
    again = open_store(config)
    # Three seconds before the last one of NOW + 19 s; two messages fill a segment.
    assert again.recovery.scanned_from == 8 * 1024
    assert len(bodies(again)) == 20


def test_queues_whose_first_messages_expired_keep_their_offsets_when_rebuilt(config: StoreConfig, store: MessageStore) -> None:
    for number in range(30):
        send(store, b"%d" % number * 100)
    first_kept = store._log.segments.starts[3]
    store.close()
    for start in range(0, first_kept, 1024):
        (config.commit_log_directory / f"{start:020d}").unlink()
    shutil.rmtree(config.consume_queue_directory)
    again = open_store(config)
    low = again.min_offset(b"orders", 0)
    assert low > 0
    assert bodies(again) == [b"%d" % number * 100 for number in range(low, 30)]
    again.close()
    assert open_store(config).min_offset(b"orders", 0) == low


def test_a_topic_that_was_deleted_and_created_again_stays_so(config: StoreConfig, store: MessageStore) -> None:
    send(store, *[b"old"] * 5)
    delete_topic(store, b"orders")
    send(store, b"new 1", b"new 2")
    crash(store)
    again = open_store(config)
    assert bodies(again) == [b"new 1", b"new 2"]
    assert append(again).queue_offset == 2
    crash(again)


def test_foreign_folders_among_the_queues_are_passed_over(config: StoreConfig, store: MessageStore) -> None:
    send(store, b"1")
    store.close()
    (config.consume_queue_directory / "no.topic" / "0").mkdir(parents=True)
    (config.consume_queue_directory / "orders" / "lost+found").mkdir()
    again = open_store(config)
    assert again.queues() == {b"orders": [0]}


@pytest.mark.parametrize("is_foreign", [True, False])
@pytest.mark.parametrize("damage", ["missing", "empty", "short", "zeros"])
def test_a_consume_queue_file_lost_in_the_middle_is_rebuilt(
    config: StoreConfig, store: MessageStore, damage: str, is_foreign: bool
) -> None:
    sent = [b"%d" % number for number in range(44)]
    send(store, *sent)
    send(store, *[b"x" * 800] * 5, topic=b"credits")
    store.close()
    path = config.consume_queue_directory / "orders" / "0" / f"{8 * 20:020d}"
    contents = {"empty": b"", "short": path.read_bytes()[:60], "zeros": path.read_bytes()[:60] + bytes(100)}
    path.unlink() if damage == "missing" else path.write_bytes(contents[damage])
    if is_foreign:
        (config.root / "progress.json").unlink()

    again = open_store(config)

    assert bodies(again) == sent
    assert "orders/0 is missing units before offset 16" in said(again)
    assert send(again, b"next")[0].queue_offset == 44


@pytest.mark.parametrize("unit", [0, 13, 29])
@pytest.mark.parametrize("byte", range(12))
@pytest.mark.parametrize("are_adjacent", [False, True])
def test_a_flipped_byte_in_a_consume_queue_costs_no_message(
    config: StoreConfig, store: MessageStore, unit: int, byte: int, are_adjacent: bool
) -> None:
    sent = [b"%d" % number for number in range(30)]
    for number, body in enumerate(sent):
        send(store, body)
        if not are_adjacent:
            send(store, b"other %d" % number, topic=b"credits")
    store.close()
    path = config.consume_queue_directory / "orders" / "0" / f"{unit // 8 * 8 * 20:020d}"
    at = unit % 8 * 20 + byte
    patch(path, at, bytes([path.read_bytes()[at] ^ 0x91]))

    again = open_store(config)

    assert bodies(again) == sent
    assert send(again, b"next")[0].queue_offset == 30


def test_a_page_of_damaged_units_costs_no_message(config: StoreConfig, store: MessageStore) -> None:
    sent = [b"%d" % number for number in range(30)]
    send(store, *sent)
    store.close()
    patch(config.consume_queue_directory / "orders" / "0" / f"{8 * 20:020d}", 7, b"\x5a" * 110)
    assert bodies(open_store(config)) == sent


def test_records_behind_damage_stay_though_the_log_has_to_be_read_twice(config: StoreConfig, store: MessageStore) -> None:
    send(store, b"1", b"2", b"3", topic=b"quiet")
    for number in range(12):
        send(store, b"%d" % number * 200, store_timestamp=NOW + number * 10_000, properties=b"KEYS\x01k")
    store.flush()
    late = NOW + 120_000
    send(store, b"4", topic=b"quiet", store_timestamp=late)
    (damaged,) = send(store, b"damaged", topic=b"gone", store_timestamp=late)
    send(store, b"behind", b"further behind", topic=b"credits", store_timestamp=late)
    crash(store)
    (config.root / "progress.json").unlink()
    shutil.rmtree(config.consume_queue_directory / "quiet")
    start = damaged.commit_log_offset // 1024 * 1024
    patch(config.commit_log_directory / f"{start:020d}", damaged.commit_log_offset - start + 90, b"D")

    again = open_store(config)

    assert "read again" in said(again)
    assert bodies(again, topic=b"credits") == [b"behind", b"further behind"]
    assert bodies(again, topic=b"quiet") == [b"1", b"2", b"3", b"4"]


def test_a_flipped_bit_in_what_is_known_of_progress_costs_time_only(config: StoreConfig, store: MessageStore) -> None:
    send(store, b"1", b"2")
    store.close()
    path = config.root / "progress.json"
    path.write_bytes(path.read_bytes().replace(b"orders", b"\xefrders"))
    assert bodies(open_store(config)) == [b"1", b"2"]


@pytest.mark.parametrize("is_foreign", [True, False])
@pytest.mark.parametrize("count", [3, 44])
def test_a_consume_queue_that_lost_its_first_file_is_rebuilt(
    config: StoreConfig, store: MessageStore, count: int, is_foreign: bool
) -> None:
    sent = [b"%d" % number for number in range(count)]
    send(store, *sent, properties=b"KEYS\x01k")
    send(store, *[b"x" * 800] * 5, topic=b"credits", properties=b"KEYS\x01k")
    store.close()
    (config.consume_queue_directory / "orders" / "0" / f"{0:020d}").unlink()
    if is_foreign:
        (config.root / "progress.json").unlink()

    again = open_store(config)

    assert bodies(again) == sent
    assert send(again, b"next")[0].queue_offset == count


def planted(offset: int, queue_offset: int) -> bytes:
    """Returns a complete record of a committed order, as a client can write it into a body. It claims this commit log offset."""
    return encoded(
        "orders", b"evil", queue_offset=queue_offset, commit_log_offset=offset, sys_flag=sysflag.TRANSACTION_COMMIT_TYPE,
        born_timestamp=NOW, store_timestamp=NOW + 10**9,
    )  # fmt: skip


@pytest.mark.parametrize("queue_offset", [0, 1, 2, 3])
@pytest.mark.parametrize("are_queues_written", [True, False])
@pytest.mark.parametrize(("place", "content"), [(88, b"\xee"), (4, b"\xee" * 4), (28, b"\xee" * 8), (300, bytes(300))])
def test_a_record_within_the_body_of_a_damaged_one_is_never_revived(
    config: StoreConfig, store: MessageStore, place: int, content: bytes, are_queues_written: bool, queue_offset: int
) -> None:
    send(store, b"first")
    begins = store.written_position
    (damaged,) = send(store, b"x" * 40 + planted(begins + HEAD_V4.size + 40, queue_offset) + b"x" * 200)
    if are_queues_written:
        send(store, b"last")
    store.flush()
    crash(store)
    patch(config.commit_log_directory / SEGMENT, begins + place, content[: damaged.end_position - begins - place])
    if not are_queues_written:
        shutil.rmtree(config.consume_queue_directory)
    again = open_store(config)
    assert b"evil" not in bodies(again)


class RefusingDisk(OsFileSystem):
    """A disk that fails the next sync in a folder, drops the data since the last sync, and accepts later syncs."""

    def __init__(self) -> None:
        self.refused: Path | None = None
        self._synced: dict[Path, bytes] = {}
        self._paths: dict[int, Path] = {}

    def open(self, path: Path, *, create: bool = False) -> int:
        file = super().open(path, create=create)
        self._paths[file] = path
        return file

    def sync(self, file: int) -> None:
        path = self._paths[file]
        if self.refused is not None and path.is_relative_to(self.refused):
            self.refused = None
            path.write_bytes(self._synced.get(path, bytes(path.stat().st_size)))
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(file)
        self._synced[path] = path.read_bytes()


@pytest.mark.parametrize("folder", ["consumequeue", "index"])
def test_what_a_refused_sync_lost_of_queues_and_index_is_found_in_the_log_by_the_next_start(tmp_path: Path, folder: str) -> None:
    disk, config = RefusingDisk(), small_config(tmp_path, commit_log_segment_size=1 << 16)
    store = MessageStore.open(config, disk)
    send(store, b"1", b"2", properties=b"KEYS\x01k")
    store.flush()
    send(store, b"3", b"4", properties=b"KEYS\x01k")
    disk.refused = tmp_path / folder
    with pytest.raises(StoreUnwritable, match="cannot flush the store"):
        store.flush()
    send(store, b"5", properties=b"KEYS\x01k")
    store.flush()
    store.close()
    again = open_store(config)
    assert not again.recovery.was_stopped_cleanly
    assert bodies(again) == [b"1", b"2", b"3", b"4", b"5"]
    assert len(again.query(b"orders", "k", 32, 0, NOW * 2).records) == 5
    send(again, b"6")
    again.close()
    last = open_store(config)
    assert last.recovery.was_stopped_cleanly
    assert bodies(last) == [b"1", b"2", b"3", b"4", b"5", b"6"]
