"""Stages 4 and 11: the commit log, which is one file with the records of all topics."""

import os
from collections.abc import Iterator
from pathlib import Path

from tutorials.build_your_own.solution import record
from tutorials.build_your_own.solution.record import Record

FILE_NAME = "0" * 20
"""The name of the log file. RocketMQ names a file after the offset of its first byte, in 20 digits. This broker has one file."""


class LogFull(Exception):
    """The file has no space for the next record. RocketMQ would create another file instead."""


class CommitLog:
    """A log of records at the beginning of a file. The file has its full length from the start; the unused rest is zeros."""

    def __init__(self, folder: Path, file_size: int) -> None:
        """Opens or creates the log file in `folder`.

        `file_size` is the setting mappedFileSizeCommitLog in bytes. Apache's broker opens only files of this length.
        """
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE_NAME
        self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)
        self._file.truncate(file_size)
        self.file_size = file_size
        self.end = 0

    def append(self, records: bytes) -> None:
        """Appends records and flushes them to disk. Raises LogFull."""
        if self.end + len(records) > self.file_size:
            raise LogFull(f"the commit log is full: {self.end} of {self.file_size} bytes")
        self._file.seek(self.end)
        self._file.write(records)
        os.fdatasync(self._file.fileno())
        self.end += len(records)

    def read(self, commit_log_offset: int, size: int) -> bytes:
        """Returns `size` bytes of the log, beginning at the commit log offset."""
        self._file.seek(commit_log_offset)
        return self._file.read(size)

    def size_at(self, commit_log_offset: int) -> int:
        """Returns the TOTALSIZE of the record that begins at the commit log offset."""
        return int.from_bytes(self.read(commit_log_offset, 4))

    def record_at(self, commit_log_offset: int) -> Record | None:
        """Returns the record that begins at the commit log offset, or None if no intact record begins there."""
        if not 0 <= commit_log_offset < self.file_size:
            return None
        found = record.decode(self.read(commit_log_offset, self.size_at(commit_log_offset)))
        return found if found is not None and found.commit_log_offset == commit_log_offset else None

    def recover(self) -> Iterator[tuple[Record, int]]:
        """Yields each intact record with its size in bytes. Stops at the first record that a crash left incomplete."""
        while (found := self.record_at(self.end)) is not None:
            size = self.size_at(self.end)
            yield found, size
            self.end += size
        self.cut_torn_tail()

    def cut_torn_tail(self) -> None:
        """Overwrites everything after the last intact record with zeros. The next record is written there."""
        self._file.truncate(self.end)
        self._file.truncate(self.file_size)
