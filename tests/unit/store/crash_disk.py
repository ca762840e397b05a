"""A disk in memory that remembers every operation, and can say what a crash after any of them would have left."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

SECTOR = 64


class Crash(Enum):
    """How much of what was not synced is lost."""

    PROCESS_KILLED = "nothing: the operating system lives on"
    UNSYNCED_DROPPED = "all of it"
    UNSYNCED_TORN = "any of its sectors, and any of the names"


@dataclass
class Inode:
    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)

    def sync(self) -> None:
        self.durable = bytearray(self.content)


@dataclass(frozen=True)
class Operation:
    name: str
    path: Path | None = None
    inode: int = -1
    data: bytes = b""
    number: int = 0
    target: Path | None = None


class CrashDisk:
    """Implements the store's FileSystem port. An operation becomes durable only by the sync that covers it."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.inodes: list[Inode] = []
        self.names: dict[Path, int] = {}
        self.durable_names: dict[Path, int] = {}
        self.directories: set[Path] = set()
        self.refuse_writes_after: int | None = None
        self.used = 0.1

    # the port

    def open(self, path: Path, *, create: bool = False) -> int:
        if path not in self.names:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
            self._do(Operation("create", path))
        return self.names[path]

    def close(self, file: int) -> None:
        pass

    def read(self, file: int, length: int, position: int) -> bytes:
        return bytes(self.inodes[file].content[position : position + length])

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        data = bytes(data)
        if self.refuse_writes_after is not None and len(data) > self.refuse_writes_after:
            written = data[: self.refuse_writes_after]
            self.refuse_writes_after = 0
            self._do(Operation("write", None, file, written, position))
            raise OSError(errno.ENOSPC, "no space left on device")
        if self.refuse_writes_after is not None:
            self.refuse_writes_after -= len(data)
        self._do(Operation("write", None, file, data, position))

    def truncate(self, file: int, length: int) -> None:
        self._do(Operation("truncate", None, file, b"", length))

    def next_data(self, file: int, position: int) -> int | None:
        content = self.inodes[file].content
        rest = content[position:].lstrip(b"\0")
        return len(content) - len(rest) if rest else None

    def sync(self, file: int) -> None:
        self._do(Operation("sync", None, file))

    def sync_directory(self, path: Path) -> None:
        self._do(Operation("sync_directory", path))

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        self.directories.update((path, *path.parents))

    def remove_directory(self, path: Path) -> None:
        self.directories.discard(path)

    def rename(self, source: Path, target: Path) -> None:
        self._do(Operation("rename", source, target=target))

    def unlink(self, path: Path) -> None:
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        self._do(Operation("unlink", path))

    def list(self, path: Path) -> list[str]:
        names = {
            name.relative_to(path).parts[0] for name in (*self.names, *self.directories) if name != path and path in name.parents
        }
        return sorted(names)

    def size(self, path: Path) -> int | None:
        return len(self.inodes[self.names[path]].content) if path in self.names else None

    def is_directory(self, path: Path) -> bool:
        return path in self.directories

    def open_directory(self, path: Path) -> int:
        return -1

    def lock(self, file: int) -> bool:
        return True

    def is_still(self, file: int, path: Path) -> bool:
        return True

    def used_ratio(self, path: Path) -> float:
        return self.used

    # crashes

    def image(self, operations: Iterable[Operation], crash: Crash, seed: int = 0) -> CrashDisk:
        """The disk that a new start finds after a crash behind these operations."""
        disk = CrashDisk()
        disk.directories = set(self.directories)
        for operation in operations:
            disk._do(operation)
        chance = random.Random(seed)
        if crash is not Crash.PROCESS_KILLED:
            is_torn = crash is Crash.UNSYNCED_TORN
            if not (is_torn and chance.random() < 0.5):
                disk.names = dict(disk.durable_names)
            for inode in disk.inodes:
                inode.content = _torn(inode, chance) if is_torn else bytearray(inode.durable)
        for inode in disk.inodes:
            inode.sync()
        disk.durable_names = dict(disk.names)
        disk.operations = []
        return disk

    def _do(self, operation: Operation) -> None:
        self.operations.append(operation)
        match operation.name:
            case "create":
                assert operation.path is not None
                self.inodes.append(Inode())
                self.names[operation.path] = len(self.inodes) - 1
            case "write":
                content, end = self.inodes[operation.inode].content, operation.number + len(operation.data)
                content.extend(bytes(max(end - len(content), 0)))
                content[operation.number : end] = operation.data
            case "truncate":
                content = self.inodes[operation.inode].content
                content.extend(bytes(max(operation.number - len(content), 0)))
                del content[operation.number :]
            case "sync":
                self.inodes[operation.inode].sync()
            case "sync_directory":
                self._sync_names(operation.path)
            case "rename":
                assert operation.path is not None
                assert operation.target is not None
                self.names[operation.target] = self.names.pop(operation.path)
            case "unlink":
                assert operation.path is not None
                del self.names[operation.path]

    def _sync_names(self, directory: Path | None) -> None:
        self.durable_names = {path: inode for path, inode in self.durable_names.items() if path.parent != directory}
        self.durable_names.update({path: inode for path, inode in self.names.items() if path.parent == directory})


def _torn(inode: Inode, chance: random.Random) -> bytearray:
    """Each sector as it was synced or as it was written since."""
    length = chance.choice((len(inode.content), len(inode.durable)))
    mixed = bytearray(length)
    for at in range(0, length, SECTOR):
        source = chance.choice((inode.content, inode.durable))
        mixed[at : at + SECTOR] = source[at : at + SECTOR].ljust(min(SECTOR, length - at), b"\0")
    return mixed
