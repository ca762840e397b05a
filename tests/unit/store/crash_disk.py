"""A disk in memory that records every operation and can return the state after a crash at any of them."""

import errno
import random
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from rocketmq_broker.store.memory_files import MemoryFiles
from rocketmq_broker.testing.disk import Disk

SECTOR = 64
"""Small, so that the records of these tests lie in several."""


class Crash(Enum):
    """The part of the unsynced data that a crash loses."""

    PROCESS_KILLED = "nothing: the operating system lives on"
    UNSYNCED_DROPPED = "all of it"
    UNSYNCED_TORN = "any of its sectors, and any of the names"


@dataclass(frozen=True)
class Operation:
    name: str
    arguments: tuple[Any, ...]
    inode: int | None = None
    """The file's number in the order in which files were made; None if the operation takes a path."""


class CrashDisk(Disk):
    """A disk that implements the store's FileSystem port. An operation becomes durable only with a sync that covers it."""

    def __init__(self, files: MemoryFiles | None = None) -> None:
        self.memory = files or MemoryFiles()
        super().__init__(self.memory)
        self.operations: list[Operation] = []
        self.refuse_writes_after: int | None = None
        self.used = 0.1
        self._inodes: dict[Path, int] = {}
        self._inode_of: dict[int, int] = {}
        self._made = 0

    def open(self, path: Path, *, create: bool = False) -> int:
        is_new = self.memory.size(path) is None
        file = super().open(path, create=create)
        if is_new:
            self._remember("create", path)
            self._inodes[path], self._made = self._made, self._made + 1
        self._inode_of[file] = self._inodes.get(path, -1)
        return file

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        room = self.refuse_writes_after
        taken = bytes(data[:room])
        if room is not None:
            self.refuse_writes_after = room - len(taken)
        if taken:
            super().write(file, taken, position)
            self._remember("write", taken, position, file=file)
        if len(taken) < len(data):
            raise OSError(errno.ENOSPC, "no space left on device")

    def truncate(self, file: int, length: int) -> None:
        super().truncate(file, length)
        self._remember("truncate", length, file=file)

    def sync(self, file: int) -> None:
        super().sync(file)
        self._remember("sync", file=file)

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self._remember("sync_directory", path)

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._remember("rename", source, target)
        self._inodes[target] = self._inodes.pop(source, -1)

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self._remember("unlink", path)
        self._inodes.pop(path, None)

    def used_ratio(self, path: Path) -> float:
        return self.used

    def image(self, operations: Iterable[Operation], crash: Crash, seed: int = 0) -> "CrashDisk":
        """Returns the disk that a restart finds after a crash following these operations."""
        disk, made = MemoryFiles(), []
        for operation in operations:
            if operation.name == "create":
                made.append(disk.open(*operation.arguments, create=True))
            elif operation.inode is None:
                getattr(disk, operation.name)(*operation.arguments)
            else:
                getattr(disk, operation.name)(made[operation.inode], *operation.arguments)
        match crash:
            case Crash.PROCESS_KILLED:
                pass
            case Crash.UNSYNCED_DROPPED:
                disk.lose_power()
            case Crash.UNSYNCED_TORN:
                disk.lose_power(random.Random(seed), sector=SECTOR)
        return CrashDisk(disk)

    def _remember(self, name: str, *arguments: Any, file: int | None = None) -> None:
        self.operations.append(Operation(name, arguments, None if file is None else self._inode_of[file]))
