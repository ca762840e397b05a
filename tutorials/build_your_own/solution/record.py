"""Stages 2 to 4: the format of records. The commit log stores each message as a record, and a pull returns the same bytes.

    TOTALSIZE 4 | MAGICCODE 4 | BODYCRC 4 | QUEUEID 4 | FLAG 4 | QUEUEOFFSET 8 | PHYSICALOFFSET 8 | SYSFLAG 4 |
    BORNTIMESTAMP 8 | BORNHOST 8 | STORETIMESTAMP 8 | STOREHOST 8 | RECONSUMETIMES 4 | PREPAREDTRANSACTIONOFFSET 8 |
    BODYLENGTH 4 | body | TOPICLENGTH 1 | topic | PROPERTIESLENGTH 2 | properties

All numbers are big-endian. A host is an IPv4 address (4) and a port (4).
"""

import socket
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

MAGIC = 0xDAA320A7

NOT_TRANSACTIONAL = 0x0
COMMITTED = 0x8
ROLLED_BACK = 0xC
TRANSACTION_BITS = 0xC
"""The bits of SYSFLAG that hold the type of a record in a transaction, such as half message or committed message."""

_HEAD = struct.Struct(">IIIiiqqiq8sq8siqI")


@dataclass(frozen=True, slots=True)
class Message:
    """A message with the address of its producer."""

    topic: str
    queue_id: int
    body: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: bytes = bytes(8)
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A message with its position in the commit log and in its queue."""

    message: Message
    queue_offset: int
    commit_log_offset: int
    store_timestamp: int
    store_host: bytes

    def property(self, name: str) -> str:
        """Returns the property with this name, or "" if the message does not have it."""
        return self.message.properties.get(name, "")


def encode(record: Record) -> bytes:
    """Encodes a record as bytes."""
    message = record.message
    topic = message.topic.encode()
    properties = encode_properties(message.properties)
    size = _HEAD.size + len(message.body) + 1 + len(topic) + 2 + len(properties)
    head = _HEAD.pack(
        size,
        MAGIC,
        body_crc(message.body),
        message.queue_id,
        message.flag,
        record.queue_offset,
        record.commit_log_offset,
        message.sys_flag,
        message.born_timestamp,
        message.born_host,
        record.store_timestamp,
        record.store_host,
        message.reconsume_times,
        message.prepared_transaction_offset,
        len(message.body),
    )
    return head + message.body + len(topic).to_bytes(1) + topic + len(properties).to_bytes(2) + properties


def decode(data: bytes) -> Record | None:
    """Decodes the record at the beginning of the bytes. Returns None if no intact record begins there."""
    if len(data) < _HEAD.size:
        return None
    (
        size, magic, crc, queue_id, flag, queue_offset, commit_log_offset, sys_flag, born_timestamp, born_host,
        store_timestamp, store_host, reconsume_times, prepared_transaction_offset, body_length,
    ) = _HEAD.unpack_from(data)  # fmt: skip
    topic_at = _HEAD.size + body_length + 1
    if magic != MAGIC or size > len(data) or topic_at > size:
        return None
    body = data[_HEAD.size : topic_at - 1]
    properties_at = topic_at + data[topic_at - 1] + 2
    length = int.from_bytes(data[properties_at - 2 : properties_at])
    if properties_at + length != size or crc != body_crc(body):
        return None
    message = Message(
        data[topic_at : properties_at - 2].decode(), queue_id, body, decode_properties(data[properties_at:size]), flag,
        sys_flag, born_timestamp, born_host, reconsume_times, prepared_transaction_offset,
    )  # fmt: skip
    return Record(message, queue_offset, commit_log_offset, store_timestamp, store_host)


def body_crc(body: bytes) -> int:
    """Returns the CRC-32 of a body with the highest bit cleared, because Java has no unsigned integers."""
    return zlib.crc32(body) & 0x7FFFFFFF


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Encodes properties as NAME 0x01 VALUE 0x02 NAME 0x01 VALUE, in UTF-8."""
    return "\x02".join(f"{name}\x01{value}" for name, value in properties.items()).encode()


def decode_properties(data: bytes) -> dict[str, str]:
    """Decodes the output of `encode_properties`."""
    pairs = (pair.partition("\x01") for pair in data.decode().split("\x02"))
    return {name: value for name, _, value in pairs if name and value}


def host_bytes(host: str, port: int) -> bytes:
    """Encodes an IPv4 address and a port in the format of a record's host fields."""
    return socket.inet_aton(host) + port.to_bytes(4)
