"""Tests records, which the commit log stores and a pull returns."""

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.message import CorruptRecord, properties, record, sysflag
from rocketmq_broker.message.record import (
    Record,
    decode_record,
    decode_records,
    encode_blank,
    host_bytes,
    host_text,
    records_of,
    to_message,
)

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
ports = st.integers(0, 65535)
hosts = st.builds(host_bytes, st.ip_addresses(v=4).map(str), ports) | st.builds(host_bytes, st.ip_addresses(v=6).map(str), ports)


@st.composite
def records(draw: st.DrawFn) -> Record:
    born_host, store_host = draw(hosts), draw(hosts)
    flags = draw(st.sampled_from([0, 4, 8, 12]))
    flags |= sysflag.BORN_HOST_V6 if len(born_host) == 20 else 0
    flags |= sysflag.STORE_HOST_V6 if len(store_host) == 20 else 0
    body, topic, encoded = draw(st.binary(max_size=100)), draw(st.binary(max_size=127)), draw(st.binary(max_size=200))
    made = Record(
        size=0, body_crc=record.body_crc(body), queue_id=draw(int32), flag=draw(int32), queue_offset=draw(int64),
        commit_log_offset=draw(int64), sys_flag=flags, born_timestamp=draw(int64), born_host=born_host,
        store_timestamp=draw(int64), store_host=store_host, reconsume_times=draw(int32),
        prepared_transaction_offset=draw(int64), body=body, topic=topic, properties=encoded,
    )  # fmt: skip
    return replace(made, size=len(made.encode()))


def plain_record(body: bytes = b"body", sys_flag: int = 0, encoded: bytes = b"") -> Record:
    host = host_bytes("127.0.0.1", 10911)
    return decode_record(
        record.encode_record(
            topic=b"orders", queue_id=1, queue_offset=2, commit_log_offset=3, flag=4, sys_flag=sys_flag, born_timestamp=5,
            born_host=host, store_timestamp=6, store_host=host, reconsume_times=7, prepared_transaction_offset=8, body=body,
            properties=encoded,
        )
    )  # fmt: skip


@given(records(), st.binary(max_size=10), st.binary(max_size=10))
def test_a_record_comes_back_as_it_went_wherever_it_lies(made: Record, before: bytes, after: bytes) -> None:
    assert decode_record(before + made.encode() + after, len(before)) == made


@given(st.lists(records(), max_size=4))
def test_records_one_after_the_other_come_back_in_order(made: list[Record]) -> None:
    assert decode_records(b"".join(each.encode() for each in made)) == made


@given(st.lists(records(), max_size=4), st.sampled_from([b"", bytes(100), encode_blank(100), plain_record().encode()[:-1]]))
def test_the_records_of_a_segment_end_where_no_record_begins(made: list[Record], behind: bytes) -> None:
    assert list(records_of(b"".join(each.encode() for each in made) + behind)) == made


def test_the_records_of_a_segment_end_before_one_whose_body_is_damaged() -> None:
    encoded = plain_record(b"body").encode()
    assert list(records_of(encoded + encoded.replace(b"body", b"bodi"))) == [plain_record(b"body")]


