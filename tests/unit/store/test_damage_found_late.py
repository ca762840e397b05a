"""Tests damage in places without a checksum, and in stores that lack files which older versions do not write."""

import json
import shutil
import struct
from pathlib import Path

import pytest

from rocketmq_broker.message import sysflag
from rocketmq_broker.message.record import BLANK_MAGIC, QUEUE_OFFSET_POSITION, decode_record, host_bytes
from rocketmq_broker.message.tags import tags_code
from rocketmq_broker.store import MessageStore, StoreConfig
from rocketmq_broker.store.log.record_check import MAGIC
from rocketmq_broker.store.recovery import damaged_units
from tests.unit.store.conftest import (
    HOST,
    NOW,
    append,
    bodies,
    crash,
    delete_topic,
    offsets,
    open_store,
    patch_unit,
    said,
    send,
    small_config,
)

TOPIC_POSITION = 89


def patch(config: StoreConfig, commit_log_offset: int, data: bytes) -> None:
    path = config.commit_log_directory / f"{commit_log_offset // 1024 * 1024:020d}"
    with path.open("r+b") as file:
        file.seek(commit_log_offset % 1024)
        file.write(data)


def forget_progress(config: StoreConfig) -> None:
    (config.root / "progress.json").unlink(missing_ok=True)


@pytest.mark.parametrize("topic", [b"../../", b"a/b/cd", b"\xff\xfe\xfd\xfc\xfb\xfa"])
def test_a_record_whose_topic_was_damaged_costs_no_other(config: StoreConfig, store: MessageStore, topic: bytes) -> None:
    places = send(store, b"1", b"2", b"3")
    crash(store)
    patch(config, places[2].commit_log_offset + TOPIC_POSITION + 1, topic)
    again = open_store(config)
    assert "its topic is invalid" in said(again)
    assert (bodies(again), again.max_offset(b"orders", 0)) == ([b"1", b"2"], 2)
    assert list(again.queues()) == [b"orders"]
    assert send(again, b"next")[0].queue_offset == 2


@pytest.mark.parametrize("topic", [b"../../", b"others"])
@pytest.mark.parametrize("damaged", range(9))
def test_a_damaged_topic_costs_that_message_only_wherever_it_lies(
    config: StoreConfig, store: MessageStore, damaged: int, topic: bytes
) -> None:
    sent = [b"%d" % number for number in range(9)]
    places = send(store, *sent)
    crash(store)
    forget_progress(config)
    shutil.rmtree(config.consume_queue_directory, ignore_errors=True)  # nothing of it was on the disk
    patch(config, places[damaged].commit_log_offset + TOPIC_POSITION + 1, topic)
    again = open_store(config)
    assert bodies(again) == sent[:damaged] + sent[damaged + 1 :]


def test_a_prepared_record_is_found_by_key_after_a_crash_and_enters_no_queue(config: StoreConfig, store: MessageStore) -> None:
    send(store, b"1")
    send(store, b"prepared", sys_flag=sysflag.TRANSACTION_PREPARED_TYPE, properties=b"KEYS\x01k")
    send(store, b"rolled back", sys_flag=sysflag.TRANSACTION_ROLLBACK_TYPE, properties=b"KEYS\x01k")
    crash(store)
    again = open_store(config)
    assert (bodies(again), again.max_offset(b"orders", 0)) == ([b"1"], 1)
    for _ in ("in memory", "on disk"):
        found = again.query(b"orders", "k", 32, 0, 1 << 50).records
        assert [decode_record(record).body for record in found] == [b"prepared"]
        again.flush()


@pytest.mark.slow
def test_an_index_of_many_messages_is_rebuilt(tmp_path: Path) -> None:
    config = small_config(tmp_path, commit_log_segment_size=1 << 20, index_entries=5000, consume_queue_units_per_file=2000)
    store = MessageStore.open(config)
    for number in range(2300):
        append(store, b"%d" % number, properties=b"KEYS\x01k%d" % number)
    store.publish(store.write())
    store.close()
    shutil.rmtree(config.index_directory)
    again = open_store(config)
    found = [again.query(b"orders", f"k{number}", 32, 0, 1 << 50).records for number in range(2300)]
    assert [[decode_record(record).body for record in records] for records in found] == [[b"%d" % n] for n in range(2300)]


