"""A pull reads the records of one queue in few reads, even if records of other queues lie between them."""

from pathlib import Path

import pytest

from rocketmq_broker.message.record import decode_record
from rocketmq_broker.store import MessageStore
from rocketmq_broker.store.queues import unit_read
from tests.unit.store.conftest import open_store, send, small_config

QUEUES = 4


@pytest.fixture
def store(tmp_path: Path) -> MessageStore:
    return open_store(small_config(tmp_path, commit_log_segment_size=4 << 20))


@pytest.fixture
def reads(store: MessageStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the sizes of the commit log reads."""
    noted: list[int] = []
    segments = store._log.segments
    read = segments.read
    monkeypatch.setattr(segments, "read", lambda position, size: noted.append(size) or read(position, size))
    return noted


def send_in_turn(store: MessageStore, count: int, body_of_others: bytes = b"another queue's") -> None:
    for number in range(count):
        send(store, b"%d" % number)
        for queue_id in range(1, QUEUES):
            send(store, body_of_others, queue_id=queue_id)


def pulled_bodies(store: MessageStore, max_messages: int, max_bytes: int = 1 << 20) -> list[bytes]:
    return [decode_record(record).body for record in store.pull(b"orders", 0, 0, max_messages, max_bytes).records]


def test_messages_of_queues_that_take_turns_come_in_one_read(store: MessageStore, reads: list[int]) -> None:
    send_in_turn(store, 8)
    assert pulled_bodies(store, 8) == [b"%d" % number for number in range(8)]
    assert len(reads) == 1


def test_what_lies_far_apart_is_not_read_along(store: MessageStore, reads: list[int]) -> None:
    send_in_turn(store, 4, body_of_others=bytes(unit_read.MAX_PASSED_OVER))
    assert pulled_bodies(store, 4) == [b"0", b"1", b"2", b"3"]
    assert len(reads) == 4
    assert sum(reads) < unit_read.MAX_PASSED_OVER


def test_one_read_has_a_bound(store: MessageStore, reads: list[int]) -> None:
    send_in_turn(store, 100, body_of_others=bytes(2000))
    assert pulled_bodies(store, 100) == [b"%d" % number for number in range(100)]
    assert len(reads) == 2
    assert max(reads) <= unit_read.MAX_RUN_LENGTH


def test_a_message_longer_than_the_bound_comes_whole(store: MessageStore) -> None:
    long = bytes(unit_read.MAX_RUN_LENGTH + 1)
    send(store, b"short", long, b"short too")
    assert pulled_bodies(store, 3) == [b"short", long, b"short too"]


def test_each_segment_has_a_read_of_its_own(tmp_path: Path) -> None:
    with_small_segments = open_store(small_config(tmp_path / "small"))
    send_in_turn(with_small_segments, 12)
    assert pulled_bodies(with_small_segments, 12) == [b"%d" % number for number in range(12)]
    assert len(with_small_segments._log.segments.starts) > 2
