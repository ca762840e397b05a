import time
from pathlib import Path

import pytest

from rocketmq_broker.store import MessageStore, StoreConfig, StoreUnwritable
from tests.unit.store.conftest import NOW, append, bodies, delete_expired, send, small_config
from tests.unit.store.crash_disk import CrashDisk

HOUR = 3_600_000
CONFIG = small_config(Path("/store"), file_reserved_hours=72, delete_when=str(time.localtime(NOW // 1000).tm_hour))
LATER = NOW + 96 * HOUR
"""The same hour of the day, four days later."""


@pytest.fixture
def store(disk: CrashDisk) -> MessageStore:
    opened = MessageStore.open(CONFIG, disk)
    for number in range(40):
        send(opened, b"%d" % number * 100, properties=b"KEYS\x01k%d" % number, store_timestamp=NOW + number * 2 * HOUR)
    opened.flush()
    return opened


def test_nothing_goes_before_its_time(store: MessageStore) -> None:
    assert delete_expired(store, NOW + 24 * HOUR) == []


def test_nothing_goes_at_other_hours(store: MessageStore) -> None:
    assert delete_expired(store, LATER + 2 * HOUR) == []


def test_expired_segments_go_with_their_queue_and_index_files(store: MessageStore, disk: CrashDisk) -> None:
    deleted = delete_expired(store, LATER)
    assert deleted[0] == CONFIG.commit_log_directory / f"{0:020d}"
    assert any(path.parent == CONFIG.consume_queue_directory / "orders" / "0" for path in deleted)
    low = store.min_offset(b"orders", 0)
    # What was stored within the last 72 hours stays.
    assert 0 < low <= 12
    assert bodies(store) == [b"%d" % number * 100 for number in range(low, 40)]
    assert store.query(b"orders", "k0", 32, 0, LATER).records == []
    assert len(store.query(b"orders", "k39", 32, 0, LATER).records) == 1
    assert disk.size(CONFIG.commit_log_directory / f"{0:020d}") is None
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
    deleted = [path for path in delete_expired(store, LATER) if path.parent == config.index_directory]
    low = store.min_offset(b"orders", 0)
    assert len(deleted) == low // 4
    assert not any(disk.size(path) for path in deleted)
    assert all(len(store.query(b"orders", f"k{number}", 32, 0, LATER).records) == 1 for number in range(low, 40))
    send(store, *(b"without a key" for _ in range(40)), store_timestamp=NOW + 80 * HOUR)
    delete_expired(store, LATER + 24 * 365 * HOUR)
    assert store.query(b"orders", "k39", 32, 0, LATER).records == []
    assert len(disk.list(config.index_directory)) == 1


@pytest.mark.parametrize("used", [0.1, 0.8])
def test_the_next_expiry_is_known_before(store: MessageStore, disk: CrashDisk, used: float) -> None:
    disk.used = used
    now_ms, minute_ms = NOW + 24 * HOUR, 60_000
    due_ms = store.expiry.next_due_ms(now_ms)
    assert due_ms is not None
    while not delete_expired(store, now_ms):
        now_ms += minute_ms
    assert due_ms <= now_ms
    if used == 0.1:
        assert now_ms - due_ms <= 2 * minute_ms


def test_a_log_of_one_segment_expires_never(disk: CrashDisk) -> None:
    store = MessageStore.open(CONFIG, disk)
    send(store, b"1", store_timestamp=NOW)
    assert store.expiry.next_due_ms(LATER) is None


def test_a_filling_disk_lets_expired_segments_go_at_any_hour(store: MessageStore, disk: CrashDisk) -> None:
    disk.used = 0.8
    assert delete_expired(store, LATER + 2 * HOUR)
    assert delete_expired(store, LATER + 2 * HOUR) == []
    assert append(store)


@pytest.mark.parametrize("used", [0.86, 0.95, 0.995])
def test_however_full_the_disk_is_nothing_goes_before_it_expires(store: MessageStore, disk: CrashDisk, used: float) -> None:
    disk.used = used
    before = bodies(store)
    assert delete_expired(store, NOW) == []
    assert bodies(store) == before


def segments(paths: list[Path]) -> int:
    return sum(path.parent == CONFIG.commit_log_directory for path in paths)


def forcible(disk: CrashDisk, **settings: float) -> MessageStore:
    config = small_config(Path("/store"), is_clean_forcible=True, **settings)
    store = MessageStore.open(config, disk)
    for number in range(40):
        send(store, b"%d" % number * 100, store_timestamp=NOW + number * 2 * HOUR)
    return store


def test_where_the_settings_say_so_a_nearly_full_disk_lets_the_oldest_go_before_they_expire(disk: CrashDisk) -> None:
    store = forcible(disk)
    disk.used = 0.84
    assert delete_expired(store, NOW) == []
    disk.used = 0.87
    expired = store.expiry.expire(NOW)
    assert (segments(expired.paths), expired.unexpired, expired.youngest_ms > NOW) == (10, 10, True)
    while delete_expired(store, NOW):
        pass
    assert bodies(store)[-1] == b"39" * 100


def test_only_what_goes_before_its_time_counts_as_that(disk: CrashDisk) -> None:
    store = forcible(disk)
    disk.used = 0.87
    expired = store.expiry.expire(LATER)
    assert 0 < expired.unexpired < segments(expired.paths)


@pytest.mark.parametrize("used", [0.5, 0.87])
def test_what_a_pending_transaction_needs_stays_however_old_it_is(disk: CrashDisk, used: float) -> None:
    store = forcible(disk, delete_when=CONFIG.delete_when)
    disk.used = used
    needed = store.commit_log_offset(b"orders", 0, 6)
    assert needed is not None
    deleted = delete_expired(store, LATER, needed_from=needed)
    assert segments(deleted) == needed // 1024 > 0
    assert store.min_offset(b"orders", 0) <= 6
    assert segments(delete_expired(store, LATER)) > 0


def test_a_disk_above_the_warning_level_refuses_messages_until_there_is_space(store: MessageStore, disk: CrashDisk) -> None:
    disk.used = 0.9012
    store.expiry.expire(NOW)
    with pytest.raises(StoreUnwritable, match=r"90\.12% full.*diskSpaceWarningLevelRatio"):
        append(store)
    assert bodies(store)
    disk.used = 0.5
    store.expiry.expire(NOW)
    send(store, b"again")
    assert bodies(store)[-1] == b"again"


def test_what_ends_a_transaction_is_stored_on_a_full_disk_until_the_reserve_is_used_up(
    store: MessageStore, disk: CrashDisk
) -> None:
    disk.used = 0.97
    store.expiry.expire(NOW)
    send(store, b"committed", may_use_reserve=True)
    assert bodies(store)[-1] == b"committed"
    disk.used = 0.985
    store.expiry.expire(NOW)
    with pytest.raises(StoreUnwritable, match=r"98\.5% full; nothing is stored"):
        append(store, may_use_reserve=True)


def test_a_store_that_is_opened_on_a_full_disk_refuses_at_once(disk: CrashDisk) -> None:
    disk.used = 0.95
    store = MessageStore.open(CONFIG, disk)
    with pytest.raises(StoreUnwritable, match="95% full"):
        append(store)


def test_a_disk_that_hovers_about_a_level_does_not_change_what_is_stored(store: MessageStore, disk: CrashDisk) -> None:
    told = []
    for used in (0.89, 0.905, 0.895, 0.9, 0.902, 0.889, 0.895, 0.9):
        disk.used = used
        store.expiry.expire(NOW)
        told.append(store.writability.refusal is not None)
    assert told == [False, True, True, True, True, False, False, False]


def test_a_queue_that_lost_all_its_messages_goes_on_counting(disk: CrashDisk) -> None:
    store = MessageStore.open(CONFIG, disk)
    send(store, b"1", b"2", topic=b"quiet")
    for _ in range(8):
        send(store, b"x" * 500, store_timestamp=LATER)
    delete_expired(store, LATER + 96 * HOUR)
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

    delete_expired(store, LATER)

    assert before == 0
    assert store.commit_log_min_offset > 1024


def test_the_disk_of_the_commit_log_counts_if_it_has_one_of_its_own(disk: CrashDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    config = small_config(Path("/store"), commit_log_path=Path("/log"))
    store = MessageStore.open(config, disk)
    send(store, b"1")
    monkeypatch.setattr(disk, "used_ratio", lambda path: 0.95 if path == Path("/log") else 0.1)

    store.expiry.expire(NOW)

    assert store.expiry.disk_used_ratio() == 0.95
    with pytest.raises(StoreUnwritable, match="95% full"):
        append(store)
