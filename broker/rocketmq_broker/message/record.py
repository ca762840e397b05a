"""The layout of a message in the commit log and in pull responses (RocketMQ's CommitLog and MessageDecoder).

    TOTALSIZE 4 | MAGICCODE 4 | BODYCRC 4 | QUEUEID 4 | FLAG 4 | QUEUEOFFSET 8 | PHYSICALOFFSET 8 | SYSFLAG 4 |
    BORNTIMESTAMP 8 | BORNHOST 8 or 20 | STORETIMESTAMP 8 | STOREHOST 8 or 20 | RECONSUMETIMES 4 |
    PREPAREDTRANSACTIONOFFSET 8 | BODYLENGTH 4 | body | TOPICLENGTH 1 | topic | PROPERTIESLENGTH 2 | properties

All numbers are big-endian. A host is an IPv4 address (4) or an IPv6 address (16), as given by two bits of SYSFLAG, and a
port (4). BODYCRC is the CRC-32 of the body without its highest bit.
"""

import socket
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from mmap import mmap
from types import MappingProxyType
from typing import Any, Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be, write_i64_be

from rocketmq_broker.message import ids, properties, sysflag
from rocketmq_broker.message.errors import BodyTooLong, CorruptRecord
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.message import MessageExt
from rocketmq_broker.message.sysflag import HOSTS_V6

try:  # This function takes a third of the time of zlib's for 1 KB.
    from isal.isal_zlib import crc32  # type: ignore[import-not-found, unused-ignore]  # optional when the broker is compiled
except ImportError:  # The package has no wheel for this machine.
    from zlib import crc32

MAX_BODY_LENGTH: Final = 16 * 1024 * 1024
"""The maximum length of a decompressed body in bytes.

It is four times the default of maxMessageSize, and equals the maximum length of a frame.
"""

MESSAGE_MAGIC: Final = -626843481
BLANK_MAGIC: Final = -875286124
"""The magic code that marks the unused end of a commit log segment. TOTALSIZE is the number of bytes to the segment's end."""

FIXED_LENGTH: Final = 91
"""The length in bytes of a record with IPv4 hosts, without body, topic and properties."""

SIZE_AND_MAGIC: Final = struct.Struct(">ii")
SIZE_LENGTH: Final = 4
QUEUE_OFFSET_POSITION: Final = 20
PHYSICAL_OFFSET_POSITION: Final = 28
SYS_FLAG_POSITION: Final = 36
STORE_TIMESTAMP_POSITION: Final = 56
"""The position of STORETIMESTAMP in a record with an IPv4 born host. For an IPv6 born host, add HOST_V6_MORE."""
HOST_V6_MORE: Final = 12
"""The number of bytes by which an IPv6 host is longer than an IPv4 host."""

HEAD_V4: Final = struct.Struct(">iiiiiqqiq8sq8siqi")
"""The format of all fields before the body, if both hosts are IPv4 addresses."""
HEAD_V4_LENGTH: Final = 88
MARKS: Final = struct.Struct(">iiii4xqqi44xi")
"""The format of TOTALSIZE, MAGICCODE, BODYCRC, QUEUEID, QUEUEOFFSET, PHYSICALOFFSET, SYSFLAG and BODYLENGTH.

BODYLENGTH is at this position only if both hosts are IPv4 addresses.
"""
_UNTIL_BORN_TIMESTAMP = struct.Struct(">iiiiiqqiq")
_RECONSUME_TO_BODY_LENGTH = struct.Struct(">iqi")
_ZEROS: Final = bytes(8)
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_HOST_V4 = struct.Struct(">4sI")
_HOST_V6 = struct.Struct(">16sI")


def body_crc(body: bytes | memoryview) -> int:
    """Returns the checksum of a body as stored in a record (UtilAll.crc32)."""
    return crc32(body) & 0x7FFFFFFF


def lacks_bytes(topic: bytes, properties: bytes) -> bool:
    """Returns whether a part of a record's topic or properties was never written and therefore reads as zeros.

    A crash of the process or a power failure may interrupt a write, and the checksum covers only the body. In a record that was
    written completely, the properties end with the cluster's name (in Apache's, with the last value) and do not contain eight
    zero bytes in a row.
    """
    return properties.endswith(b"\0") or _ZEROS in properties or b"\0" in topic


