"""Reads RocketMQ's commit log from its segment files (RocketMQ's MappedFileQueue and CommitLog).

The name of a segment file is the commit log offset of its first byte, in 20 digits. No record crosses the end of a segment.
Bytes that look like a record are not sufficient evidence, because a client can put whole records with the right commit log
offsets into a body. A record is therefore accepted only at the start of a segment, after another record, or where a consume
queue points to. Ranges start at such positions, and reading continues there after damage.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from rocketmq_broker.message import CorruptRecord, properties, sysflag
from rocketmq_broker.message.record import BLANK_MAGIC, HEAD_V4, MESSAGE_MAGIC, SIZE_AND_MAGIC, body_crc, decode_record
from rocketmq_commitlog.errors import UnreadableStore
from rocketmq_commitlog.queue_units import QueueUnits, known_end

RANGE_BYTES = 64 * 1024 * 1024
MAX_SEARCHED_LENGTH = 16 * 1024 * 1024

_SEGMENT_NAME = re.compile(r"[0-9]{20}")
_MAGIC = (MESSAGE_MAGIC & 0xFFFFFFFF).to_bytes(4, "big")
_MAGIC_POSITION = 4
_UNTIL_SYS_FLAG = struct.Struct(">iiiiiqqi")
_HOST_V6_MORE = 12
"""The number of bytes by which an IPv6 host is longer than an IPv4 host."""
_KEYS = re.compile(properties.KEYS.encode() + rb"\x01([^\x00-\x1f]{1,32767})")
MAX_KEYS = 100_000
"""Maximum number of keys reported for one damaged stretch, because a client can fill a body with keys."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """Records of one segment, at positions `start <= position < end` in its file.

    A record or the segment starts at `start`. At `end` a record starts or the written bytes end.
    """

    segment: str
    start: int
    end: int
    is_last: bool = True
    """True for the last range of the segment."""
    goes_on_until: int = 0
    """In the last range of a segment, the commit log offset up to which the commit log is known to continue."""


class LogRecord(NamedTuple):
    """The fields of a record that are used here. Strings are bytes. It is a tuple, because logs have many millions of records."""

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
    """Bytes of the log without a valid record."""

    commit_log_offset: int
    size: int
    keys: tuple[str, ...] = ()
    """Keys that can still be read in the damaged bytes. They identify messages that may be affected."""
    is_gap: bool = False
    """True if the bytes do not exist, because a file is missing or too short."""
    whole_again_ms: int | None = field(default=None, compare=False)
    """The store timestamp of the next record, or None."""


def segments(store: Path) -> list[Path]:
    """Returns the segment files of a store directory, oldest first. Raises UnreadableStore without a commit log."""
    directory = store / "commitlog"
    try:
        return sorted(path for path in directory.iterdir() if _SEGMENT_NAME.fullmatch(path.name))
    except OSError as error:
        raise UnreadableStore(f"store {store}: no commit log ({error.strerror})") from None


def split_log(store: Path, range_bytes: int = RANGE_BYTES, from_offset: int = 0) -> list[LogRange]:
    """Returns ranges that cover every record of the log once, starting at a commit log offset. Raises UnreadableStore.

    Each range has at least `range_bytes`, and ends where a consume queue points to a record. The first range may start
    before `from_offset`. Damage after a record belongs to the record's range. To continue reading, pass the offset of the
    last record that was read. That record is then read again.
    """
    until, units = known_end(store), QueueUnits(store)
    begun = _without_those_ahead(segments(store))
    ends = [*(int(path.name) for path in begun[1:]), until]
    return [
        log_range
        for path, goes_on_until in zip(begun, ends, strict=False)
        if goes_on_until > from_offset or path == begun[-1]
        for log_range in _split_segment(path, range_bytes, max(0, from_offset - int(path.name)), goes_on_until, units)
    ]


def _without_those_ahead(paths: list[Path]) -> list[Path]:
    """Returns the segments without unwritten ones at the end, which brokers create in advance."""
    begun = len(paths)
    while begun > 1 and not _head_of(paths[begun - 1]).strip(b"\0"):
        begun -= 1
    return paths[:begun]


def _split_segment(path: Path, range_bytes: int, start: int, goes_on_until: int, units: QueueUnits) -> list[LogRange]:
    with _mapped(path) as data:
        offset, end = int(path.name), len(data)
        if start and not _is_vouched_for(data, offset, start, units):
            start = 0
        starts = [start]
        while not units.are_missing and (wanted := starts[-1] + range_bytes) < end:
            vouched_for = next_record(data, offset, wanted, end, units)
            if vouched_for is None:
                break
            starts.append(vouched_for)
    ranges = [LogRange(str(path), begin, until, is_last=False) for begin, until in pairwise(starts)]
    return [*ranges, LogRange(str(path), starts[-1], max(end, starts[-1]), goes_on_until=goes_on_until)]


def first_record(store: Path) -> LogRecord | None:
    """Returns the oldest record, or None. Raises UnreadableStore."""
    for path in segments(store):
        for found in scan(LogRange(str(path), 0, sys.maxsize)):
            if isinstance(found, LogRecord):
                return found
    return None


def last_record(store: Path) -> LogRecord | None:
    """Returns the newest record, or None. Raises UnreadableStore."""
    for log_range in reversed(split_log(store)):
        latest = None
        for found in scan(log_range):
            latest = found if isinstance(found, LogRecord) else latest
        if latest is not None:
            return latest
    return None


def scan(log_range: LogRange) -> Iterator[LogRecord | Damage]:
    """Yields the records that start in this range, in order, and the damage after them.

    A record's checksum covers only its body, so damage to topic or properties that keeps their lengths is not detected.
    Unwritten or truncated bytes after the last record are not damage, unless the log is known to continue.
    Raises UnreadableStore.
    """
    path = Path(log_range.segment)
    try:
        with _mapped(path) as data:
            yield from _Segment(data, path).found(log_range)
    except (OSError, ValueError) as error:
        raise UnreadableStore(f"commit log segment {path}: {error}") from None


def regular_only(path: str, flags: int) -> int:
    """Opens a regular file. Raises OSError for other files, because opening a FIFO could block."""
    file = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file", path)


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    """Maps the bytes of a segment without the unwritten hole at its end, which may be most of the file.

    Raises UnreadableStore.
    """
    try:
        with open(path, "rb", opener=regular_only) as file:
            length = _end_of_data(file.fileno())
            if not length:
                yield b""
                return
            with mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as data:
                yield data
    except OSError as error:
        raise UnreadableStore(f"commit log segment {path}: {error.strerror or error}") from None


def _head_of(path: Path) -> bytes:
    with _mapped(path) as data:
        return data[: SIZE_AND_MAGIC.size]


class _Segment:
    """The written bytes of one segment."""

    def __init__(self, data: mmap.mmap | bytes, path: Path) -> None:
        self._data = data
        self._path = path
        self._offset = int(path.name)
        self._units = QueueUnits(path.parent.parent)

    def found(self, log_range: LogRange) -> Iterator[LogRecord | Damage]:
        """Yields records and damage. Damage belongs to the range of the record before it, so that it is reported once."""
        data, position = self._data, log_range.start
        damage_begins: int | None = None
        while log_range.is_last or position < log_range.end:
            record = record_at(data, self._offset, position)
            if record is None:
                if damage_begins is None:
                    damage_begins = position
                following = None if self._unused_at(position) is not None else self._step_over(position, log_range)
                if following is None:
                    break
                position = following
                continue
            if damage_begins is not None:
                yield self._damage(damage_begins, position, record.store_timestamp)
                damage_begins = None
            yield record
            position += record.size
        if damage_begins is not None and position > damage_begins:
            # The damage ends at the segment's unused end, or at the intact record with which the next range starts.
            following_record = record_at(data, self._offset, position)
            yield self._damage(damage_begins, position, following_record.store_timestamp if following_record else None)
        if log_range.is_last:
            yield from self._gap_behind(position, log_range.goes_on_until)

    def _damage(self, begins: int, ends: int, whole_again_ms: int | None) -> Damage:
        return Damage(self._offset + begins, ends - begins, keys_in(self._data[begins:ends]), whole_again_ms=whole_again_ms)

    def _step_over(self, position: int, log_range: LogRange) -> int | None:
        """Returns the position at which reading continues after a damaged record, or None if no position is certain.

        It is the end of the damaged record if all its lengths agree, or the first record before that to which a consume queue
        points.
        """
        end = len(self._data) if log_range.is_last else log_range.end
        own_end = None if log_range.is_last else end
        claim = _claim_at(self._data, self._offset, position)
        if claim is not None and claim.has_a_mark and claim.ends <= end:
            own_end = end = claim.ends
        pointed_to = next_record(self._data, self._offset, position + 1, end, self._units)
        return own_end if pointed_to is None else pointed_to

    def _gap_behind(self, position: int, goes_on_until: int) -> Iterator[Damage]:
        """Yields the missing bytes between the segment's last record and the offset up to which the log continues."""
        begins, ends = self._offset + position, goes_on_until
        if (unused := self._unused_at(position)) is not None:
            begins += unused
        elif _resembles_a_log(self._data, self._offset, position + 1):
            # There are records, or bytes of a client that look like records. They cannot be distinguished.
            ends = max(ends, self._offset + len(self._data))
        if ends > begins:
            yield Damage(begins, ends - begins, is_gap=True, whole_again_ms=self._first_stored_ms(ends))

    def _unused_at(self, position: int) -> int | None:
        """Returns the number of bytes to the segment's end if they are marked as unused or too few for a mark; else None."""
        if position + SIZE_AND_MAGIC.size <= len(self._data):
            size, magic = SIZE_AND_MAGIC.unpack_from(self._data, position)
            return int(size) if magic == BLANK_MAGIC else None
        left = self._path.stat().st_size - position
        return left if left < SIZE_AND_MAGIC.size else None

    def _first_stored_ms(self, commit_log_offset: int) -> int | None:
        """Returns the store timestamp of the first record of the segment with this offset, or None."""
        path = self._path.with_name(f"{commit_log_offset:020d}")
        if not path.exists():
            return None
        with _mapped(path) as data:
            record = record_at(data, commit_log_offset, 0)
            return None if record is None else record.store_timestamp


