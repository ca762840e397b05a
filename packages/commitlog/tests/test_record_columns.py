"""Tests of the commit log's columns without Spark."""

import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from rocketmq_broker.message import CorruptRecord, properties, sysflag
from rocketmq_broker.message.record import decode_record, encode_record, host_bytes, lacks_bytes
from rocketmq_commitlog.commit_log import Damage, LogRange, LogRecord, scan
from rocketmq_commitlog.record_columns import COLUMNS
from rocketmq_commitlog.source import CommitLogReader
from tests.unit.pipelines.log_writer import LogWriter

_TYPES = {"body": BinaryType(), "size": IntegerType(), "queue_id": IntegerType(), "check_times": IntegerType()}
_TEXTS = ("kind", "topic", "unique_key", "keys", "real_topic", "decided_queue_offsets")


def read(store: Path, *names: str) -> list[dict[str, Any]]:
    schema = StructType(
        [StructField(name, _TYPES.get(name, StringType() if name in _TEXTS else LongType())) for name in names or COLUMNS]
    )
    reader = CommitLogReader(store, schema, 1 << 20)
    return [row for partition in reader.partitions() for batch in reader.read(partition) for row in batch.to_pylist()]


def test_a_half_message_has_all_its_columns(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    more = {properties.TRANSACTION_CHECK_TIMES: "3", properties.REAL_TOPIC: "orders"}
    offset = log.append("RMQ_SYS_TRANS_HALF_TOPIC", "a b", "U", 7, body=b"{}", more=more, half=5, born=6)
    (row,) = read(tmp_path)
    assert row == {
        "commit_log_offset": offset, "size": row["size"], "kind": "half", "topic": "RMQ_SYS_TRANS_HALF_TOPIC", "queue_id": 0,
        "queue_offset": 0, "stored_at_ms": 7, "born_at_ms": 6, "half_commit_log_offset": 5, "unique_key": "U", "keys": "a b",
        "real_topic": "orders", "decided_queue_offsets": None, "check_times": 3, "body": b"{}",
    }  # fmt: skip


def test_each_kind_is_told_by_topic_or_flag(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.deliver("a", half=log.half("a"))
    log.decide(0, 4)
    log.discard("b")
    log.append("payments", "p", None, 1)
    kinds = [(row["kind"], row["decided_queue_offsets"]) for row in read(tmp_path, "kind", "decided_queue_offsets")]
    assert kinds == [("half", None), ("committed", None), ("op", "0,4"), ("discarded", None), ("plain", None)]


def test_damage_has_its_place_and_the_keys_that_are_left(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.half("a")
    damaged = log.half("b")
    log.half("c")
    log.flip(damaged, b"{}")
    row = read(tmp_path)[1]
    told = {name: value for name, value in row.items() if value is not None}
    assert told == {"commit_log_offset": damaged, "size": row["size"], "kind": "damage", "keys": "b", "stored_at_ms": 1}


@pytest.mark.parametrize(("body", "shown"), [(zlib.compress(b"x" * 999), b"x" * 999), (b"no zlib", b"no zlib")])
def test_a_compressed_body_is_told_as_its_sender_wrote_it(tmp_path: Path, body: bytes, shown: bytes) -> None:
    log = LogWriter(tmp_path)
    log.append("orders", "a", None, 1, body=body, sys_flag=sysflag.COMPRESSED)
    assert read(tmp_path, "body") == [{"body": shown}]


def test_check_times_that_are_no_number_are_none(tmp_path: Path) -> None:
    LogWriter(tmp_path).append("orders", "a", None, 1, more={properties.TRANSACTION_CHECK_TIMES: "\u00b2"})
    assert read(tmp_path, "check_times") == [{"check_times": None}]


def one_record(host: str) -> bytes:
    address = host_bytes(host, 10911)
    return encode_record(
        topic=b"orders", queue_id=3, queue_offset=9, commit_log_offset=0, flag=0, sys_flag=sysflag.TRANSACTION_COMMIT_TYPE,
        born_timestamp=1, born_host=address, store_timestamp=2, store_host=address, reconsume_times=0,
        prepared_transaction_offset=77, body=b"a body", properties=b"KEYS\x01a",
    )  # fmt: skip


def scanned(directory: Path, data: bytes) -> list[object]:
    path = directory / f"{0:020d}"
    path.write_bytes(data)
    return list(scan(LogRange(str(path), 0, len(data))))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_records_with_both_kinds_of_addresses_are_read(tmp_path: Path, host: str) -> None:
    data = one_record(host)
    (found,) = scanned(tmp_path, data + bytes(100))
    assert found == LogRecord(len(data), 0, 3, 9, found.sys_flag, 1, 2, 77, b"a body", b"orders", b"KEYS\x01a")  # type: ignore[attr-defined]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["127.0.0.1", "::1"]), st.integers(0, 10**6), st.integers(1, 255))
@example("::1", 121, ord("d"))  # a zero in the topic, as if it had not been written
def test_a_flipped_byte_is_taken_for_damage_exactly_where_the_broker_does(
    tmp_path_factory: pytest.TempPathFactory, host: str, place: int, flip: int
) -> None:
    data = bytearray(one_record(host))
    data[place % len(data)] ^= flip
    try:
        record = decode_record(bytes(data) + bytes(100))
        is_intact = record.is_intact and record.commit_log_offset == 0 and not lacks_bytes(record.topic, record.properties)
    except CorruptRecord:
        is_intact = False
    found = scanned(tmp_path_factory.mktemp("log"), bytes(data) + bytes(100))
    assert [type(item) for item in found] in ([[LogRecord]] if is_intact else [[], [Damage]])