def encode_record(
    *,
    topic: bytes,
    queue_id: int,
    queue_offset: int,
    commit_log_offset: int,
    flag: int,
    sys_flag: int,
    born_timestamp: int,
    born_host: bytes,
    store_timestamp: int,
    store_host: bytes,
    reconsume_times: int,
    prepared_transaction_offset: int,
    body: bytes,
    properties: bytes,
    crc: int | None = None,
) -> bytes:
    """Encodes one record from its fields. The hosts must be encoded with `host_bytes`."""
    message = InnerMessage(
        topic, queue_id, body, properties, flag, sys_flag, born_timestamp, born_host, reconsume_times,
        prepared_transaction_offset, None, crc,
    )  # fmt: skip
    return encode_message(message, size_of(message, store_host), queue_offset, commit_log_offset, store_timestamp, store_host)


def size_of(message: InnerMessage, store_host: bytes) -> int:
    """Returns the size of the message's record in bytes."""
    hosts_extra = len(message.born_host) + len(store_host) - 16
    return FIXED_LENGTH + hosts_extra + len(message.body) + len(message.topic) + len(message.properties)


def encode_message(
    message: InnerMessage, size: int, queue_offset: int, commit_log_offset: int, store_timestamp: int, store_host: bytes
) -> bytes:
    """Encodes a message's record of `size` bytes. Raises the same errors as `write_message`."""
    writer = BytesWriter()
    write_message(writer, message, size, queue_offset, commit_log_offset, store_timestamp, store_host)
    return writer.getvalue()


def write_message(
    writer: BytesWriter,
    message: InnerMessage,
    size: int,
    queue_offset: int,
    commit_log_offset: int,
    store_timestamp: int,
    store_host: bytes,
) -> None:
    """Writes a message's record of `size` bytes. Sets the host bits of sysFlag from the hosts.

    Raises ValueError or OverflowError if a length or number does not fit into its field. In that case a part of the record may
    have been written.
    """
    body, topic, encoded, born_host, crc = message.body, message.topic, message.properties, message.born_host, message.body_crc
    if len(topic) > 0xFF or len(encoded) > 0xFFFF:
        raise ValueError(
            f"field too long for a record: topic {len(topic)} bytes, at most 255; properties {len(encoded)}, at most 65535"
        )
    write_i32_be(writer, size)
    write_i32_be(writer, MESSAGE_MAGIC)
    write_i32_be(writer, body_crc(body) if crc is None else crc)
    write_i32_be(writer, message.queue_id)
    write_i32_be(writer, message.flag)
    write_i64_be(writer, queue_offset)
    write_i64_be(writer, commit_log_offset)
    write_i32_be(writer, sysflag.with_hosts(message.sys_flag, born_host, store_host))
    write_i64_be(writer, message.born_timestamp)
    writer.write(born_host)
    write_i64_be(writer, store_timestamp)
    writer.write(store_host)
    write_i32_be(writer, message.reconsume_times)
    write_i64_be(writer, message.prepared_transaction_offset)
    write_i32_be(writer, len(body))
    writer.write(body)
    writer.append(len(topic))
    writer.write(topic)
    writer.append(len(encoded) >> 8)
    writer.append(len(encoded) & 0xFF)
    writer.write(encoded)


def encode_blank(size: int) -> bytes:
    """Encodes a blank record, which marks the last `size` unused bytes of a segment. `size` must be at least 8."""
    return SIZE_AND_MAGIC.pack(size, BLANK_MAGIC)


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded record, as the broker uses it. Topic and properties stay encoded."""

    size: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    commit_log_offset: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body: bytes
    topic: bytes
    properties: bytes

    def get_property(self, name: str) -> str | None:
        """Returns the value of one property, or None."""
        return properties.find(self.properties, name)

    @property
    def is_intact(self) -> bool:
        """Returns True if the body matches the record's checksum."""
        return body_crc(self.body) == self.body_crc

    def encode(self) -> bytes:
        """Encodes the record. Computes its size from the other fields, and ignores `size`."""
        return encode_record(
            topic=self.topic,
            queue_id=self.queue_id,
            queue_offset=self.queue_offset,
            commit_log_offset=self.commit_log_offset,
            flag=self.flag,
            sys_flag=self.sys_flag,
            born_timestamp=self.born_timestamp,
            born_host=self.born_host,
            store_timestamp=self.store_timestamp,
            store_host=self.store_host,
            reconsume_times=self.reconsume_times,
            prepared_transaction_offset=self.prepared_transaction_offset,
            body=self.body,
            properties=self.properties,
            crc=self.body_crc,
        )


Head = tuple[int, int, int, int, int, int, int, int, int, bytes, int, bytes, int, int, int]
"""The fields of a record before its body.

TOTALSIZE, MAGICCODE, BODYCRC, QUEUEID, FLAG, QUEUEOFFSET, PHYSICALOFFSET, SYSFLAG, BORNTIMESTAMP, BORNHOST, STORETIMESTAMP,
STOREHOST, RECONSUMETIMES, PREPAREDTRANSACTIONOFFSET, BODYLENGTH.
"""


