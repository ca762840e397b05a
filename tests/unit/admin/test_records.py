"""Tests the fields of a record, each with its bytes and their meaning."""

import pytest

from rocketmq_broker.admin.output.records import marked_fields
from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.message.record import host_bytes
from tests.stored_records import encoded


def record(born_host: str = "127.0.0.1") -> bytes:
    return encoded(
        "orders", b"paid", {"KEYS": "order-1"}, queue_id=3, queue_offset=7, commit_log_offset=4711, sys_flag=8, reconsume_times=2,
        born_timestamp=1_700_000_000_000, born_host=host_bytes(born_host, 4000), store_timestamp=1_700_000_000_001,
        store_host=host_bytes("127.0.0.1", 10911), prepared_transaction_offset=99,
    )  # fmt: skip


@pytest.mark.parametrize("born_host", ["127.0.0.1", "::1"])
def test_the_fields_side_by_side_are_the_record(born_host: str) -> None:
    data = record(born_host)
    fields = marked_fields(data)
    assert b"".join(field.data for field in fields) == data
    assert [field.begin for field in fields] == [sum(len(one.data) for one in fields[:index]) for index in range(len(fields))]


def test_each_field_says_what_its_bytes_mean() -> None:
    meanings = {field.name: field.value for field in marked_fields(record())}
    assert meanings["TOTALSIZE"] == str(len(record()))
    assert meanings["MAGICCODE"] == "0xdaa320a7"
    assert meanings["QUEUEOFFSET"] == "7"
    assert meanings["PHYSICALOFFSET"] == "4711"
    assert meanings["SYSFLAG"] == "8 (COMMIT)"
    assert meanings["BORNHOST"] == "127.0.0.1:4000"
    assert meanings["PREPAREDTRANSACTIONOFFSET"] == "99"
    assert meanings["BODY"] == "paid"
    assert meanings["TOPIC"] == "orders"
    assert meanings["PROPERTIES"] == "KEYS=order-1"


def test_bytes_that_are_no_record_are_refused() -> None:
    with pytest.raises(CorruptRecord):
        marked_fields(record()[:-1])
