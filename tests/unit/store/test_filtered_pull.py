"""Tests pulls with a filter on the properties of the records."""

import pytest

from rocketmq_broker.message.record import decode_record, host_bytes
from rocketmq_broker.message.sysflag import BORN_HOST_V6
from rocketmq_broker.store import GetMessageStatus, MessageStore, PulledMessages, StoreConfig
from rocketmq_broker.store.queues import filtered_read
from rocketmq_broker.store.queues.consume_queue import BLANK_SIZE
from tests.unit.store.conftest import append, patch_unit, small_config

EVERYTHING = 1 << 30


class Wants:
    """A filter that matches messages whose property `n` is one of these numbers. Records the properties that it checked."""

    def __init__(self, *numbers: int, cost_ns: int = 0) -> None:
        self._wanted = {b"n\x01%d" % number for number in numbers}
        self._cost_ns = cost_ns
        self.asked: list[bytes] = []

    def matches(self, properties: bytes) -> bool:
        self.asked.append(properties)
        return properties in self._wanted

    def cost_ns(self, properties: bytes) -> int:
        return self._cost_ns


def send_numbered(store: MessageStore, *numbers: int, body: bytes = b"", **fields: object) -> None:
    for number in numbers:
        append(store, body or b"%d" % number, properties=b"n\x01%d" % number, **fields)
    store.publish(store.write())


def pull(
    store: MessageStore, wants: Wants, offset: int = 0, max_messages: int = 32, max_bytes: int = EVERYTHING
) -> PulledMessages:
    return store.pull(b"orders", 0, offset, max_messages, max_bytes, record_filter=wants)


def bodies(pulled: PulledMessages) -> list[bytes]:
    return [decode_record(record).body for record in pulled.records]


def test_only_wanted_records_come_and_the_next_pull_begins_behind_all_that_were_looked_at(store: MessageStore) -> None:
    send_numbered(store, *range(20))
    pulled = pull(store, Wants(3, 17))
    assert (pulled.status, bodies(pulled), pulled.next_begin_offset) == (GetMessageStatus.FOUND, [b"3", b"17"], 20)


def test_nothing_that_matches_is_said_to_be_so(store: MessageStore) -> None:
    send_numbered(store, *range(5))
    pulled = pull(store, Wants(9), 2)
    assert (pulled.status, pulled.records, pulled.next_begin_offset) == (GetMessageStatus.NO_MATCHED_MESSAGE, [], 5)


def test_a_pull_ends_behind_the_last_message_it_may_take(store: MessageStore) -> None:
    send_numbered(store, *range(20))
    pulled = pull(store, Wants(3, 5, 7, 9), max_messages=2)
    assert (bodies(pulled), pulled.next_begin_offset) == ([b"3", b"5"], 6)


def test_a_pull_ends_before_a_message_that_would_make_it_too_large_but_takes_one_however_large(store: MessageStore) -> None:
    send_numbered(store, *range(6), body=b"x" * 300)
    pulled = pull(store, Wants(1, 3), max_bytes=500)
    assert (len(pulled.records), pulled.next_begin_offset) == (1, 3)
    assert len(pull(store, Wants(1, 3), max_bytes=1).records) == 1


@pytest.mark.parametrize("flags", [{}, {"sys_flag": BORN_HOST_V6, "born_host": host_bytes("::1", 5)}])
def test_the_filter_sees_the_properties_as_they_are_stored(store: MessageStore, flags: dict[str, object]) -> None:
    send_numbered(store, 7, body=b"long" * 50, **flags)
    append(store, b"", properties=b"", **flags)
    store.publish(store.write())
    wants = Wants()
    pull(store, wants)
    assert wants.asked == [b"n\x017", b""]


