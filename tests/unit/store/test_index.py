from __future__ import annotations

import struct
from pathlib import Path

import pytest

from broker.message.tags import java_hash_code
from broker.store import MessageStore, StoreConfig
from broker.store.index import _file_name, _key_hash

from .conftest import NOW, crash, send, small_config


@pytest.mark.parametrize("key", ["", "a", "k1", "7F000001ABCD0000000000000000001F", "été", "x" * 700, "\U0001f600"])
@pytest.mark.parametrize("topic", ["orders", "%RETRY%a_group"])
def test_the_hash_is_javas_of_topic_and_key(topic: str, key: str) -> None:
    code = abs(java_hash_code(f"{topic}#{key}"))
    assert _key_hash(topic.encode(), key.encode()) == (code if code < 1 << 31 else 0)


def test_a_hash_that_java_cannot_make_positive_counts_as_0() -> None:
    text = "polygenelubricants"
    assert java_hash_code(text) == -(1 << 31)
    # The topic takes the first part, so the hash of "polygenelubricants" cannot be had; its absolute value can.
    assert all(0 <= _key_hash(b"t", b"%d" % number) < 1 << 31 for number in range(1000))


def test_an_index_file_has_rocketmqs_layout(config: StoreConfig, store: MessageStore) -> None:
    places = [
        send(store, b"x", properties=b"UNIQ_KEY\x01u%d" % number, store_timestamp=NOW + number * 2000)[0] for number in range(3)
    ]
    store.close()
    (path,) = config.index_directory.iterdir()
    assert path.name == _file_name(NOW)
    content = path.read_bytes()
    assert len(content) == 40 + 16 * 4 + 64 * 20
    begin, end, begin_offset, end_offset, slot_count, count = struct.unpack(">qqqqii", content[:40])
    assert (begin, end, begin_offset, end_offset) == (NOW, NOW + 4000, places[0].commit_log_offset, places[2].commit_log_offset)
    assert count == 4
    slots = struct.unpack(">16i", content[40:104])
    assert slot_count == len([slot for slot in slots if slot])
    entries = [struct.unpack(">iqii", content[104 + number * 20 : 124 + number * 20]) for number in range(4)]
    assert entries[0] == (0, 0, 0, 0)
    hashes = [_key_hash(b"orders", b"u%d" % number) for number in range(3)]
    assert [(entry[0], entry[1], entry[2]) for entry in entries[1:]] == [
        (hashes[number], places[number].commit_log_offset, number * 2) for number in range(3)
    ]
    for number, key_hash in enumerate(hashes, start=1):
        assert slots[key_hash % 16] >= number


def test_a_full_file_is_followed_by_another(config: StoreConfig, store: MessageStore) -> None:
    for number in range(200):
        send(store, b"%d" % number, properties=b"KEYS\x01k%d" % number)
        if number % 50 == 49:
            store.flush()
    assert len(list(config.index_directory.iterdir())) == 4
    for _ in range(2):
        assert all(len(store.query(b"orders", f"k{number}", 32, 0, NOW * 2).records) == 1 for number in range(200))
        crash(store)
        store = MessageStore.open(config)
    store.close()


def test_keys_of_one_slot_are_told_apart(tmp_path: Path) -> None:
    config = small_config(tmp_path, index_slots=1)
    store = MessageStore.open(config)
    for number in range(40):
        send(store, b"%d" % number, properties=b"KEYS\x01k%d" % (number % 10))
    store.flush()
    assert [len(store.query(b"orders", f"k{number}", 32, 0, NOW * 2).records) for number in range(11)] == [4] * 10 + [0]
    assert len(store.query(b"orders", "k3", 2, 0, NOW * 2).records) == 2
    store.close()


def test_without_index_nothing_is_found_and_nothing_written(tmp_path: Path) -> None:
    config = small_config(tmp_path, is_index_enabled=False)
    store = MessageStore.open(config)
    send(store, b"x", properties=b"KEYS\x01k")
    store.close()
    assert not config.index_directory.exists()
    store = MessageStore.open(config)
    assert store.query(b"orders", "k", 32, 0, NOW * 2).records == []
    assert store.recovery.actions == []
    store.close()


@pytest.mark.parametrize("timestamp_ms", [-(1 << 62), -1, 1 << 62])
def test_a_file_that_begins_with_a_damaged_record_has_a_usable_name(timestamp_ms: int) -> None:
    assert len(_file_name(timestamp_ms)) == 17
