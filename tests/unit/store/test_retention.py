from __future__ import annotations

import time
from pathlib import Path

import pytest

from broker.store import MessageStore, StoreConfig, StoreUnwritable

from .conftest import NOW, append, bodies, send, small_config
from .crash_disk import CrashDisk

HOUR = 3_600_000
CONFIG = small_config(Path("/store"), file_reserved_hours=72, delete_when=str(time.localtime(NOW // 1000).tm_hour))
LATER = NOW + 96 * HOUR
"""The same hour of the day, four days later."""


@pytest.fixture
def disk() -> CrashDisk:
    return CrashDisk()


@pytest.fixture
def store(disk: CrashDisk) -> MessageStore:
    opened = MessageStore.open(CONFIG, disk)
    for number in range(40):
        send(opened, b"%d" % number * 100, properties=b"KEYS\x01k%d" % number, store_timestamp=NOW + number * 2 * HOUR)
    opened.flush()
    return opened


def test_nothing_goes_before_its_time(store: MessageStore) -> None:
    assert store.delete_expired(NOW + 24 * HOUR) == []


def test_nothing_goes_at_other_hours(store: MessageStore) -> None:
    assert store.delete_expired(LATER + 2 * HOUR) == []


def test_expired_segments_go_with_their_queue_and_index_files(store: MessageStore, disk: CrashDisk) -> None:
    deleted = store.delete_expired(LATER)
    assert any("commit log segment 00000000000000000000" in line for line in deleted)
    assert any("consume queue file orders/0/" in line for line in deleted)
    low = store.min_offset(b"orders", 0)
    # What was stored within the last 72 hours stays.
    assert 0 < low <= 12
    assert bodies(store) == [b"%d" % number * 100 for number in range(low, 40)]
    assert store.query(b"orders", "k0", 32, 0, LATER).records == []
    assert len(store.query(b"orders", "k39", 32, 0, LATER).records) == 1
    assert CONFIG.commit_log_directory / f"{0:020d}" not in disk.names
    store.close()
    again = MessageStore.open(CONFIG, disk)
    assert again.recovery.actions == []
    assert again.min_offset(b"orders", 0) == low


def test_index_files_go_when_the_log_has_none_of_their_messages_and_the_last_one_stays(disk: CrashDisk) -> None:
    config = small_config(Path("/store"), file_reserved_hours=72, delete_when=CONFIG.delete_when, index_entries=5)
    store = MessageStore.open(config, disk)
    for number in range(40):
        send(store, b"%d" % number * 100, properties=b"KEYS\x01k%d" % number, store_timestamp=NOW + number * 2 * HOUR)
    store.flush()
    deleted = [line.removeprefix("index file ") for line in store.delete_expired(LATER) if line.startswith("index file ")]
    low = store.min_offset(b"orders", 0)
    assert len(deleted) == low // 4
    assert not any(config.index_directory / name in disk.names for name in deleted)
    assert all(len(store.query(b"orders", f"k{number}", 32, 0, LATER).records) == 1 for number in range(low, 40))
    send(store, *(b"without a key" for _ in range(40)), store_timestamp=NOW + 80 * HOUR)
    store.delete_expired(LATER + 24 * 365 * HOUR)
    assert store.query(b"orders", "k39", 32, 0, LATER).records == []
    assert len(disk.list(config.index_directory)) == 1


def test_a_filling_disk_lets_expired_segments_go_at_any_hour(store: MessageStore, disk: CrashDisk) -> None:
    disk.used = 0.8
    assert store.delete_expired(LATER + 2 * HOUR)
    assert store.delete_expired(LATER + 2 * HOUR) == []
    assert append(store)


def test_a_nearly_full_disk_lets_the_oldest_go_before_they_expire(store: MessageStore, disk: CrashDisk) -> None:
    disk.used = 0.87
    assert len([line for line in store.delete_expired(NOW) if "commit log" in line]) == 10
    while store.delete_expired(NOW):
        pass
    assert bodies(store)[-1] == b"39" * 100


def test_a_full_disk_refuses_messages_until_there_is_space(store: MessageStore, disk: CrashDisk) -> None:
    disk.used = 0.95
    store.delete_expired(NOW)
    with pytest.raises(StoreUnwritable, match="95% full"):
        append(store)
    assert bodies(store)
    disk.used = 0.5
    store.delete_expired(NOW)
    send(store, b"again")
    assert bodies(store)[-1] == b"again"


def test_a_queue_that_lost_all_its_messages_goes_on_counting(disk: CrashDisk) -> None:
    store = MessageStore.open(CONFIG, disk)
    send(store, b"1", b"2", topic=b"quiet")
    for _ in range(8):
        send(store, b"x" * 500, store_timestamp=LATER)
    store.delete_expired(LATER + 96 * HOUR)
    assert (store.min_offset(b"quiet", 0), store.max_offset(b"quiet", 0)) == (2, 2)
    assert send(store, b"3", topic=b"quiet", store_timestamp=LATER)[0].queue_offset == 2
    assert bodies(store, b"quiet") == [b"3"]
    store.close()
    again = MessageStore.open(CONFIG, disk)
    assert bodies(again, b"quiet") == [b"3"]


def test_the_defaults_are_rocketmqs(config: StoreConfig) -> None:
    defaults = StoreConfig(root=config.root, store_host=config.store_host)
    assert (defaults.commit_log_segment_size, defaults.consume_queue_units_per_file) == (1 << 30, 300_000)
    assert (defaults.index_slots, defaults.index_entries, defaults.file_reserved_hours) == (5_000_000, 20_000_000, 72)
    assert (defaults.delete_when, defaults.disk_max_used_ratio, defaults.max_message_size) == ("04", 0.75, 4 << 20)
    assert defaults.delay_levels_ms[:3] == (1000, 5000, 10_000)
    assert len(defaults.delay_levels_ms) == 18


def test_a_damaged_record_at_a_segments_beginning_keeps_nothing_from_expiring(store: MessageStore, disk: CrashDisk) -> None:
    before = store.commit_log_min_offset
    first = store._open_files.get(CONFIG.commit_log_directory / f"{1024:020d}")
    disk.write(first, b"\0\0\0\0\0\0\0\0", 0)

    store.delete_expired(LATER)

    assert before == 0
    assert store.commit_log_min_offset > 1024


def test_the_disk_of_the_commit_log_counts_if_it_has_one_of_its_own(disk: CrashDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    config = small_config(Path("/store"), commit_log_path=Path("/log"))
    store = MessageStore.open(config, disk)
    send(store, b"1")
    monkeypatch.setattr(disk, "used_ratio", lambda path: 0.95 if path == Path("/log") else 0.1)

    store.delete_expired(NOW)

    assert store.disk_used_ratio() == 0.95
    with pytest.raises(StoreUnwritable, match="95% full"):
        append(store)