def parts_of(data: bytes, at: int, size: int, magic: int, sys_flag: int, body_length: int) -> tuple[int, int, int]:
    """Returns the positions of the body, topic and properties of the record that begins at `at` in `data`.

    The other arguments are fields that MARKS reads. Verifies the record's lengths but not its checksum. Raises CorruptRecord if
    the bytes are not a complete record.
    """
    until = len(data)
    body_at = at + HEAD_V4_LENGTH
    if sys_flag & HOSTS_V6:
        body_at += 2 * HOST_V6_MORE if sys_flag & HOSTS_V6 == HOSTS_V6 else HOST_V6_MORE
        if body_at > until:
            raise CorruptRecord(f"record at {at} is truncated: it has {until - at} bytes, but needs at least {body_at - at}")
        body_length = read_i32_be(data, body_at - 4)
    topic_at = body_at + body_length + 1
    end = at + size
    if magic != MESSAGE_MAGIC or body_length < 0 or end > until or topic_at + 2 > end:
        raise CorruptRecord(_what_is_wrong(data, at, size, magic, body_length))
    properties_at = topic_at + data[topic_at - 1] + 2
    if properties_at > until:
        raise CorruptRecord(f"record at {at} is truncated: it has {until - at} bytes, but needs at least {properties_at - at}")
    parts_end = properties_at + (data[properties_at - 2] << 8 | data[properties_at - 1])
    if parts_end != end:
        raise CorruptRecord(f"record at {at} has an inconsistent size: {size} bytes, but its fields add up to {parts_end - at}")
    return body_at, topic_at, properties_at


def read_fields(data: bytes, at: int = 0) -> tuple[Head, int, int, int]:
    """Returns the head of the record that begins at `at`, and the positions of its body, topic and properties.

    Verifies the record's lengths but not its checksum. Raises CorruptRecord if the bytes are not a complete record.
    """
    try:
        size, magic, _, _, _, _, sys_flag, body_length = MARKS.unpack_from(data, at)
    except struct.error as error:
        raise CorruptRecord(f"record at {at} is truncated: {error}") from None
    body_at, topic_at, properties_at = parts_of(data, at, size, magic, sys_flag, body_length)
    head = HEAD_V4.unpack_from(data, at) if body_at == at + HEAD_V4_LENGTH else _read_head_v6(data, at)
    return head, body_at, topic_at, properties_at


def _read_head_v6(data: bytes, at: int) -> Any:
    """Reads the head of a record in which at least one host is an IPv6 address."""
    head = _UNTIL_BORN_TIMESTAMP.unpack_from(data, at)
    sys_flag = head[7]
    at += _UNTIL_BORN_TIMESTAMP.size
    born_host = data[at : at + (20 if sys_flag & sysflag.BORN_HOST_V6 else 8)]
    at += len(born_host)
    (store_timestamp,) = _INT64.unpack_from(data, at)
    at += _INT64.size
    store_host = data[at : at + (20 if sys_flag & sysflag.STORE_HOST_V6 else 8)]
    at += len(store_host)
    return (*head, born_host, store_timestamp, store_host, *_RECONSUME_TO_BODY_LENGTH.unpack_from(data, at))


def _what_is_wrong(data: bytes, at: int, size: int, magic: int, body_length: int) -> str:
    if magic != MESSAGE_MAGIC:
        return f"no record at {at}: wrong magic code {magic & 0xFFFFFFFF:#x}"
    if size < FIXED_LENGTH or at + size > len(data):
        return f"record at {at} has an invalid size: {size} bytes, {len(data) - at} available"
    return f"record at {at} has an invalid body length: {body_length} bytes, {size} in the whole record"


def decode_record(data: bytes, position: int = 0) -> Record:
    """Decodes the record at `position`. Does not verify its checksum; use `Record.is_intact` for that.

    Raises CorruptRecord if the bytes are not a complete record.
    """
    head, body_at, topic_at, properties_at = read_fields(data, position)
    (
        size, _, crc, queue_id, flag, queue_offset, commit_log_offset, sys_flag, born_timestamp, born_host, store_timestamp,
        store_host, reconsume_times, prepared_transaction_offset, _,
    ) = head  # fmt: skip
    return Record(
        size, crc, queue_id, flag, queue_offset, commit_log_offset, sys_flag, born_timestamp, born_host, store_timestamp,
        store_host, reconsume_times, prepared_transaction_offset, data[body_at : topic_at - 1],
        data[topic_at : properties_at - 2], data[properties_at : position + size],
    )  # fmt: skip


