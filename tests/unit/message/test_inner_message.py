import pytest

from rocketmq_broker.message import sysflag
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import decode_record, encode_message, host_bytes, size_of

HOST = host_bytes("127.0.0.1", 10911)
HOST_V6 = host_bytes("::1", 10911)


def message(born_host: bytes = HOST, **fields: object) -> InnerMessage:
    return InnerMessage(b"orders", 2, b"body", b"KEYS\x01k", 7, sysflag.COMPRESSED, 1_000, born_host, **fields)  # type: ignore[arg-type]


def encoded(inner: InnerMessage, store_host: bytes = HOST) -> bytes:
    return encode_message(inner, size_of(inner, store_host), 5, 4096, 2_000, store_host)


def test_a_record_holds_what_the_message_says_and_what_the_store_adds() -> None:
    record = decode_record(encoded(message(reconsume_times=3, prepared_transaction_offset=9)))
    assert (record.topic, record.queue_id, record.body, record.properties) == (b"orders", 2, b"body", b"KEYS\x01k")
    assert (record.flag, record.born_timestamp, record.reconsume_times, record.prepared_transaction_offset) == (7, 1_000, 3, 9)
    assert (record.queue_offset, record.commit_log_offset, record.store_timestamp) == (5, 4096, 2_000)
    assert record.is_intact


@pytest.mark.parametrize("born_host", [HOST, HOST_V6])
@pytest.mark.parametrize("store_host", [HOST, HOST_V6])
@pytest.mark.parametrize("claimed", [0, sysflag.HOSTS_V6])
def test_the_flag_of_a_record_tells_which_hosts_are_ipv6_ones_whatever_the_message_says(
    born_host: bytes, store_host: bytes, claimed: int
) -> None:
    inner = message(born_host)
    inner.sys_flag |= claimed

    record = decode_record(encoded(inner, store_host))

    assert (record.born_host, record.store_host) == (born_host, store_host)
    assert record.sys_flag & sysflag.COMPRESSED


def test_a_checksum_that_is_known_is_not_computed_again() -> None:
    assert decode_record(encoded(message(body_crc=42))).body_crc == 42
