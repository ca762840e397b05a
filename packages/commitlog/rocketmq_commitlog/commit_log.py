"""Reads RocketMQ's commit log from its segment files (RocketMQ's MappedFileQueue and CommitLog).

The name of a segment file is the commit log offset of its first byte, in 20 digits. No record crosses the end of a segment.
Bytes that look like a record may be part of a message body, because a client can put complete records with the right commit log
offsets into a body. A record is therefore accepted only at the start of a segment, after another record, or at a position to
which a consume queue points. Ranges start at such positions, and reading continues at such a position after damage.
"""

import mmap
import re
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from rocketmq_broker.message import CorruptRecord, properties, sysflag
from rocketmq_broker.message.record import (
    BLANK_MAGIC,
    HEAD_V4,
    HOST_V6_MORE,
    MESSAGE_MAGIC,
    SIZE_AND_MAGIC,
    Record,
    body_crc,
    decode_record,
    lacks_bytes,
)
from rocketmq_broker.platform.files import end_of_data, open_regular
from rocketmq_commitlog.errors import UnreadableStore
from rocketmq_commitlog.queue_units import QueueUnits, known_end

RANGE_BYTES = 64 * 1024 * 1024
MAX_SEARCHED_LENGTH = 16 * 1024 * 1024

_SEGMENT_NAME = re.compile(r"[0-9]{20}")
_MAGIC = (MESSAGE_MAGIC & 0xFFFFFFFF).to_bytes(4, "big")
_MAGIC_POSITION = 4
_UNTIL_SYS_FLAG = struct.Struct(">iiiiiqqi")
_KEYS = re.compile(properties.KEYS.encode() + rb"\x01([^\x00-\x1f]{1,32767})")
MAX_KEYS = 100_000
"""The maximum number of keys reported for one damaged stretch. Without a limit, a client could fill a body with keys."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """The part of one segment with the file positions `start <= position < end`.

    `start` is the beginning of a record or of the segment. `end` is the beginning of a record or the end of the written bytes.
    """

    segment: str
    start: int
    end: int
    is_last: bool = True
    """True for the last range of the segment."""
    goes_on_until: int = 0
    """The commit log offset up to which the commit log is known to continue. Used only in the last range of a segment."""


class LogRecord(NamedTuple):
    """The fields of a record that the data source uses. Strings are bytes.

    It is a tuple for speed, because a log may have many millions of records.
    """

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
    """A stretch of the log that contains no valid record."""

    commit_log_offset: int
    size: int
    keys: tuple[str, ...] = ()
    """The message keys that can still be read in the damaged bytes. They identify messages that may be affected."""
    is_gap: bool = False
    """True if the bytes do not exist, because a file is missing or too short."""
    whole_again_ms: int | None = field(default=None, compare=False)
    """The store timestamp, in milliseconds, of the first record after the damage, or None if there is none."""


def segments(store: Path) -> list[Path]:
    """Returns the segment files of a store directory, oldest first. Raises UnreadableStore if the directory has no commit log."""
    directory = store / "commitlog"
    try:
        return sorted(path for path in directory.iterdir() if _SEGMENT_NAME.fullmatch(path.name))
    except OSError as error:
        raise UnreadableStore(f"store {store}: no commit log ({error.strerror})") from None


def split_log(store: Path, range_bytes: int = RANGE_BYTES, from_offset: int = 0) -> list[LogRange]:
    """Returns ranges that together cover every record from a commit log offset once. Raises UnreadableStore.

    Each range except the last of a segment has at least `range_bytes` bytes, and ends at a record to which a consume queue
    points. The first range may start before `from_offset`. Damage after a record belongs to the record's range. To continue an
    earlier read, pass the commit log offset of the last record that was read. That record is then read again.
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
    """Removes the unwritten segments at the end, which brokers create in advance. Returns the other segments."""
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
    """Returns the oldest record, or None if the log has no record. Raises UnreadableStore."""
    for path in segments(store):
        for found in scan(LogRange(str(path), 0, sys.maxsize)):
            if isinstance(found, LogRecord):
                return found
    return None


def last_record(store: Path) -> LogRecord | None:
    """Returns the newest record, or None if the log has no record. Raises UnreadableStore."""
    for log_range in reversed(split_log(store)):
        latest = None
        for found in scan(log_range):
            latest = found if isinstance(found, LogRecord) else latest
        if latest is not None:
            return latest
    return None


