"""The commit log, which contains every record of every topic in one sequence (RocketMQ's CommitLog).

A record never crosses the end of a segment. If the record and 8 more bytes do not fit, a blank record closes the segment.
Records wait in a batch until `write` is called.

After a failed flush, the kernel may drop the written data and report success for a later flush. Data that is acknowledged before
its flush is therefore kept in memory until it is on disk. It is written again before the flush is repeated.
"""

from collections import deque
from contextlib import suppress
from typing import Final

from librt.strings import BytesWriter, read_i64_be

from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import BLANK_MAGIC, MESSAGE_MAGIC, SIZE_AND_MAGIC, encode_blank, write_message
from rocketmq_broker.store.errors import RecordLost, RecordNotFound
from rocketmq_broker.store.log.record_check import HEAD, MAX_SIZE, CheckedRecord, check_record, store_timestamp_position
from rocketmq_broker.store.log.segments import Segments

BLANK_MIN_SIZE = 8

_FIRST_READ = 4096
_MAX_KEPT: Final = 512 << 10
"""The maximum size of the cached block in bytes."""
_TIMES_AHEAD: Final = 4
"""The read-ahead factor. A sequential read reads this many times the requested bytes."""


class CommitLog:
    """The commit log: its segment files, and the batch of records that the next `write` stores."""

    def __init__(self, segments: Segments) -> None:
        """Creates a log without a position. Call `begin_at` before adding records."""
        self.segments = segments
        self._ahead = LogBlock(segments)
        self.written_position = 0
        """The offset up to which everything is written to the files."""
        self.flushed_position = 0
        """The offset up to which everything is on disk (RocketMQ's flushedWhere)."""
        self.end = 0
        """The offset of the next record. It follows the batch."""
        self._segment_end = 0
        self._batch = BytesWriter()
        """The records of the batch that belong to its last segment."""
        self._batch_position = 0
        self._closed: list[tuple[int, bytes]] = []
        """The position and bytes of the batch in each earlier segment."""
        self._is_tail_dirty = False
        self.keeps_unflushed = False
        """Whether written data is kept in memory until `flushed` is called."""
        self._unflushed: deque[tuple[int, bytes]] = deque()

    @property
    def min_offset(self) -> int:
        """Returns the commit log offset of the log's first byte."""
        return self.segments.min_offset

    def begin_at(self, position: int) -> None:
        """Sets the offset of the next record and drops the batch."""
        self.written_position = self.end = self._batch_position = position
        self._segment_end = self.segments.start_of(position) + self.segments.segment_size
        self._batch = BytesWriter()
        self._closed = []

    def fits(self, size: int) -> bool:
        """Returns whether a segment can contain a record of `size` bytes."""
        return size + BLANK_MIN_SIZE <= self.segments.segment_size

    def reserve(self, size: int) -> int:
        """Returns the offset for a new record of `size` bytes. Moves to the next segment if the record does not fit."""
        if self.end + size + BLANK_MIN_SIZE > self._segment_end:
            self._batch.write(encode_blank(self._segment_end - self.end))
            self._closed.append((self._batch_position, self._batch.getvalue()))
            self._batch = BytesWriter()
            self.end = self._batch_position = self._segment_end
            self._segment_end += self.segments.segment_size
        return self.end

    def add(self, message: InnerMessage, size: int, queue_offset: int, store_timestamp: int, store_host: bytes) -> int:
        """Adds the message's record of `size` bytes at the offset from `reserve`. Returns the offset after the record.

        Raises ValueError or OverflowError, and adds nothing, if a number does not fit its field.
        """
        begin = len(self._batch)
        try:
            write_message(self._batch, message, size, queue_offset, self.end, store_timestamp, store_host)
        except (ValueError, OverflowError):
            self._batch.truncate(begin)
            raise
        self.end += size
        return self.end

    def write(self) -> int:
        """Writes the batch, with one write for each segment. Returns the offset after the batch.

        Raises OSError. In that case the batch is kept.
        """
        if self._is_tail_dirty:
            self._clear_tail()
        if self.end == self.written_position:
            return self.end
        self._is_tail_dirty = True
        written: list[tuple[int, bytes]] = []
        for position, data in (*self._closed, (self._batch_position, self._batch.getvalue())):
            if data:
                if not self.segments.has(position):
                    self.segments.create(self.segments.start_of(position))
                self.segments.write(position, data)
                written.append((position, data))
        if self.keeps_unflushed:
            self._unflushed += written
        self._is_tail_dirty = False
        self.begin_at(self.end)
        return self.end

    def flushed(self, position: int) -> None:
        """Records that everything before `position` is on disk."""
        self.flushed_position = max(self.flushed_position, position)
        while self._unflushed and self._unflushed[0][0] + len(self._unflushed[0][1]) <= self.flushed_position:
            self._unflushed.popleft()

    def write_again(self) -> None:
        """Writes the kept data again, at the same offsets. Raises OSError."""
        for position, data in self._unflushed:
            self.segments.write(position, data)

    def drop_batch(self) -> None:
        """Drops the batch. If a failed write left a part of it in the files, the next `write` first clears that part."""
        self.begin_at(self.written_position)

    def drop_after(self, position: int) -> None:
        """Drops all data at and after `position`, also in the files. Raises OSError if the files cannot be truncated."""
        self.begin_at(position)
        self._ahead.forget()
        self._unflushed.clear()
        self._is_tail_dirty = True
        self._clear_tail()

    def read(self, commit_log_offset: int) -> tuple[bytes, CheckedRecord]:
        """Returns one record after verifying it.

        Raises RecordNotFound beyond the end of the log, and RecordLost or OSError if the record cannot be read.
        """
        if commit_log_offset >= self.written_position:
            raise RecordNotFound(f"no record at {commit_log_offset} yet: the log ends at {self.written_position}")
        if commit_log_offset < self.min_offset:
            raise RecordLost(f"no record at {commit_log_offset}: it expired, the log begins at {self.min_offset}")
        data = self.segments.read(commit_log_offset, min(_FIRST_READ, self.written_position - commit_log_offset))
        size, magic = SIZE_AND_MAGIC.unpack_from(data) if len(data) >= SIZE_AND_MAGIC.size else (0, 0)
        if magic != MESSAGE_MAGIC:
            raise RecordLost(f"no record begins at {commit_log_offset}")
        if size > len(data):
            data = self.segments.read(commit_log_offset, min(size, MAX_SIZE, self.written_position - commit_log_offset))
        checked = check_record(data, 0, commit_log_offset)
        if checked is None:
            raise RecordLost(f"the record at {commit_log_offset} is damaged")
        return data[: checked.size], checked

    def read_run(self, position: int, length: int) -> tuple[bytes, int]:
        """Returns a block that includes the requested bytes, and the block's position. Does not verify the bytes.

        Raises OSError.
        """
        return self._ahead.read(position, length, self.written_position)

    def store_timestamp(self, commit_log_offset: int) -> int:
        """Returns the store timestamp of the record at an offset, or -1 if there is none (CommitLog.pickupStoreTimestamp)."""
        if not self.min_offset <= commit_log_offset < self.written_position:
            return -1
        head = self.segments.read(commit_log_offset, 96)
        if len(head) < 96:
            return -1
        _, magic, _, _, _, _, physical_offset, sys_flag = HEAD.unpack_from(head)
        if magic != MESSAGE_MAGIC or physical_offset != commit_log_offset:
            return -1
        return int(read_i64_be(head, store_timestamp_position(sys_flag)))

    def is_blank(self, position: int) -> bool:
        """Returns whether a blank record at `position` closes the segment."""
        head = self.segments.read(position, SIZE_AND_MAGIC.size)
        return len(head) == SIZE_AND_MAGIC.size and SIZE_AND_MAGIC.unpack(head)[1] == BLANK_MAGIC

    def _clear_tail(self) -> None:
        # Recovery must not mistake the bytes of a record that was refused for a stored record.
        self.segments.truncate(self.written_position)
        self._is_tail_dirty = False