def keys_in(damaged: bytes) -> tuple[str, ...]:
    """Returns the keys of messages in damaged bytes, which are found by the name of the property.

    Searches only the first MAX_SEARCHED_LENGTH bytes, and returns at most MAX_KEYS keys.
    """
    found = (match[1].decode(errors="replace").split() for match in _KEYS.finditer(damaged[:MAX_SEARCHED_LENGTH]))
    return tuple(dict.fromkeys(islice((key for keys in found for key in keys), MAX_KEYS)))


@dataclass(frozen=True, slots=True)
class _Claim:
    """A possible record. Its lengths agree with its size, but its checksum is not verified."""

    position: int
    size: int
    topic: bytes
    queue_id: int
    queue_offset: int
    has_magic: bool
    has_own_offset: bool

    @property
    def ends(self) -> int:
        """Returns the position of the end of the record."""
        return self.position + self.size

    @property
    def has_a_mark(self) -> bool:
        """Returns True if the magic code or the commit log offset is right, so that a record with damage in one is detected."""
        return self.has_magic or self.has_own_offset


def _claim_at(data: mmap.mmap | bytes, segment_offset: int, position: int) -> _Claim | None:
    try:
        size, magic, _, queue_id, _, queue_offset, commit_log_offset, sys_flag = _UNTIL_SYS_FLAG.unpack_from(data, position)
        hosts_v6 = bool(sys_flag & sysflag.BORN_HOST_V6) + bool(sys_flag & sysflag.STORE_HOST_V6)
        body_at = position + HEAD_V4.size + hosts_v6 * _HOST_V6_MORE
        body_length = int.from_bytes(data[body_at - 4 : body_at], "big", signed=True)
        topic_at = body_at + body_length + 1
        if body_length < 0 or topic_at > len(data):
            return None
        properties_at = topic_at + data[topic_at - 1] + 2
        ends = properties_at + int.from_bytes(data[properties_at - 2 : properties_at], "big")
    except (struct.error, IndexError):
        return None
    if properties_at > len(data) or ends != position + size:
        return None
    return _Claim(
        position, size, data[topic_at : properties_at - 2], queue_id, queue_offset,
        magic == MESSAGE_MAGIC, commit_log_offset == segment_offset + position,
    )  # fmt: skip


