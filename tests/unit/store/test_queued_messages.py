"""Tests untrusted message offsets: an offset is a message's only if a consume queue contains it."""

from pathlib import Path

import pytest

from rocketmq_broker.message.record import decode_record
from rocketmq_broker.store import CorruptRecord, MessageStore, RecordNotFound, StoreConfig
from tests.stored_records import encoded
from tests.unit.store.conftest import NOW, append, crash, delete_topic, open_store, patch_unit, send, small_config

HEAD_LENGTH = 88
"""Bytes of a record with IPv4 hosts before its body."""


def record_inside_a_body(at: int, queue_offset: int, topic: bytes = b"orders") -> bytes:
    """Returns a record that is intact if it is stored at that commit log offset."""
    times = {"born_timestamp": NOW, "store_timestamp": NOW}
    return encoded(topic.decode(), b"forged", queue_offset=queue_offset, commit_log_offset=at, **times)


def test_each_message_is_found_where_its_queue_says(store: MessageStore) -> None:
    places = send(store, *[b"%d" % number for number in range(20)])
    assert [decode_record(store.read_queued(place.commit_log_offset)).body for place in places] == [
        b"%d" % number for number in range(20)
    ]


@pytest.mark.parametrize("queue_offset", [-1, 0, 1, 2, 1 << 40])
@pytest.mark.parametrize("topic", [b"orders", b"others", b"unknown"])
def test_a_record_inside_the_body_of_a_message_is_none(store: MessageStore, queue_offset: int, topic: bytes) -> None:
    send(store, b"before")
    send(store, b"other", topic=b"others")
    at = store.written_position + HEAD_LENGTH
    send(store, record_inside_a_body(at, queue_offset, topic))
    assert decode_record(store.read(at)).body == b"forged"
    with pytest.raises(RecordNotFound, match="no consume queue contains a message at"):
        store.read_queued(at)


def test_what_consumers_do_not_see_yet_is_not_found(store: MessageStore) -> None:
    place = append(store, b"waits for the disk")
    store.write()
    with pytest.raises(RecordNotFound):
        store.read_queued(place.commit_log_offset)
    store.publish(store.written_position)
    assert decode_record(store.read_queued(place.commit_log_offset)).body == b"waits for the disk"


def test_a_message_of_a_deleted_topic_is_not_found_when_the_topic_is_created_again(store: MessageStore) -> None:
    (place,) = send(store, b"old")
    delete_topic(store, b"orders")
    with pytest.raises(RecordNotFound):
        store.read_queued(place.commit_log_offset)
    (new,) = send(store, b"new")
    with pytest.raises(RecordNotFound):
        store.read_queued(place.commit_log_offset)
    assert decode_record(store.read_queued(new.commit_log_offset)).body == b"new"


@pytest.mark.parametrize("damaged", [(0, 0), (1 << 40, 100), (-5, 100)])
def test_a_message_whose_unit_is_damaged_is_found_and_a_record_inside_a_body_is_not(
    config: StoreConfig, store: MessageStore, damaged: tuple[int, int]
) -> None:
    send(store, b"0", b"1", b"2")
    at = store.written_position + HEAD_LENGTH
    places = send(store, record_inside_a_body(at, 1), b"4")
    store.flush()
    (second,) = [place for place in [store.commit_log_offset(b"orders", 0, 1)] if place is not None]
    crash(store)
    patch_unit(config, 1, *damaged)
    again = open_store(config)
    patch_unit(config, 1, *damaged)  # found after the start, which mends what it finds

    assert decode_record(again.read_queued(second)).body == b"1"
    assert again.read_queued(places[1].commit_log_offset)
    with pytest.raises(RecordNotFound):
        again.read_queued(at)


def test_a_damaged_record_is_said_to_be_damaged(config: StoreConfig, store: MessageStore) -> None:
    (place,) = send(store, b"body")
    path = config.commit_log_directory / f"{0:020d}"
    with path.open("r+b") as file:
        file.seek(place.commit_log_offset + HEAD_LENGTH)
        file.write(b"B")
    with pytest.raises(CorruptRecord):
        store.read_queued(place.commit_log_offset)


@pytest.mark.parametrize(
    ("asked_for", "max_bytes", "are_all"), [(4, None, True), (3, None, False), (2, None, False), (4, 200, False)]
)
def test_a_query_says_whether_it_found_all(store: MessageStore, asked_for: int, max_bytes: int | None, are_all: bool) -> None:
    send(store, *[b"body"] * 3, properties=b"KEYS\x01k")
    assert store.query(b"orders", "k", asked_for, 0, NOW * 2, max_bytes).are_all is are_all


def test_a_query_for_more_than_the_index_ever_finds_says_that_there_may_be_others(tmp_path: Path) -> None:
    store = open_store(small_config(tmp_path, index_entries=1000))
    send(store, *[b"body"] * 64, properties=b"KEYS\x01k")
    found = store.query(b"orders", "k", 1000, 0, NOW * 2)
    assert (len(found.records), found.are_all) == (64, False)