class LogBlock:
    """A read-ahead cache of one block of the log. It saves reads, because consumers of several queues read the same bytes.

    The records of a topic's queues alternate in the log. A pull of one queue also reads the records of other queues, and later
    pulls find these records in the block. The cache does not verify the bytes: each record is checked before it is returned.
    """

    def __init__(self, segments: Segments) -> None:
        """Creates an empty cache."""
        self._segments = segments
        self._block = b""
        self._begin = 0

    def read(self, position: int, length: int, written: int) -> tuple[bytes, int]:
        """Returns a block that includes the requested bytes, up to the end of the file, and the block's position.

        Does not read ahead or keep bytes at or after the position `written`, because they may still change. Raises OSError.
        """
        segments, block, begin = self._segments, self._block, self._begin
        offset = position - begin
        if not segments.has(position):
            return b"", position
        if 0 <= offset <= len(block):
            if offset + length <= len(block):
                return block, begin
            ahead = min(max(length, min(_TIMES_AHEAD * length, _MAX_KEPT)), written - position)
        else:
            ahead = 0
        data = b""
        if ahead > length:
            # An unreadable sector in the read-ahead must not fail the read of the requested bytes.
            with suppress(OSError):
                data = segments.read(position, ahead)
        if len(data) < length:
            data = segments.read(position, length)
        if 0 < len(data) <= _MAX_KEPT and position + len(data) <= written:
            self._block, self._begin = data, position
        return data, position

    def forget(self) -> None:
        """Drops the block, because the files have changed."""
        self._block, self._begin = b"", 0
