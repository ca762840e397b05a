"""Whether bytes are an intact record: nothing else may leave the store (CommitLog.checkMessageAndReturnSize).

A record is intact if its size, magic code, own position, the lengths of its parts and the body's checksum agree. What
the checksum does not cover, RocketMQ's format cannot tell.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, NamedTuple

from broker.message import record, sysflag

HEAD: Final = struct.Struct(">iiiiiqqi8x")
"""TOTALSIZE, MAGICCODE, BODYCRC, QUEUEID, FLAG, QUEUEOFFSET, PHYSICALOFFSET, SYSFLAG; then BORNTIMESTAMP."""
MIN_SIZE: Final = record.FIXED_LENGTH
MAX_SIZE: Final = 32 << 20
"""More than any record has: none is longer than a frame."""
MAGIC: Final = record.MESSAGE_MAGIC.to_bytes(4, "big", signed=True)

_AFTER_BORN_HOST = struct.Struct(">q")
_BODY_LENGTH = struct.Struct(">i")
_UINT16 = struct.Struct(">H")


class CheckedRecord(NamedTuple):
    """The parts of an intact record that the store itself uses."""

    size: int
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    topic: bytes
    properties: bytes


def check_record(data: bytes, at: int, commit_log_offset: int) -> CheckedRecord | None:
    """The record that begins at `data[at]` and at that offset of the commit log, or None if it is not whole and intact."""
    available = len(data) - at
    if available < MIN_SIZE:
        return None
    size, magic, crc, queue_id, _, queue_offset, physical_offset, sys_flag = HEAD.unpack_from(data, at)
    if magic != record.MESSAGE_MAGIC or physical_offset != commit_log_offset or not MIN_SIZE <= size <= available:
        return None
    store_timestamp_at = at + record.STORE_TIMESTAMP_POSITION
    body_at = at + record.FIXED_LENGTH - 3
    if sys_flag & sysflag.HOSTS_V6:
        if sys_flag & sysflag.BORN_HOST_V6:
            store_timestamp_at += 12
            body_at += 12
        if sys_flag & sysflag.STORE_HOST_V6:
            body_at += 12
    end = at + size
    (body_length,) = _BODY_LENGTH.unpack_from(data, body_at - 4)
    topic_at = body_at + body_length + 1
    if body_length < 0 or topic_at + 2 > end:
        return None
    properties_at = topic_at + data[topic_at - 1] + 2
    if properties_at > end or properties_at + _UINT16.unpack_from(data, properties_at - 2)[0] != end:
        return None
    if zlib.crc32(data[body_at : topic_at - 1]) & 0x7FFFFFFF != crc:
        return None
    return CheckedRecord(
        size,
        queue_id,
        queue_offset,
        sys_flag,
        _AFTER_BORN_HOST.unpack_from(data, store_timestamp_at)[0],
        data[topic_at : properties_at - 2],
        data[properties_at:end],
    )


def resembles_record(head: bytes, size: int, commit_log_offset: int) -> bool:
    """Whether two of the three marks by which a record begins are there: damage to one of them leaves it recognisable."""
    if len(head) < HEAD.size:
        return False
    found_size, magic, _, _, _, _, physical_offset, _ = HEAD.unpack_from(head)
    return [found_size == size, magic == record.MESSAGE_MAGIC, physical_offset == commit_log_offset].count(True) >= 2
