"""Simulates the disk of a broker under test. The disk can be full, and ignores writes after the broker is killed."""

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rocketmq_broker.store.files import FileSystem

_NOWHERE: Final = -1
"""The file descriptor that a killed broker gets for a file that it tries to create."""


class Disk:
    """A file system that discards all writes of a killed broker."""

    def __init__(self, files: FileSystem) -> None:
        """Creates a disk that is not full. `files` is the file system that stores the data."""
        self.files = files
        self.is_full = False
        """Whether writes fail because the disk is full."""
        self.is_dead = False
        """Whether the broker was killed. A killed broker cannot change files."""
        self.read = files.read
        self.next_data = files.next_data
        self.list = files.list
        self.size = files.size
        self.is_directory = files.is_directory
        self.lock = files.lock
        self.is_still = files.is_still
        self.ignores_case = files.ignores_case
        self.is_reserved = files.is_reserved

    def open(self, path: Path, *, create: bool = False) -> int:
        """Opens the file. A killed broker creates no files."""
        if self.is_dead and create and self.files.size(path) is None:
            return _NOWHERE
        return self.files.open(path, create=create)

    def open_directory(self, path: Path) -> int:
        """Opens a directory for locking."""
        return self.files.open_directory(path)

    def close(self, file: int) -> None:
        """Closes the file."""
        if file != _NOWHERE:
            self.files.close(file)

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes, unless the broker was killed. Raises OSError if the disk is full."""
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if not self.is_dead:
            self.files.write(file, data, position)

    def truncate(self, file: int, length: int) -> None:
        """Truncates the file, unless the broker was killed."""
        if not self.is_dead:
            self.files.truncate(file, length)

    def sync(self, file: int) -> None:
        """Syncs the file, unless the broker was killed."""
        if not self.is_dead:
            self.files.sync(file)

    def sync_directory(self, path: Path) -> None:
        """Syncs the directory, unless the broker was killed."""
        if not self.is_dead:
            self.files.sync_directory(path)

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """Creates the directory, unless the broker was killed."""
        if not self.is_dead:
            self.files.make_directory(path, is_durable=is_durable)

    def remove_directory(self, path: Path) -> None:
        """Removes the directory, unless the broker was killed."""
        if not self.is_dead:
            self.files.remove_directory(path)

    def rename(self, source: Path, target: Path) -> None:
        """Renames the file, unless the broker was killed."""
        if not self.is_dead:
            self.files.rename(source, target)

    def unlink(self, path: Path) -> None:
        """Deletes the file, unless the broker was killed."""
        if not self.is_dead:
            self.files.unlink(path)

    def used_ratio(self, path: Path) -> float:
        """Returns 1.0 for a full disk, otherwise at most 0.5."""
        return 1.0 if self.is_full else min(self.files.used_ratio(path), 0.5)


class InlineFlush:
    """Flushes files in the next turn of the event loop instead of in a separate process."""

    def __init__(self, disk: Disk, on_answer: Callable[[int], None]) -> None:
        self._disk = disk
        self._on_answer = on_answer
        self._due: asyncio.Handle | None = None

    def start(self) -> None:
        """Does nothing, because no preparation is needed."""

    def request(self, paths: Sequence[Path]) -> None:
        """Schedules the flush of these files."""
        self._due = asyncio.get_running_loop().call_soon(self._flush, paths)

    def stop(self) -> None:
        """Cancels a scheduled flush."""
        if self._due is not None:
            self._due.cancel()

    def _flush(self, paths: Sequence[Path]) -> None:
        try:
            for path in paths:
                file = self._disk.open(path)
                try:
                    self._disk.sync(file)
                finally:
                    self._disk.close(file)
        except OSError as error:
            self._on_answer(error.errno or -1)
        else:
            self._on_answer(0)