def test_a_message_longer_than_recovery_reads_at_once_is_kept(tmp_path: Path) -> None:
    config = small_config(tmp_path, commit_log_segment_size=1 << 24)
    store = MessageStore.open(config)
    longest = b"x" * config.max_message_size
    send(store, b"before", longest, b"after")
    crash(store)
    again = open_store(config)
    assert again.recovery.damaged == []
    assert bodies(again) == [b"before", longest, b"after"]
    assert send(again, b"next")[0].queue_offset == 3


@pytest.mark.parametrize("offset", [1, 10, 1 << 40])
def test_a_last_record_with_an_impossible_queue_offset_costs_no_other(
    config: StoreConfig, store: MessageStore, offset: int
) -> None:
    places = send(store, *[b"%d" % number for number in range(4)])
    crash(store)
    patch(config, places[3].commit_log_offset + QUEUE_OFFSET_POSITION, struct.pack(">q", offset << 20))
    again = open_store(config)
    assert "its queue offset" in said(again)
    assert bodies(again) == [b"0", b"1", b"2"]
    assert send(again, b"next")[0].queue_offset == 3
    assert bodies(again) == [b"0", b"1", b"2", b"next"]


def test_messages_of_a_deleted_topic_stay_deleted_though_the_whole_log_is_read(config: StoreConfig, store: MessageStore) -> None:
    send(store, *[b"old %d" % number for number in range(5)])
    delete_topic(store, b"orders")
    send(store, b"new 0", b"new 1", b"new 2")
    store.flush()
    crash(store)
    forget_progress(config)
    (config.root / "checkpoint").unlink()
    again = open_store(config)
    assert again.recovery.scanned_from == 0
    assert again.recovery.damaged == []
    assert bodies(again)[:3] == [b"new 0", b"new 1", b"new 2"]
    assert again.recovery.units_added <= 2


@pytest.mark.parametrize("kept", [0, 1, 5, 17])
def test_queues_longer_than_a_shortened_log_are_cut_over_several_files(
    config: StoreConfig, store: MessageStore, kept: int
) -> None:
    places = send(store, *[b"%d" % number for number in range(40)])
    store.flush()
    crash(store)
    end = places[kept].commit_log_offset
    for path in sorted(config.commit_log_directory.iterdir()):
        start = int(path.name)
        if start >= end:
            path.unlink()
        elif end < start + 1024:
            path.write_bytes(path.read_bytes()[: end - start].ljust(1024, b"\0"))
    again = open_store(config)
    assert (bodies(again), again.max_offset(b"orders", 0)) == ([b"%d" % number for number in range(kept)], kept)
    assert send(again, b"next")[0].queue_offset == kept


@pytest.mark.parametrize("is_foreign", [True, False])
def test_a_progress_that_speaks_of_no_record_makes_recovery_read_more(
    config: StoreConfig, store: MessageStore, is_foreign: bool
) -> None:
    send(store, *[b"%d" % number for number in range(12)], properties=b"KEYS\x01k")
    store.flush()
    send(store, b"12")
    crash(store)
    progress = json.loads((config.root / "progress.json").read_text())
    progress["position"] -= 50
    progress["index_offset"] = progress["position"]
    (config.root / "progress.json").write_text(json.dumps(progress))
    if is_foreign:
        forget_progress(config)
    again = open_store(config)
    assert bodies(again) == [b"%d" % number for number in range(13)]
    assert send(again, b"next")[0].queue_offset == 13


