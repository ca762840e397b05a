"""Verifies records, because the store returns only intact ones (CommitLog.checkMessageAndReturnSize).

A record is intact if its size, magic code, position, the lengths of its parts and the body's checksum are consistent. Other
damage outside the body cannot be detected in RocketMQ's format.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from librt.strings import read_i32_be, read_i64_be

from rocketmq_broker.message import record
from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.message.record import (
    HEAD_V4_LENGTH,
    HOST_V6_MORE,
    MARKS,
    PHYSICAL_OFFSET_POSITION,
    QUEUE_OFFSET_POSITION,
    STORE_TIMESTAMP_POSITION,
    SYS_FLAG_POSITION,
    body_crc,
    parts_of,
)
from rocketmq_broker.message.sysflag import BORN_HOST_V6

if TYPE_CHECKING:
    from mypy_extensions import i64

HEAD: Final = struct.Struct(">iiiiiqqi8x")
"""The first fields of a record: TOTALSIZE, MAGICCODE, BODYCRC, QUEUEID, FLAG, QUEUEOFFSET, PHYSICALOFFSET and SYSFLAG.

BORNTIMESTAMP follows and is skipped.
"""
MIN_SIZE: Final = record.FIXED_LENGTH
MAX_SIZE: Final = 32 << 20
"""An upper bound for the size of a record in bytes, because no record is longer than a frame."""
_MAGIC_BITS: Final = record.MESSAGE_MAGIC & 0xFFFFFFFF
MAGIC: Final = record.MESSAGE_MAGIC.to_bytes(4, "big", signed=True)


class CheckedRecord:
    """The fields of an intact record that the store uses."""

    __slots__ = ("properties", "queue_id", "queue_offset", "size", "store_timestamp", "sys_flag", "topic")

    def __init__(
        self, size: int, queue_id: int, queue_offset: int, sys_flag: int, store_timestamp: int, topic: bytes, properties: bytes
    ) -> None:
        self.size = size
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.sys_flag = sys_flag
        self.store_timestamp = store_timestamp
        self.topic = topic
        self.properties = properties


def check_record(data: bytes, at: int, commit_log_offset: int) -> CheckedRecord | None:
    """Returns the record at `data[at]`, or None if it is incomplete, damaged, or has another commit log offset."""
    try:
        size, magic, crc, queue_id, queue_offset, physical_offset, sys_flag, body_length = MARKS.unpack_from(data, at)
        if physical_offset != commit_log_offset:
            return None
        body_at, topic_at, properties_at = parts_of(data, at, size, magic, sys_flag, body_length)
    except (struct.error, CorruptRecord):
        return None
    if body_crc(data[body_at : topic_at - 1]) != crc:
        return None
    store_timestamp = read_i64_be(data, at + store_timestamp_position(sys_flag))
    topic, properties = data[topic_at : properties_at - 2], data[properties_at : at + size]
    return CheckedRecord(size, queue_id, queue_offset, sys_flag, store_timestamp, topic, properties)


def store_timestamp_position(sys_flag: int) -> int:
    """Returns the position of the store timestamp in a record with this sysFlag."""
    return STORE_TIMESTAMP_POSITION + (HOST_V6_MORE if sys_flag & BORN_HOST_V6 else 0)


def intact_size(data: bytes, at: int, commit_log_offset: int, topic: bytes, queue_id: int, queue_offset: int) -> int:
    """Returns the size of the record at `data[at]` in bytes, or 0 if it is incomplete, damaged, or a different message.

    It is called for every pulled message and must be fast. Unlike `check_record`, it creates no object, and reads two fields at
    once if possible.
    """
    if at + MIN_SIZE > len(data):
        return 0
    if read_i64_be(data, at + PHYSICAL_OFFSET_POSITION) != commit_log_offset:
        return 0
    if read_i64_be(data, at + QUEUE_OFFSET_POSITION) != queue_offset:
        return 0
    size_and_magic: i64 = read_i64_be(data, at)
    crc_and_queue: i64 = read_i64_be(data, at + 8)
    if size_and_magic & 0xFFFFFFFF != _MAGIC_BITS or crc_and_queue & 0xFFFFFFFF != queue_id:
        return 0
    size: int = size_and_magic >> 32
    crc: int = crc_and_queue >> 32
    sys_flag: int = read_i32_be(data, at + SYS_FLAG_POSITION)
    body_length: int = read_i32_be(data, at + HEAD_V4_LENGTH - 4)
    try:
        body_at, topic_at, properties_at = parts_of(data, at, size, record.MESSAGE_MAGIC, sys_flag, body_length)
    except CorruptRecord:
        return 0
    if data[topic_at : properties_at - 2] != topic:
        return 0
    return size if body_crc(data[body_at : topic_at - 1]) == crc else 0


def resembles_record(head: bytes, size: int, commit_log_offset: int) -> bool:
    """Returns whether at least two of size, magic code and position match, because the third field may be damaged."""
    if len(head) < HEAD.size:
        return False
    found_size, magic, _, _, _, _, physical_offset, _ = HEAD.unpack_from(head)
    return [found_size == size, magic == record.MESSAGE_MAGIC, physical_offset == commit_log_offset].count(True) >= 2
