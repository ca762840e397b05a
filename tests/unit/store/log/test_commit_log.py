import os

import pytest

from rocketmq_broker.message.sysflag import BORN_HOST_V6
from rocketmq_broker.store import CorruptRecord, GetMessageStatus, MessageStore, StoreConfig, UnreadableRecord
from tests.unit.store.conftest import HOST, NOW, append, bodies, crash, open_store, patch_unit, send

UNIT_SIZE = 20


def test_no_record_begins_in_the_last_bytes_of_the_log(store: MessageStore) -> None:
    end = send(store, b"1", b"2")[1].end_position
    for offset in range(end - 100, end + 10):
        if offset != end - 98:
            with pytest.raises(UnreadableRecord):
                store.read(offset)
    assert store.read(end - 98)


def test_a_message_that_cannot_be_encoded_harms_none_before_or_after_it(store: MessageStore, config: StoreConfig) -> None:
    send(store, b"1" * 500)
    for size in (10, 500):
        with pytest.raises((ValueError, OverflowError)):
            append(store, b"x" * size, flag=1 << 40)
        store.publish(store.write())
    assert len(list(config.commit_log_directory.iterdir())) == 1
    (after,) = send(store, b"2")
    assert (after.commit_log_offset, after.queue_offset) == (1024, 1)
    assert bodies(store) == [b"1" * 500, b"2"]
    crash(store)
    again = open_store(config)
    assert bodies(again) == [b"1" * 500, b"2"]


@pytest.mark.parametrize("offset", [-1, 1, 1024 - 20, 1024 - 50, 1024 - 96, 5000])
def test_a_damaged_unit_that_points_at_no_record_has_no_store_time(store: MessageStore, config: StoreConfig, offset: int) -> None:
    send(store, *[b"%d" % number * 300 for number in range(4)])
    store.flush()
    patch_unit(config, 1, offset, 100)
    assert [store.store_time(b"orders", 0, number) for number in range(4)] == [NOW, -1, NOW, NOW]


def test_a_record_in_a_messages_body_is_not_taken_for_one_of_the_log(store: MessageStore, config: StoreConfig) -> None:
    (first,) = send(store, b"1")
    (copy,) = send(store, store.read(first.commit_log_offset))
    store.flush()
    patch_unit(config, 1, copy.commit_log_offset + 88, 98)
    assert store.store_time(b"orders", 0, 1) == -1
    with pytest.raises(CorruptRecord):
        store.read(copy.commit_log_offset + 88)


def test_a_record_at_a_segments_very_end_has_its_store_time(store: MessageStore) -> None:
    (first,) = send(store, b"x" * (1024 - 97 - 97 - 12 - 8), store_timestamp=NOW)
    born = bytes(15) + b"\x01" + HOST[4:]
    (last,) = send(store, b"", born_host=born, sys_flag=BORN_HOST_V6, store_timestamp=NOW + 7)
    assert (first.end_position, last.end_position) == (1024 - 97 - 12 - 8, 1024 - 8)
    assert store.store_time(b"orders", 0, 1) == NOW + 7


def test_a_queue_whose_file_was_cut_while_the_broker_runs_goes_on_at_the_next_file(
    store: MessageStore, config: StoreConfig
) -> None:
    send(store, *(b"%d" % number for number in range(18)))
    store.flush()
    first, _, third = sorted((config.consume_queue_directory / "orders" / "0").iterdir())
    os.truncate(first, 3 * UNIT_SIZE)
    third.write_bytes(b"")
    pulled = [store.pull(b"orders", 0, offset, 32, 1 << 20) for offset in (0, 3, 8, 16)]
    assert [(one.status, len(one.records), one.next_begin_offset) for one in pulled] == [
        (GetMessageStatus.FOUND, 3, 3),
        (GetMessageStatus.OFFSET_FOUND_NULL, 0, 8),
        (GetMessageStatus.FOUND, 8, 16),
        (GetMessageStatus.OFFSET_FOUND_NULL, 0, 18),
    ]