def test_a_pull_looks_no_longer_for_messages_than_the_filter_may_take(store: MessageStore) -> None:
    send_numbered(store, *range(20))
    dear = Wants(19, cost_ns=filtered_read.MAX_COST_NS // 4)
    pulled = pull(store, dear)
    assert (pulled.records, pulled.next_begin_offset, pulled.cost_ns) == ([], 5, filtered_read.MAX_COST_NS // 4 * 5)
    assert len(dear.asked) == 5


def test_a_pull_reads_no_more_than_it_may_in_search_of_messages(store: MessageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered_read, "READ_AT_ONCE", 700)
    monkeypatch.setattr(filtered_read, "MAX_READ", 2000)
    send_numbered(store, *range(20), body=b"x" * 200)
    pulled = pull(store, Wants(19))
    assert (pulled.records, pulled.next_begin_offset) == ([], 8)


def test_every_message_comes_once_whatever_is_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at_once in (1, 150, 400, 10_000):
        monkeypatch.setattr(filtered_read, "READ_AT_ONCE", at_once)
        store = MessageStore.open(small_config(tmp_path_factory.mktemp("store")))
        send_numbered(store, *range(50))
        wanted = [number for number in range(50) if number % 3]
        offset, seen = 0, []
        while offset < 50:
            pulled = pull(store, Wants(*wanted), offset, max_messages=4, max_bytes=350)
            assert pulled.next_begin_offset > offset
            seen += bodies(pulled)
            offset = pulled.next_begin_offset
        assert seen == [b"%d" % number for number in wanted]
        store.close()


def test_a_message_with_a_damaged_unit_is_found_and_filtered_like_others(config: StoreConfig, store: MessageStore) -> None:
    send_numbered(store, *range(6))
    store.flush()
    for number in (1, 2, 4):
        patch_unit(config, number, 0, 0)
    first = pull(store, Wants(1, 4, 5))
    assert (bodies(first), first.next_begin_offset) == ([], 1)
    second = pull(store, Wants(1, 4, 5), 1)
    assert (bodies(second), second.next_begin_offset) == ([b"1"], 4)
    again = pull(store, Wants(1, 4, 5))
    assert bodies(again) == [b"1"]
    third = pull(store, Wants(1, 4, 5), 4)
    assert (bodies(third), third.next_begin_offset) == ([b"4", b"5"], 6)
    assert bodies(pull(store, Wants(1, 4, 5))) == [b"1", b"4", b"5"]


def test_units_without_a_message_are_passed_over(config: StoreConfig, store: MessageStore) -> None:
    send_numbered(store, *range(4))
    store.flush()
    for number in (0, 3):
        patch_unit(config, number, 0, BLANK_SIZE)
    pulled = pull(store, Wants(*range(4)))
    assert (bodies(pulled), pulled.next_begin_offset) == ([b"1", b"2"], 4)


def test_units_that_claim_huge_records_do_not_let_a_pull_read_for_long(
    config: StoreConfig, store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_numbered(store, *range(8))
    store.flush()
    for number in range(1, 7):
        patch_unit(config, number, 0, (1 << 30) + number)
    reads: list[int] = []
    segments = store._log.segments
    read = segments.read
    monkeypatch.setattr(segments, "read", lambda position, size: reads.append(size) or read(position, size))
    offset, seen = 0, []
    while offset < 8:
        del reads[:]
        pulled = pull(store, Wants(*range(8)), offset)
        assert sum(size > filtered_read.MAX_READ for size in reads) <= 1
        seen += bodies(pulled)
        offset = pulled.next_begin_offset
    assert seen == [b"%d" % number for number in range(8)]


def test_a_message_whose_record_is_damaged_is_passed_over(config: StoreConfig, store: MessageStore) -> None:
    send_numbered(store, *range(3), body=b"a body")
    store.flush()
    (segment,) = config.commit_log_directory.iterdir()
    data = bytearray(segment.read_bytes())
    data[data.index(b"a body")] ^= 1
    segment.write_bytes(data)
    assert pull(store, Wants(0, 1, 2)).records == store.pull(b"orders", 0, 1, 32, EVERYTHING).records


def test_without_a_filter_nothing_costs(store: MessageStore) -> None:
    send_numbered(store, 1)
    assert store.pull(b"orders", 0, 0, 32, EVERYTHING).cost_ns == 0