def _is_vouched_for(data: mmap.mmap | bytes, segment_offset: int, position: int, units: QueueUnits) -> bool:
    """Returns True if an intact record starts at `position` and a consume queue points to it."""
    claim = _claim_at(data, segment_offset, position)
    return (
        claim is not None
        and claim.has_own_offset
        and units.point_to(segment_offset + position, claim.size, claim.topic, claim.queue_id, claim.queue_offset)
        and record_at(data, segment_offset, position) is not None
    )


def record_at(data: mmap.mmap | bytes, segment_offset: int, position: int) -> LogRecord | None:
    """Returns the intact record at `position`, or None."""
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
        is_possible = _claim_at(data, segment_offset, position) is not None
        return _record_with_long_hosts(data, position, size) if is_possible else None
    body_at = position + HEAD_V4.size
    topic_at = body_at + body_length + 1
    if body_length < 0 or topic_at + 2 > len(data):
        return None
    properties_at = topic_at + data[topic_at - 1] + 2
    ends = properties_at + int.from_bytes(data[properties_at - 2 : properties_at], "big")
    # A body may contain many heads that each claim its length, so nothing is copied before all lengths agree.
    if ends != position + size or ends > len(data):
        return None
    body = data[body_at : topic_at - 1]
    if body_crc(body) != crc:
        return None
    return LogRecord(
        size, commit_log_offset, queue_id, queue_offset, sys_flag, born_timestamp, store_timestamp, prepared_transaction_offset,
        body, data[topic_at : properties_at - 2], data[properties_at:ends],
    )  # fmt: skip