def decode_records(data: bytes) -> list[Record]:
    """Decodes consecutive records, such as the body of a pull response. Raises CorruptRecord."""
    records = []
    position = 0
    while position < len(data):
        record = decode_record(data, position)
        records.append(record)
        position += record.size
    return records


def records_of(segment: bytes | mmap) -> Iterator[Record]:
    """Yields the intact records of a commit log segment in order. Stops at the first position without an intact record."""
    position = 0
    with suppress(CorruptRecord):
        while (record := decode_record(_claimed(segment, position))).is_intact:
            yield record
            position += record.size


def _claimed(segment: bytes | mmap, position: int) -> bytes:
    """Returns the bytes of the record at `position`, according to its size field."""
    size = int.from_bytes(segment[position : position + SIZE_LENGTH], "big")
    return segment[position : position + min(size, 2 * MAX_BODY_LENGTH)]


def commit_log_offset_of(data: bytes) -> int:
    """Returns the commit log offset in a record."""
    return int(read_i64_be(data, PHYSICAL_OFFSET_POSITION))


def queue_offset_of(data: bytes) -> int:
    """Returns the queue offset in a record."""
    return int(read_i64_be(data, QUEUE_OFFSET_POSITION))


def properties_of(data: bytes) -> bytes:
    """Returns the encoded properties of a complete record."""
    return data[read_fields(data)[3] :]


def to_message(record: Record, broker_name: str = "", *, max_body_length: int = MAX_BODY_LENGTH) -> MessageExt:
    """Converts a record to a message with a decompressed body (MessageDecoder.clientDecode).

    Raises CorruptRecord if the body cannot be decompressed, and BodyTooLong if it has more than `max_body_length` bytes.
    """
    return MessageExt(
        topic=record.topic.decode(errors="replace"),
        body=_uncompressed(record, max_body_length),
        properties=MappingProxyType(properties.decode(record.properties)),
        flag=record.flag,
        broker_name=broker_name,
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        commit_log_offset=record.commit_log_offset,
        store_size=record.size,
        sys_flag=record.sys_flag,
        body_crc=record.body_crc,
        born_timestamp=record.born_timestamp,
        born_host=host_text(record.born_host),
        store_timestamp=record.store_timestamp,
        store_host=host_text(record.store_host),
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
        offset_message_id=ids.offset_message_id(record.store_host, record.commit_log_offset),
    )


def moved_message(record: Record, topic: bytes, queue_id: int, encoded_properties: bytes, reconsume_times: int) -> InnerMessage:
    """Returns a message that stores a copy of the record in another queue. Its tag comes from the new properties."""
    return InnerMessage(
        topic, queue_id, record.body, encoded_properties, record.flag, record.sys_flag, record.born_timestamp, record.born_host,
        reconsume_times, body_crc=record.body_crc,
    )  # fmt: skip


def host_bytes(host: str, port: int) -> bytes:
    """Encodes a host and port as in records: 8 bytes for IPv4, 20 bytes for IPv6."""
    if ":" in host:
        return _HOST_V6.pack(socket.inet_pton(socket.AF_INET6, host), port)
    return _HOST_V4.pack(socket.inet_aton(host), port)


def host_text(host: bytes) -> str:
    """Formats an encoded host and port as text, such as 127.0.0.1:10911 or [::1]:10911."""
    if len(host) == _HOST_V6.size:
        address, port = _HOST_V6.unpack(host)
        return f"[{socket.inet_ntop(socket.AF_INET6, address)}]:{port}"
    address, port = _HOST_V4.unpack(host)
    return f"{socket.inet_ntoa(address)}:{port}"


def _uncompressed(record: Record, max_body_length: int) -> bytes:
    if not record.sys_flag & sysflag.COMPRESSED:
        return record.body
    kind = record.sys_flag & sysflag.COMPRESSION_MASK
    if kind not in (0, sysflag.COMPRESSION_ZLIB):
        raise CorruptRecord(
            f"body at {record.commit_log_offset} has an unsupported compression type: {kind:#x}; only zlib is supported"
        )
    inflater = zlib.decompressobj()
    try:
        # The limit protects against compression bombs: a body of 2 MB may expand to 2 GB.
        body = inflater.decompress(record.body, max_body_length + 1)
    except zlib.error as error:
        raise CorruptRecord(f"body at {record.commit_log_offset} cannot be decompressed: {error}") from None
    if len(body) > max_body_length:
        raise BodyTooLong(
            f"body at {record.commit_log_offset} is too long when decompressed: at most {max_body_length} bytes "
            f"(compressed: {len(record.body)} bytes)"
        )
    if not inflater.eof:
        raise CorruptRecord(f"body at {record.commit_log_offset} cannot be decompressed: it is truncated")
    return body
