"""Splits a record into fields with their names, positions and values. See `rocketmq_broker.message.record` for the layout."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag
from rocketmq_broker.message.record import host_text, read_fields

_IPV4_HOST: Final = 8
_IPV6_HOST: Final = 20


class MarkedField(NamedTuple):
    """A field of a record."""

    name: str
    """The field's name in RocketMQ's source code."""
    begin: int
    """The position of its first byte in the record."""
    data: bytes
    value: str
    """The decoded value."""


def marked_fields(record: bytes) -> list[MarkedField]:
    """Returns all fields of one record in order. Together, the fields cover all bytes of the record. Raises CorruptRecord."""
    head, _, topic_at, properties_at = read_fields(record)
    topic_length, properties_length = properties_at - 2 - topic_at, len(record) - properties_at
    fields, begin = [], 0
    for name, size in _sizes(head[7], head[14], topic_length, properties_length):
        data = record[begin : begin + size]
        fields.append(MarkedField(name, begin, data, _value(name, data)))
        begin += size
    return fields


def _sizes(sys_flag: int, body_length: int, topic_length: int, properties_length: int) -> Iterator[tuple[str, int]]:
    yield from (("TOTALSIZE", 4), ("MAGICCODE", 4), ("BODYCRC", 4), ("QUEUEID", 4), ("FLAG", 4), ("QUEUEOFFSET", 8))
    yield from (("PHYSICALOFFSET", 8), ("SYSFLAG", 4), ("BORNTIMESTAMP", 8))
    yield "BORNHOST", _IPV6_HOST if sys_flag & sysflag.BORN_HOST_V6 else _IPV4_HOST
    yield "STORETIMESTAMP", 8
    yield "STOREHOST", _IPV6_HOST if sys_flag & sysflag.STORE_HOST_V6 else _IPV4_HOST
    yield from (("RECONSUMETIMES", 4), ("PREPAREDTRANSACTIONOFFSET", 8), ("BODYLENGTH", 4), ("BODY", body_length))
    yield from (("TOPICLENGTH", 1), ("TOPIC", topic_length))
    yield from (("PROPERTIESLENGTH", 2), ("PROPERTIES", properties_length))


def _value(name: str, data: bytes) -> str:
    if name.endswith("HOST"):
        return host_text(data)
    if name in ("BODY", "TOPIC"):
        return data.decode(errors="replace")
    if name == "PROPERTIES":
        return "  ".join(f"{key}={value}" for key, value in props.decode(data).items())
    number = int.from_bytes(data, "big", signed=name not in ("TOPICLENGTH", "PROPERTIESLENGTH"))
    if name in ("MAGICCODE", "BODYCRC"):
        return f"{number & 0xFFFFFFFF:#010x}"
    if name == "SYSFLAG":
        return f"{number} ({_flags(number)})"
    return str(number)


_TRANSACTION_STATES: Final = {
    sysflag.TRANSACTION_NOT_TYPE: "no transaction bits",
    sysflag.TRANSACTION_PREPARED_TYPE: "prepared: a half message",
    sysflag.TRANSACTION_COMMIT_TYPE: "COMMIT",
    sysflag.TRANSACTION_ROLLBACK_TYPE: "ROLLBACK",
}


def _flags(sys_flag: int) -> str:
    words = [_TRANSACTION_STATES[sys_flag & sysflag.TRANSACTION_MASK]]
    if sys_flag & sysflag.COMPRESSED:
        words.append("compressed")
    return ", ".join(words)