@pytest.mark.parametrize("was_killed", [True, False])
def test_an_index_that_lags_behind_in_a_store_without_progress_is_completed(
    config: StoreConfig, store: MessageStore, was_killed: bool
) -> None:
    def send_with_keys(numbers: range) -> None:
        for number in numbers:
            send(store, b"%d" % number, properties=b"KEYS\x01k%d" % number)

    send_with_keys(range(20))
    store.flush()
    kept = config.root / "kept"
    shutil.copytree(config.index_directory, kept)
    send_with_keys(range(20, 60))
    store.flush()
    crash(store) if was_killed else store.close()
    shutil.rmtree(config.index_directory)
    shutil.move(kept, config.index_directory)
    forget_progress(config)
    again = open_store(config)
    assert all(len(again.query(b"orders", f"k{number}", 32, 0, 1 << 50).records) == 1 for number in range(60))
    assert bodies(again) == [b"%d" % number for number in range(60)]


def test_a_last_unit_that_points_to_another_queues_message_is_put_right(config: StoreConfig, store: MessageStore) -> None:
    places = send(store, b"0", b"1", b"2")
    (other,) = send(store, b"other", queue_id=1)
    store.close()
    patch_unit(config, 2, other.commit_log_offset, other.end_position - other.commit_log_offset)
    again = open_store(config)
    assert again.commit_log_offset(b"orders", 0, 2) == places[2].commit_log_offset
    assert (bodies(again), bodies(again, queue_id=1)) == ([b"0", b"1", b"2"], [b"other"])
    assert send(again, b"3")[0].queue_offset == 3


def test_a_log_that_ends_with_its_segment_goes_on_in_the_next(tmp_path: Path) -> None:
    config = small_config(tmp_path, is_index_enabled=False)
    store = open_store(config)
    (first,) = send(store, b"1" * 500)
    crash(store)
    patch(config, first.end_position, struct.pack(">ii", 1024 - first.end_position, BLANK_MAGIC))
    for _ in range(3):
        store = open_store(config)
        assert (bodies(store), store.written_position) == ([b"1" * 500], 1024)
        store.close()
    store = open_store(config)
    assert store.recovery.records_scanned == 0
    assert [offsets(each) for each in send(store, b"2")] == [(1024, 1, 1024 + 98)]


def test_a_magic_code_at_a_segments_beginning_is_no_record_of_the_one_before(config: StoreConfig, store: MessageStore) -> None:
    places = send(store, *[b"%d" % number * 300 for number in range(6)])
    assert [place.commit_log_offset % 1024 for place in places[::2]] == [0, 0, 0]
    crash(store)
    patch(config, places[1].commit_log_offset, b"x" * (1024 - places[1].commit_log_offset))
    patch(config, places[2].commit_log_offset, MAGIC)
    again = open_store(config)
    assert bodies(again) == [b"%d" % number * 300 for number in (0, 3, 4, 5)]
    assert again.max_offset(b"orders", 0) == 6


@pytest.mark.parametrize("born_is_v6", [True, False])
@pytest.mark.parametrize("store_is_v6", [True, False])
def test_messages_from_and_on_machines_with_ipv6_addresses_survive_a_crash(
    tmp_path: Path, born_is_v6: bool, store_is_v6: bool
) -> None:
    born, own = (host_bytes("::1", 5) if is_v6 else HOST for is_v6 in (born_is_v6, store_is_v6))
    config = small_config(tmp_path, store_host=own)
    store = MessageStore.open(config)
    for number in range(12):
        flag = sysflag.with_hosts(0, born, own)
        send(store, b"%d" % number, born_host=born, sys_flag=flag, properties=b"KEYS\x01k", store_timestamp=NOW + number * 10_000)
    crash(store)
    again = open_store(config)
    assert bodies(again) == [b"%d" % number for number in range(12)]
    assert [again.store_time(b"orders", 0, number) for number in range(12)] == [NOW + number * 10_000 for number in range(12)]
    (found,) = again.query(b"orders", "k", 32, NOW + 30_000, NOW + 30_000).records
    assert decode_record(found).body == b"3"
    record = decode_record(again.pull(b"orders", 0, 11, 1, 1000).records[0])
    assert (record.born_host, record.store_host, record.is_intact) == (born, own, True)


