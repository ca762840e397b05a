"""RocketMQ's commit log read from its segment files, as it lies on disk (RocketMQ's MappedFileQueue and CommitLog).

A segment is a file named by the commit log offset it begins at, 20 digits; no record crosses from one to the next. A record
carries its own commit log offset, so that wherever one looks, bytes that claim to be a record can be told from bytes that
merely look like it: a reader can begin anywhere, and find its way again after damage.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from broker.message import CorruptRecord, properties, sysflag
from broker.message.record import BLANK_MAGIC, HEAD_V4, MESSAGE_MAGIC, SIZE_AND_MAGIC, body_crc, decode_record
from rocketmq_commitlog.errors import UnreadableStore

RANGE_BYTES = 64 * 1024 * 1024
LONGEST_SEARCHED = 16 * 1024 * 1024

_SEGMENT_NAME = re.compile(r"\d{20}")
_MAGIC = (MESSAGE_MAGIC & 0xFFFFFFFF).to_bytes(4, "big")
_MAGIC_POSITION = 4
_KEYS = re.compile(properties.KEYS.encode() + rb"\x01([^\x00-\x1f]+)")


@dataclass(frozen=True, slots=True)
class LogRange:
    """The records that begin in the bytes from `start` up to `end` of one segment; positions are within the file."""

    segment: str
    start: int
    end: int


class LogRecord(NamedTuple):
    """What is read of a record, its strings left as bytes: a tuple, since logs have many millions of them."""

    size: int
    commit_log_offset: int
    queue_id: int
    queue_offset: int
    sys_flag: int
    born_timestamp: int
    store_timestamp: int
    prepared_transaction_offset: int
    body: bytes
    topic: bytes
    properties: bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes in the middle of the log that hold no intact record; intact ones follow."""

    commit_log_offset: int
    size: int
    keys: tuple[str, ...] = ()
    """The keys of messages that can still be read in it: what was damaged need not be lost."""


def segments(store: Path) -> list[Path]:
    """The segment files of a store directory, oldest first. Raises UnreadableStore if there is no commit log."""
    directory = store / "commitlog"
    try:
        return sorted(path for path in directory.iterdir() if _SEGMENT_NAME.fullmatch(path.name))
    except OSError as error:
        raise UnreadableStore(f"store {store}: no commit log ({error.strerror})") from None


def split_log(store: Path, range_bytes: int = RANGE_BYTES, from_offset: int = 0) -> list[LogRange]:
    """Ranges that together cover every record of the log once, from a commit log offset on. Raises UnreadableStore.

    Damage behind a record belongs to its range: who goes on reading names the last record that was read, and reads it again.
    """
    return [
        LogRange(str(path), start, min(start + range_bytes, size))
        for path in segments(store)
        for size in [_written_bytes(path)]
        for start in range(max(0, from_offset - int(path.name)), size, range_bytes)
    ]


def first_record(store: Path) -> LogRecord | None:
    """The oldest record there still is, or None. Raises UnreadableStore."""
    for path in segments(store):
        for found in scan(LogRange(str(path), 0, _written_bytes(path))):
            if isinstance(found, LogRecord):
                return found
    return None


def last_record(store: Path) -> LogRecord | None:
    """The newest record, or None. Raises UnreadableStore."""
    for log_range in reversed(split_log(store)):
        latest = None
        for found in scan(log_range):
            latest = found if isinstance(found, LogRecord) else latest
        if latest is not None:
            return latest
    return None


def scan(log_range: LogRange) -> Iterator[LogRecord | Damage]:
    """The records that begin in this range, in order, and the damage that follows them.

    A record's checksum covers its body only; damage to topic or properties that leaves their lengths alone goes unseen.
    Whatever follows a segment's last intact record was not written yet, and is no damage. Raises UnreadableStore.
    """
    path = Path(log_range.segment)
    try:
        with open(path, "rb", opener=regular_only) as file:
            length = _end_of_data(file.fileno())
            if length <= log_range.start:
                return
            with mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as data:
                yield from _scan(data, int(path.name), log_range)
    except (OSError, ValueError) as error:
        raise UnreadableStore(f"commit log segment {path}: {error}") from None


def regular_only(path: str, flags: int) -> int:
    """Opens a file of the disk. Raises OSError for anything else under its name: a FIFO would wait without end."""
    file = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "no regular file", path)


