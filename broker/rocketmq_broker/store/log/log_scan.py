"""A scan of the whole commit log that continues after damage.

If no intact record begins at a position, the scan searches for the next one: a magic code followed by a matching position and
checksum. If it finds one, the bytes in between are damaged. Otherwise the log ends at the position. A client can put complete
records into a message body. A record inside the extent of a damaged record is therefore accepted only with further evidence.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from rocketmq_broker.message.record import MESSAGE_MAGIC, SIZE_AND_MAGIC, lacks_bytes
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.record_check import (
    HEAD,
    MAGIC,
    MAX_SIZE,
    MIN_SIZE,
    CheckedRecord,
    check_record,
    resembles_record,
)

_CHUNK: Final = 4 << 20


class ScannedStretch(NamedTuple):
    """An intact record, or a damaged stretch of `size` bytes if `record` is None."""

    commit_log_offset: int
    size: int
    record: CheckedRecord | None


class LogScan:
    """One pass over the log. `end` and `has_torn_tail` are final after the last item of `found`."""

    def __init__(self, log: CommitLog, start: int, accepts: Callable[[int, CheckedRecord, bool], bool]) -> None:
        """Creates a scan from offset `start`. `accepts` returns whether a record after damage belongs to the log.

        A record that does not belong to the log is a remnant of older data.

        The last argument of `accepts` is True if the record lies inside the damaged record, and may be part of a client's
        message.
        """
        self.end = start
        """The end of the log: the position of the next record."""
        self.has_torn_tail = False
        """Whether the log has non-zero bytes after its end."""
        self._log = log
        self._segments = log.segments
        self._accepts = accepts

    def found(self) -> Iterator[ScannedStretch]:
        """Yields intact records and damaged stretches, in the log's order."""
        position = self.end
        while self._segments.has(position):
            for item in self._records_from(position):
                yield item
                position = item.commit_log_offset + item.size
            self.end = position
            if self._log.is_blank(position):
                position = self._next_segment(position)
                continue
            following = self._next_record(position)
            if following is None:
                self.has_torn_tail = self._has_bytes(position)
                return
            if following > position:
                yield ScannedStretch(position, following - position, None)
                position = following
        self.end = position

    def _records_from(self, position: int) -> Iterator[ScannedStretch]:
        while True:
            data = self._segments.read(position, _CHUNK)
            at = 0
            while (checked := _whole_record(data, at, position + at)) is not None:
                yield ScannedStretch(position + at, checked.size, checked)
                at += checked.size
            if at == 0:
                # The record may be longer than one read.
                size = SIZE_AND_MAGIC.unpack_from(data)[0] if len(data) >= SIZE_AND_MAGIC.size else 0
                checked = self._record_at(position) if size > len(data) else None
                if checked is None:
                    return
                yield ScannedStretch(position, checked.size, checked)
                at = checked.size
            position += at

    def _record_at(self, position: int) -> CheckedRecord | None:
        # A body may contain many record heads with sizes of millions of bytes. Reads no further if the head is inconsistent.
        head = self._segments.read(position, HEAD.size)
        if len(head) < HEAD.size:
            return None
        size, magic, _, _, _, _, physical_offset, _ = HEAD.unpack(head)
        if magic != MESSAGE_MAGIC or physical_offset != position or not MIN_SIZE <= size <= MAX_SIZE:
            return None
        return _whole_record(self._segments.read(position, size), 0, position)

    def _next_record(self, position: int) -> int | None:
        """Returns the position of the first intact and accepted record after a position, or None if there is none."""
        own_end = self._claimed_end(position)
        search = position + 1
        while (data_at := self._next_data(search)) is not None:
            data = self._segments.read(data_at, _CHUNK)
            at = data.find(MAGIC)
            while at >= 0:
                candidate = data_at + at - 4
                if candidate > position:
                    checked = self._record_at(candidate)
                    if checked is not None and self._accepts(candidate, checked, candidate < own_end):
                        return candidate
                at = data.find(MAGIC, at + 1)
            # The magic code may cross the end of this read.
            is_file_end = (data_at + len(data)) % self._segments.segment_size == 0
            search = data_at + len(data) - (0 if is_file_end else min(3, len(data) - 1))
        return None

    def _claimed_end(self, position: int) -> int:
        """Returns the end of the damaged record according to its size field, or `position` if its head is implausible."""
        head = self._segments.read(position, HEAD.size)
        size = SIZE_AND_MAGIC.unpack_from(head)[0] if len(head) == HEAD.size else 0
        end = position + size
        is_possible = MIN_SIZE <= size <= MAX_SIZE and end <= self._next_segment(position)
        return end if is_possible and resembles_record(head, size, position) else position

    def _has_bytes(self, position: int) -> bool:
        """Returns whether the log has a non-zero byte at or after the position."""
        while (data_at := self._next_data(position)) is not None:
            data = self._segments.read(data_at, _CHUNK)
            if data.strip(b"\0"):
                return True
            position = data_at + len(data)
        return False

    def _next_data(self, position: int) -> int | None:
        while self._segments.has(position):
            found = self._segments.next_data(position)
            if found is not None:
                # The zero bytes of the first record's size field may lie in the hole before the data.
                return max(found - 4, position)
            position = self._next_segment(position)
        return None

    def _next_segment(self, position: int) -> int:
        return self._segments.start_of(position) + self._segments.segment_size


def _whole_record(data: bytes, at: int, commit_log_offset: int) -> CheckedRecord | None:
    """Returns the record at `data[at]`, or None if it is damaged or was not written completely."""
    checked = check_record(data, at, commit_log_offset)
    return None if checked is None or lacks_bytes(checked.topic, checked.properties) else checked