@pytest.mark.parametrize("offset", [1024 - 20, 2048 - 40, 700, -5, 1 << 40])
def test_a_unit_that_points_where_no_record_is_is_rebuilt(config: StoreConfig, store: MessageStore, offset: int) -> None:
    send(store, *[b"%d" % number * 100 for number in range(12)])
    store.flush()
    crash(store)
    patch_unit(config, 3, offset, 120)
    forget_progress(config)
    (config.root / "checkpoint").unlink()
    again = open_store(config)
    assert bodies(again) == [b"%d" % number * 100 for number in range(12)]


@pytest.mark.parametrize("units_searched", [2, 256])
def test_a_message_whose_unit_is_damaged_is_found_though_the_units_before_it_are_damaged_too(
    config: StoreConfig, store: MessageStore, monkeypatch: pytest.MonkeyPatch, units_searched: int
) -> None:
    monkeypatch.setattr(damaged_units, "_UNITS_SEARCHED", units_searched)
    send(store, *[b"%d" % number for number in range(7)])
    (other,) = send(store, b"other", queue_id=1)
    store.flush()
    for number in range(1, 6):
        patch_unit(config, number, other.commit_log_offset, other.end_position + number)
    assert bodies(store) == [b"%d" % number for number in range(7)]


def test_a_message_too_far_from_the_one_before_it_is_passed_over_if_its_unit_is_damaged(
    config: StoreConfig, store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damaged_units, "_BYTES_SEARCHED", 1000)
    send(store, b"0")
    send(store, *[b"other"] * 30, queue_id=1)
    send(store, b"1", b"2")
    store.flush()
    patch_unit(config, 1, -5, 98)
    assert bodies(store) == [b"0", b"2"]
    monkeypatch.setattr(damaged_units, "_BYTES_SEARCHED", 10_000)
    assert bodies(store) == [b"0", b"1", b"2"]


def test_a_unit_that_points_to_an_expired_message_is_put_right(config: StoreConfig, store: MessageStore) -> None:
    places = send(store, *[b"%d" % number * 100 for number in range(30)])
    store.flush()
    crash(store)
    for start in (0, 1024):
        (config.commit_log_directory / f"{start:020d}").unlink()
    patch_unit(config, 20, places[3].commit_log_offset, 300)
    forget_progress(config)
    (config.root / "checkpoint").unlink()
    again = open_store(config)
    assert again.commit_log_offset(b"orders", 0, 20) == places[20].commit_log_offset
    low = again.min_offset(b"orders", 0)
    assert bodies(again) == [b"%d" % number * 100 for number in range(low, 30)]
    assert 2048 <= places[low].commit_log_offset < 3072


def test_zeroed_units_mislead_neither_a_search_by_time_nor_one_by_commit_log_offset(
    config: StoreConfig, store: MessageStore
) -> None:
    places = [send(store, b"%d" % number, store_timestamp=NOW + number)[0] for number in range(24)]
    store.flush()
    for number in range(10, 15):
        patch_unit(config, number, 0, 0)
    sought = [*range(10), *range(16, 24)]
    assert [store.offset_by_time(b"orders", 0, NOW + number) for number in sought] == sought
    assert [store.first_after(b"orders", 0, places[number - 1].commit_log_offset) for number in sought[1:]] == sought[1:]
    assert [store.offset_by_time(b"orders", 0, NOW + number) for number in range(10, 16)] == [10] * 6
    assert [store.first_after(b"orders", 0, places[number - 1].commit_log_offset) for number in range(10, 16)] == [10] * 6


def damage_units_far_apart(store: MessageStore, config: StoreConfig, count: int) -> None:
    """Damages units that are far apart: message 0 is intact, and after each message come 600 bytes of another queue."""
    for number in range(count + 1):
        send(store, b"%d" % number)
        send(store, *[b"other"] * 6, queue_id=1)
    store.flush()
    for number in range(1, count + 1):
        patch_unit(config, number, 0, 0)


