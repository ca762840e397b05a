"""A file system in memory for tests of what a broker does after a crash: it knows what is synced, and can lose the rest."""

import errno
import os
from pathlib import Path


class MemoryFiles:
    """Contents and names; names are durable at once, contents after `sync`."""

    def __init__(self) -> None:
        self._contents: dict[Path, bytearray] = {}
        self._synced: dict[Path, bytes] = {}
        self._open: list[Path] = []
        self.is_full = False
        self.reads = 0
        self.writes = 0

    def killed(self) -> "MemoryFiles":
        """What the next process finds if this one is killed: everything written."""
        left = MemoryFiles()
        left._contents = {path: bytearray(content) for path, content in self._contents.items()}
        left._synced = {path: bytes(content) for path, content in self._contents.items()}
        return left

    def powered_off(self) -> "MemoryFiles":
        """What the next process finds after a power failure: everything synced."""
        left = MemoryFiles()
        left._contents = {path: bytearray(self._synced.get(path, b"")) for path in self._contents}
        left._synced = dict(self._synced)
        return left

    def open(self, path: Path, *, create: bool = False) -> int:
        if path not in self._contents:
            if not create:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            self._contents[path] = bytearray()
        self._open.append(path)
        return len(self._open) - 1

    def close(self, file: int) -> None:
        """Nothing to give back."""

    def read(self, file: int, length: int, position: int) -> bytes:
        self.reads += 1
        return bytes(self._contents[self._open[file]][position : position + length])

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.writes += 1
        content = self._contents[self._open[file]]
        if len(content) < position:
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data

    def truncate(self, file: int, length: int) -> None:
        content = self._contents[self._open[file]]
        del content[length:]
        content.extend(bytes(length - len(content)))

    def next_data(self, file: int, position: int) -> int | None:
        rest = self._contents[self._open[file]][position:]
        stripped = rest.lstrip(b"\0")
        return position + len(rest) - len(stripped) if stripped else None

    def sync(self, file: int) -> None:
        path = self._open[file]
        if path in self._contents:
            self._synced[path] = bytes(self._contents[path])

    def sync_directory(self, path: Path) -> None:
        """Names are durable at once."""

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """Directories are there."""

    def remove_directory(self, path: Path) -> None:
        """Directories are there."""

    def rename(self, source: Path, target: Path) -> None:
        self._contents[target] = self._contents.pop(source)
        self._synced[target] = bytes(self._contents[target])
        self._open = [target if path == source else path for path in self._open]

    def unlink(self, path: Path) -> None:
        self._contents.pop(path, None)
        self._synced.pop(path, None)

    def list(self, path: Path) -> list[str]:
        depth = len(path.parts)
        return sorted({found.parts[depth] for found in self._contents if found.parts[:depth] == path.parts and found != path})

    def size(self, path: Path) -> int | None:
        content = self._contents.get(path)
        return None if content is None else len(content)

    def is_directory(self, path: Path) -> bool:
        return path not in self._contents and any(path in found.parents for found in self._contents)

    def open_directory(self, path: Path) -> int:
        return -1

    def lock(self, file: int) -> bool:
        return True

    def is_still(self, file: int, path: Path) -> bool:
        return True

    def used_ratio(self, path: Path) -> float:
        return 0.0