def _record_with_long_hosts(data: mmap.mmap | bytes, position: int, size: int) -> LogRecord | None:
    """Returns the intact record with an IPv6 host at `position`, or None."""
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


def next_record(data: mmap.mmap | bytes, segment_offset: int, position: int, until: int, units: QueueUnits | None) -> int | None:
    """Returns the position of the first record in `position <= ... < until` to which a consume queue points, or None.

    If `units` is None, all bytes that look like an intact record are accepted. Use this only if all clients are trusted.
    """
    for begins in _magic_codes(data, position, until):
        if units is None:
            is_found = record_at(data, segment_offset, begins) is not None
        else:
            is_found = _is_vouched_for(data, segment_offset, begins, units)
        if is_found:
            return begins
    return None


def _resembles_a_log(data: mmap.mmap | bytes, segment_offset: int, position: int) -> bool:
    """Returns True if an intact record seems to start at or after `position`.

    A client can write a body full of overlapping possible records, and verifying all their checksums would take quadratic
    time. If the possible records together have more than twice as many bytes as the data, returns True without further
    checks.
    """
    unchecked = 2 * (len(data) - position)
    for begins in _magic_codes(data, position, len(data)):
        claim = _claim_at(data, segment_offset, begins)
        if claim is None or not claim.has_own_offset:
            continue
        unchecked -= claim.size
        if unchecked < 0 or record_at(data, segment_offset, begins) is not None:
            return True
    return False


def _magic_codes(data: mmap.mmap | bytes, position: int, until: int) -> Iterator[int]:
    """Yields the positions in `position <= ... < until` at which a record with a magic code may start.

    The mapping's last byte is not searched, because Python before 3.11.5 reads the byte after the searched bytes (gh-105235),
    which causes a segmentation fault at the mapping's end. No magic code ends there, because a record continues after it.
    """
    last_magic_end = min(until + _MAGIC_POSITION + len(_MAGIC), len(data)) - 1
    at = data.find(_MAGIC, position + _MAGIC_POSITION, last_magic_end)
    while at >= 0:
        yield at - _MAGIC_POSITION
        at = data.find(_MAGIC, at + 1, last_magic_end)


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
