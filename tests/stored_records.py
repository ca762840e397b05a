"""Records of a commit log, of which a test names only the fields that matter to it."""

from collections.abc import Mapping
from typing import Any

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.record import Record, decode_record, encode_record, host_bytes

HOST = host_bytes("127.0.0.1", 1)


def encoded(topic: str = "orders", body: bytes = b"order", properties: Mapping[str, str] | None = None, **fields: Any) -> bytes:
    """Returns the bytes of a record. Each field that is not given is 0, except times and hosts."""
    numbers = (
        "queue_id",
        "queue_offset",
        "commit_log_offset",
        "flag",
        "sys_flag",
        "reconsume_times",
        "prepared_transaction_offset",
    )
    default = {**dict.fromkeys(numbers, 0), "born_timestamp": 1, "store_timestamp": 2, "born_host": HOST, "store_host": HOST}
    return encode_record(topic=topic.encode(), body=body, properties=props.encode(properties or {}), **{**default, **fields})


def stored(topic: str = "orders", body: bytes = b"order", properties: Mapping[str, str] | None = None, **fields: Any) -> Record:
    """Returns the record that a reader gets from the bytes."""
    return decode_record(encoded(topic, body, properties, **fields))