def test_a_pull_ends_before_a_damaged_unit_and_the_next_mends_as_many_as_it_comes_across(
    config: StoreConfig, store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damaged_units, "_BYTES_SEARCHED", 1500)
    damage_units_far_apart(store, config, 20)
    assert store.pull(b"orders", 0, 0, 32, 1 << 20).next_begin_offset == 1
    assert store.pull(b"orders", 0, 1, 32, 1 << 20).next_begin_offset == 3
    assert [unit.holds_message for unit in store.consume_queue_units(b"orders", 0, 0, 5) or []] == [True] * 3 + [False] * 2
    assert bodies(store, max_messages=32) == [b"%d" % number for number in range(21)]


def test_a_search_by_itself_ends_so_that_every_pull_goes_on(
    config: StoreConfig, store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damaged_units, "_BYTES_SEARCHED", 500)
    damage_units_far_apart(store, config, 5)
    send(store, b"6")
    assert [store.pull(b"orders", 0, offset, 32, 1 << 20).next_begin_offset for offset in range(7)] == [1, 2, 3, 4, 5, 6, 7]
    assert bodies(store, max_messages=32) == [b"0", b"6"]


def test_a_message_with_a_zeroed_unit_reaches_those_who_want_a_tag_only(config: StoreConfig, store: MessageStore) -> None:
    for number in range(4):
        append(store, b"%d" % number, properties=b"TAGS\x01" + (b"wanted" if number % 2 else b"other"))
    store.publish(store.write())
    store.flush()
    patch_unit(config, 1, 0, 0)
    wanted = frozenset({tags_code("wanted")})
    assert store.pull(b"orders", 0, 0, 32, 1 << 20, wanted).next_begin_offset == 1
    for offset in (1, 0):
        pulled = store.pull(b"orders", 0, offset, 32, 1 << 20, wanted)
        assert [decode_record(record).body for record in pulled.records] == [b"1", b"3"]


def test_a_pull_over_damaged_units_is_no_longer_than_it_may_be(config: StoreConfig, store: MessageStore) -> None:
    sent = [b"%d" % number * 200 for number in range(8)]
    send(store, *sent)
    store.flush()
    for number in range(1, 8):
        patch_unit(config, number, 0, -5)
    offset, seen = 0, []
    while offset < len(sent):
        pulled = store.pull(b"orders", 0, offset, 32, 700)
        assert sum(map(len, pulled.records)) <= 700
        seen += [decode_record(record).body for record in pulled.records]
        offset = pulled.next_begin_offset
    assert seen == sent


def test_messages_with_damaged_units_that_were_found_once_are_not_searched_for_again(
    config: StoreConfig, store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_units_far_apart(store, config, 5)
    everything = [b"%d" % number for number in range(6)]
    assert bodies(store) == everything
    monkeypatch.setattr(damaged_units, "_BYTES_SEARCHED", 0)
    assert bodies(store) == everything


def test_a_damaged_unit_is_mended_on_disk_by_the_first_pull(config: StoreConfig, store: MessageStore) -> None:
    send(store, *[b"%d" % number for number in range(6)])
    store.flush()
    path = config.consume_queue_directory / "orders" / "0" / f"{0:020d}"
    before = path.read_bytes()
    for number in (1, 2, 4):
        patch_unit(config, number, 0, 0)
    assert bodies(store, max_messages=32) == [b"%d" % number for number in range(6)]
    assert path.read_bytes() == before
    assert path in [path for unsynced in store.checkpoints.write_queues() for path in unsynced.files]


def test_a_store_that_was_given_up_mends_in_memory_alone(config: StoreConfig, store: MessageStore) -> None:
    send(store, *[b"%d" % number for number in range(4)])
    store.flush()
    patch_unit(config, 1, 0, 0)
    path = config.consume_queue_directory / "orders" / "0" / f"{0:020d}"
    before = path.read_bytes()
    store.give_up("another broker uses the store")
    for _ in range(2):
        assert bodies(store) == [b"0", b"1", b"2", b"3"]
    assert path.read_bytes() == before