def scan(log_range: LogRange) -> Iterator[LogRecord | Damage]:
    """Yields the records that start in this range in order, and the damage between and after them. Raises UnreadableStore.

    A record's checksum covers only the body. Damage to topic or properties that keeps their lengths is detected only if a part of
    them was never written (`lacks_bytes`). Unwritten or truncated bytes after the last record are not damage, unless the log is
    known to continue.
    """
    path = Path(log_range.segment)
    try:
        with _mapped(path) as data:
            yield from _Segment(data, path).found(log_range)
    except (OSError, ValueError) as error:
        raise UnreadableStore(f"commit log segment {path}: {error}") from None


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    """Maps a segment into memory without the unwritten hole at its end, which may be most of the file.

    Raises UnreadableStore.
    """
    try:
        with open(path, "rb", opener=open_regular) as file:
            length = end_of_data(file.fileno())
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
        """Yields the records and the damage of a range.

        Damage belongs to the range of the record before it, so that only one range reports it.
        """
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

        The position is the end of the damaged record if all its lengths agree. An earlier record to which a consume queue points
        takes precedence.
        """
        end = len(self._data) if log_range.is_last else log_range.end
        own_end = None if log_range.is_last else end
        claim = _claim_at(self._data, self._offset, position)
        if claim is not None and claim.has_a_mark and claim.ends <= end:
            own_end = end = claim.ends
        pointed_to = next_record(self._data, self._offset, position + 1, end, self._units)
        return own_end if pointed_to is None else pointed_to

    def _gap_behind(self, position: int, goes_on_until: int) -> Iterator[Damage]:
        """Yields the missing bytes between the segment's last record and the commit log offset up to which the log continues."""
        begins, ends = self._offset + position, goes_on_until
        if (unused := self._unused_at(position)) is not None:
            begins += unused
        elif _resembles_a_log(self._data, self._offset, position + 1):
            # The bytes are either records, or part of a message body that looks like records. They cannot be distinguished.
            ends = max(ends, self._offset + len(self._data))
        if ends > begins:
            yield Damage(begins, ends - begins, is_gap=True, whole_again_ms=self._first_stored_ms(ends))

    def _unused_at(self, position: int) -> int | None:
        """Returns the number of unused bytes from `position` to the segment's end, or None if the bytes may be in use.

        Bytes are unused if they are marked as unused or are too few for such a mark.
        """
        if position + SIZE_AND_MAGIC.size <= len(self._data):
            size, magic = SIZE_AND_MAGIC.unpack_from(self._data, position)
            return int(size) if magic == BLANK_MAGIC else None
        left = self._path.stat().st_size - position
        return left if left < SIZE_AND_MAGIC.size else None

    def _first_stored_ms(self, commit_log_offset: int) -> int | None:
        """Returns the store timestamp of the first record of the segment at this commit log offset, or None."""
        path = self._path.with_name(f"{commit_log_offset:020d}")
        if not path.exists():
            return None
        with _mapped(path) as data:
            record = record_at(data, commit_log_offset, 0)
            return None if record is None else record.store_timestamp


def keys_in(damaged: bytes) -> tuple[str, ...]:
    """Returns the message keys in damaged bytes. Finds them by the name of the property that holds them.

    Searches only the first MAX_SEARCHED_LENGTH bytes, and returns at most MAX_KEYS keys.
    """
    found = (match[1].decode(errors="replace").split() for match in _KEYS.finditer(damaged[:MAX_SEARCHED_LENGTH]))
    return tuple(dict.fromkeys(islice((key for keys in found for key in keys), MAX_KEYS)))


@dataclass(frozen=True, slots=True)
class _Claim:
    """A possible record, whose lengths agree with its size. Its checksum has not been verified."""

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
        """Returns True if the magic code or the commit log offset is correct.

        A record in which one of them is damaged is still detected.
        """
        return self.has_magic or self.has_own_offset


def _claim_at(data: mmap.mmap | bytes, segment_offset: int, position: int) -> _Claim | None:
    try:
        size, magic, _, queue_id, _, queue_offset, commit_log_offset, sys_flag = _UNTIL_SYS_FLAG.unpack_from(data, position)
        hosts_v6 = bool(sys_flag & sysflag.BORN_HOST_V6) + bool(sys_flag & sysflag.STORE_HOST_V6)
        body_at = position + HEAD_V4.size + hosts_v6 * HOST_V6_MORE
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
    """Returns the intact record at `position`, or None if no intact record starts there."""
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
    # A body may contain many false record headers with large lengths, so nothing is copied before all lengths agree.
    if ends != position + size or ends > len(data):
        return None
    body = data[body_at : topic_at - 1]
    topic, encoded = data[topic_at : properties_at - 2], data[properties_at:ends]
    if body_crc(body) != crc or lacks_bytes(topic, encoded):
        return None
    return LogRecord(
        size, commit_log_offset, queue_id, queue_offset, sys_flag, born_timestamp, store_timestamp, prepared_transaction_offset,
        body, topic, encoded,
    )  # fmt: skip


def _record_with_long_hosts(data: mmap.mmap | bytes, position: int, size: int) -> LogRecord | None:
    """Returns the intact record at `position`, which has an IPv6 host, or None if the record is not intact."""
    try:
        record = decode_record(data[position : position + size])
    except CorruptRecord:
        return None
    return log_record_of(record)


def log_record_of(record: Record) -> LogRecord | None:
    """Returns a decoded record as a scan of the log returns it, or None if the record is not intact."""
    if not record.is_intact or lacks_bytes(record.topic, record.properties):
        return None
    return LogRecord(
        record.size, record.commit_log_offset, record.queue_id, record.queue_offset, record.sys_flag, record.born_timestamp,
        record.store_timestamp, record.prepared_transaction_offset, record.body, record.topic, record.properties,
    )  # fmt: skip


def next_record(data: mmap.mmap | bytes, segment_offset: int, position: int, until: int, units: QueueUnits | None) -> int | None:
    """Returns the position of the first record that starts at `position` or later, before `until`, or None.

    Accepts only records to which a consume queue points. If `units` is None, accepts all bytes that look like an intact record.
    Use None only if all clients are trusted.
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

    A client can write a body full of overlapping possible records. Verifying all their checksums would take quadratic time. To
    avoid this, the function returns True without further checks if the possible records together have more than twice as many
    bytes as the data.
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
    """Yields the positions from `position` up to `until` at which a record with a magic code may start.

    The last byte of the mapping is not searched, because Python before 3.11.5 also reads the byte after the searched bytes
    (gh-105235). At the end of the mapping this read causes a segmentation fault. No magic code ends at the last byte, because a
    record continues after its magic code.
    """
    last_magic_end = min(until + _MAGIC_POSITION + len(_MAGIC), len(data)) - 1
    at = data.find(_MAGIC, position + _MAGIC_POSITION, last_magic_end)
    while at >= 0:
        yield at - _MAGIC_POSITION
        at = data.find(_MAGIC, at + 1, last_magic_end)
