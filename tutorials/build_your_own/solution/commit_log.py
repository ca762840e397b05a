"""Stages 4 and 11: the commit log, one file with all records of all topics, one after the other."""

import os
from collections.abc import Iterator
from pathlib import Path

from tutorials.build_your_own.solution import record
from tutorials.build_your_own.solution.record import Record

FILE_NAME = "0" * 20
"""RocketMQ's files are named after the offset at which they begin, in 20 digits. This broker keeps to one file."""
_LONGEST_RECORD = 16 * 1024 * 1024


class CommitLog:
    """Grows at its end, and nowhere else."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / FILE_NAME).open("r+b" if (folder / FILE_NAME).exists() else "w+b", buffering=0)
        self.end = 0

    @property
    def size(self) -> int:
        """Bytes of the file: what a crash tore included."""
        return os.fstat(self._file.fileno()).st_size

    def append(self, records: bytes) -> None:
        """Writes records at the end. They are on the disk when this returns."""
        self._file.seek(self.end)
        self._file.write(records)
        os.fdatasync(self._file.fileno())
        self.end += len(records)

    def read(self, commit_log_offset: int, size: int = _LONGEST_RECORD) -> bytes:
        """The bytes of a record; without a size, at least those."""
        self._file.seek(commit_log_offset)
        return self._file.read(size)

    def record_at(self, commit_log_offset: int) -> Record | None:
        """The record that begins there, if one does."""
        if not 0 <= commit_log_offset < self.end:
            return None
        found = record.decode(self.read(commit_log_offset))
        return found if found is not None and found.commit_log_offset == commit_log_offset else None

    def recover(self) -> Iterator[tuple[Record, int]]:
        """Every whole record with its size. What follows the last one is a record that a crash tore: it goes."""
        self._file.seek(0)
        data = self._file.read()
        while (found := record.decode(data[self.end : self.end + _LONGEST_RECORD])) is not None:
            size = int.from_bytes(data[self.end : self.end + 4])
            yield found, size
            self.end += size
        self.cut_torn_tail()

    def cut_torn_tail(self) -> None:
        """Nothing is left behind the last whole record: the next one begins there."""
        self._file.truncate(self.end)