@given(records(), st.data())
def test_a_torn_record_is_corrupt(made: Record, data: st.DataObject) -> None:
    encoded = made.encode()
    with pytest.raises(CorruptRecord):
        decode_record(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@given(records(), st.integers(0, 10_000), st.integers(1, 255))
def test_a_flipped_byte_is_corrupt_or_shows_and_never_a_surprise(made: Record, at: int, flip: int) -> None:
    damaged = bytearray(made.encode())
    damaged[at % len(damaged)] ^= flip
    try:
        read = decode_record(bytes(damaged))
    except CorruptRecord:
        return
    assert read != made


@pytest.mark.parametrize(
    ("position", "damage", "words"),
    [
        (84, b"\xff\xff\xff\xff", "body length: -1 bytes"),
        (84, b"\x00\x00\x00\x0f", "body length: 15 bytes"),
        (84, b"\x00\x00\x00\x05", "is truncated"),
        (92, b"\x05", "but its fields add up to"),
        (92, b"\xff", "is truncated"),
        (99, b"\x00\x05", "but its fields add up to"),
        (99, b"\x00\x03", "but its fields add up to"),
    ],
)
def test_a_record_whose_lengths_disagree_is_corrupt(position: int, damage: bytes, words: str) -> None:
    encoded = bytearray(plain_record(b"body", encoded=b"abcd").encode())
    encoded[position : position + len(damage)] = damage
    with pytest.raises(CorruptRecord, match=words):
        decode_record(bytes(encoded))


def test_a_record_does_not_borrow_from_the_one_behind_it() -> None:
    first, second = plain_record(b"body").encode(), plain_record(b"x" * 300).encode()
    for at in (84 + 3, 92, 99 + 1):
        damaged = bytearray(first + second)
        damaged[at] += 20
        with pytest.raises(CorruptRecord):
            decode_record(bytes(damaged))


def test_a_damaged_body_does_not_match_its_checksum() -> None:
    made = plain_record(b"body")
    assert made.is_intact
    assert not replace(made, body=b"bodx").is_intact


def test_the_checksum_is_the_crc_without_its_highest_bit() -> None:
    body = next(bytes([n]) for n in range(256) if zlib.crc32(bytes([n])) > 0x7FFFFFFF)
    assert record.body_crc(body) == zlib.crc32(body) - 0x80000000


def test_the_end_of_a_segment_is_no_record() -> None:
    with pytest.raises(CorruptRecord, match="no record at 0"):
        decode_record(encode_blank(100) + bytes(92))


def test_the_positions_that_are_patched_are_where_the_fields_are() -> None:
    made = plain_record()
    encoded = made.encode()
    for position, value, length in [
        (record.QUEUE_OFFSET_POSITION, made.queue_offset, 8),
        (record.PHYSICAL_OFFSET_POSITION, made.commit_log_offset, 8),
        (record.SYS_FLAG_POSITION, made.sys_flag, 4),
        (record.STORE_TIMESTAMP_POSITION, made.store_timestamp, 8),
    ]:
        assert int.from_bytes(encoded[position : position + length]) == value


def test_a_record_that_apaches_broker_wrote_is_read_and_written_identically() -> None:
    lines = (Path(__file__).parents[2] / "data/frames/apache-4.9.7.jsonl").read_text().splitlines()
    checks = [line for line in map(json.loads, lines) if line["code"] == 39 and not line["is_response"]]
    assert checks
    for check in checks:
        frame = bytes.fromhex(check["frame"])
        body = frame[8 + int.from_bytes(frame[5:8]) :]
        made = decode_record(body)
        assert made.encode() == body
        assert made.is_intact
        assert made.get_property(properties.TRANSACTION_PREPARED) == "true"
        message = to_message(made)
        assert message.transaction_id == message.message_id
        assert message.transaction_check_times >= 1


def test_a_message_has_what_its_record_has() -> None:
    encoded = properties.encode({properties.TAGS: "created", properties.KEYS: "k1 k2", properties.UNIQUE_KEY: "id"})
    message = to_message(plain_record(encoded=encoded), "broker-a")
    assert (message.topic, message.body, message.tags, message.keys, message.message_id) == (
        "orders", b"body", "created", ("k1", "k2"), "id",
    )  # fmt: skip
    assert message.message_queue == record.MessageExt.message_queue.fget(message)  # type: ignore[attr-defined]
    assert (message.broker_name, message.queue_id, message.queue_offset) == ("broker-a", 1, 2)
    assert message.born_host == message.store_host == "127.0.0.1:10911"
    assert message.offset_message_id == "7F00000100002A9F0000000000000003"


@pytest.mark.parametrize("kind", [0, sysflag.COMPRESSION_ZLIB])
def test_a_compressed_body_is_restored(kind: int) -> None:
    compressed = plain_record(zlib.compress(b"long" * 100), sysflag.COMPRESSED | kind)
    assert to_message(compressed).body == b"long" * 100


@pytest.mark.parametrize(
    ("body", "flags", "words"),
    [
        (b"not compressed", sysflag.COMPRESSED, "cannot be decompressed"),
        (b"x", sysflag.COMPRESSED | sysflag.COMPRESSION_LZ4, "0x100"),
        (b"x", sysflag.COMPRESSED | sysflag.COMPRESSION_ZSTD, "0x200"),
    ],
)
def test_a_compressed_body_that_cannot_be_restored_is_corrupt(body: bytes, flags: int, words: str) -> None:
    with pytest.raises(CorruptRecord, match=words):
        to_message(plain_record(body, flags))


@pytest.mark.parametrize(("host", "text"), [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80")])
def test_addresses_are_written_as_people_write_them(host: str, text: str) -> None:
    assert host_text(host_bytes(host, 80)) == text


def test_a_transaction_type_replaces_the_one_before_it_and_leaves_the_other_bits() -> None:
    assert sysflag.with_transaction(sysflag.TRANSACTION_PREPARED_TYPE | 1, sysflag.TRANSACTION_COMMIT_TYPE) == 8 | 1


@pytest.mark.parametrize(("topic", "encoded"), [(b"t" * 256, b""), (b"t", b"p" * 65_536)], ids=["topic", "properties"])
def test_a_length_that_its_field_cannot_hold_is_refused(topic: bytes, encoded: bytes) -> None:
    with pytest.raises(ValueError, match="field too long for a record"):
        replace(plain_record(), topic=topic, properties=encoded).encode()