def _scan(data: mmap.mmap, segment_offset: int, log_range: LogRange) -> Iterator[LogRecord | Damage]:
    """A gap belongs to the range of the record before it, or to the segment's first range: so each is reported once."""
    position: int | None = log_range.start
    if log_range.start:
        position = _next_record(data, segment_offset, log_range.start, log_range.end)
    while position is not None:
        record = _record_at(data, segment_offset, position)
        if record is not None:
            if position >= log_range.end:
                return
            yield record
            position += record.size
            continue
        if _is_blank(data, position):
            return
        following = _next_record(data, segment_offset, position + 1, len(data))
        if following is not None:
            yield Damage(segment_offset + position, following - position, keys_in(data[position:following]))
        position = following


def keys_in(damaged: bytes) -> tuple[str, ...]:
    """The keys of messages in bytes that are no intact record.

    Keys are told from other bytes by the property's name; of very long stretches only the beginning is searched.
    """
    found = [match[1].decode(errors="replace").split() for match in _KEYS.finditer(damaged[:LONGEST_SEARCHED])]
    return tuple(dict.fromkeys(key for keys in found for key in keys))


def _record_at(data: mmap.mmap, segment_offset: int, position: int) -> LogRecord | None:
    """The intact record that begins there, or None."""
    try:
        (
            size, magic, crc, queue_id, _, queue_offset, commit_log_offset, sys_flag, born_timestamp, _, store_timestamp, _, _,
            prepared_transaction_offset, body_length,
        ) = HEAD_V4.unpack_from(data, position)  # fmt: skip
    except struct.error:
        return None
    if magic != MESSAGE_MAGIC or commit_log_offset != segment_offset + position:
        return None
    if sys_flag & sysflag.HOSTS_V6:
        return _record_with_long_hosts(data, position, size)
    body_at = position + HEAD_V4.size
    topic_at = body_at + body_length + 1
    if body_length < 0 or topic_at + 2 > len(data):
        return None
    properties_at = topic_at + data[topic_at - 1] + 2
    body = data[body_at : topic_at - 1]
    encoded = data[properties_at : position + size]
    properties_length = int.from_bytes(data[properties_at - 2 : properties_at], "big")
    if properties_at + properties_length != position + size or len(encoded) != properties_length or body_crc(body) != crc:
        return None
    return LogRecord(
        size, commit_log_offset, queue_id, queue_offset, sys_flag, born_timestamp, store_timestamp, prepared_transaction_offset,
        body, data[topic_at : properties_at - 2], encoded,
    )  # fmt: skip


def _record_with_long_hosts(data: mmap.mmap, position: int, size: int) -> LogRecord | None:
    """The intact record that begins there, one of its hosts an IPv6 address; or None."""
    try:
        record = decode_record(data[position : position + size])
    except CorruptRecord:
        return None
    if not record.is_intact:
        return None
    return LogRecord(
        record.size, record.commit_log_offset, record.queue_id, record.queue_offset, record.sys_flag, record.born_timestamp,
        record.store_timestamp, record.prepared_transaction_offset, record.body, record.topic, record.properties,
    )  # fmt: skip


def _next_record(data: mmap.mmap, segment_offset: int, position: int, until: int) -> int | None:
    """Where the first intact record begins that begins at `position` or later, and before `until`.

    A record goes on after its magic, so the mapping's last byte is left out: Python before 3.11.5 looks at the byte after the
    last one searched (gh-105235), and after the mapping's end that is a segmentation fault.
    """
    last_magic_end = min(until + _MAGIC_POSITION + len(_MAGIC), len(data)) - 1
    at = data.find(_MAGIC, position + _MAGIC_POSITION, last_magic_end)
    while at >= 0:
        if _record_at(data, segment_offset, at - _MAGIC_POSITION) is not None:
            return at - _MAGIC_POSITION
        at = data.find(_MAGIC, at + 1, last_magic_end)
    return None


def _is_blank(data: mmap.mmap, position: int) -> bool:
    """Whether this is the unused end of the segment: marked as such."""
    if position + SIZE_AND_MAGIC.size > len(data):
        return True
    magic: int = SIZE_AND_MAGIC.unpack_from(data, position)[1]
    return magic == BLANK_MAGIC


def _written_bytes(path: Path) -> int:
    """How long a segment is without the hole at its end: it is created at full length, and most of that may never be used."""
    try:
        with open(path, "rb", opener=regular_only) as file:
            return _end_of_data(file.fileno())
    except OSError as error:
        raise UnreadableStore(f"commit log segment {path}: {error.strerror}") from None


def _end_of_data(descriptor: int) -> int:
    end = 0
    while True:
        try:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return end
            raise
        end = os.lseek(descriptor, begin, os.SEEK_HOLE)
