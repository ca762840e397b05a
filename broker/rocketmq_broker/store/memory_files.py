"""A file system in memory, either empty or on top of another file system, which stays unchanged.

An empty file system simulates a disk that records syncs and can lose power. A file system on top of the real disk allows a caller
to open a store and see what recovery would do at the broker's next start.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, NoReturn, TypeAlias

from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.memory_file import KEPT, SECTOR, MemoryFile, SyncedPages
from rocketmq_broker.world import Chance

_Entry: TypeAlias = "MemoryFile | Literal['folder'] | None"
"""A file, a folder, or None if the name does not exist."""
_MAX_CHANGES: Final = 64
"""The maximum number of name changes that wait for a sync. Older changes become durable without a sync, as in a kernel."""


class MemoryFiles:
    """A file system in memory. Contents are durable after `sync`, names after `sync_directory`."""

    def __init__(self, base: FileSystem | None = None) -> None:
        """Creates a file system on top of `base`, or an empty one. The base stays unchanged, and its locks are not acquired."""
        self.reads = 0
        self.writes = 0
        self._base = base
        self._files: dict[Path, MemoryFile] = {}
        self._durable: dict[Path, _Entry] = {}
        """Maps each durable name to its file or folder."""
        self._changes: list[dict[Path, _Entry]] = []
        """The name changes that are not durable yet, in order. Each one becomes durable as a whole."""
        self._hidden: set[Path] = set()
        """Files of the base that have been deleted or renamed."""
        self._folders: dict[Path, set[str]] = {}
        """Maps each folder to the names in it. For the base's folders, these are only the added names."""
        self._opened: dict[int, MemoryFile | Path] = {}
        self._locked: dict[int, MemoryFile | Path] = {}
        self._next = 1

    def killed(self) -> "MemoryFiles":
        """Returns a copy in the state after the process is killed: with all written data, synced or not, and without locks."""
        files = [*self._files.values(), *self._durable.values(), *(entry for each in self._changes for entry in each.values())]
        copies = {file: file.copy() for file in dict.fromkeys(files) if isinstance(file, MemoryFile)}

        def copied(names: dict[Path, _Entry]) -> dict[Path, _Entry]:
            return {path: copies[entry] if isinstance(entry, MemoryFile) else entry for path, entry in names.items()}

        left = MemoryFiles(self._base)
        left._files = {path: copies[file] for path, file in self._files.items()}
        left._durable, left._changes = copied(self._durable), [copied(change) for change in self._changes]
        left._hidden, left._folders = set(self._hidden), {path: set(names) for path, names in self._folders.items()}
        return left

    def powered_off(self) -> "MemoryFiles":
        """Returns a copy in the state after a power failure that drops all changes that are not synced (see `lose_power`)."""
        left = self.killed()
        left.lose_power()
        return left

    def lose_power(self, chance: Chance | None = None, *, sector: int = SECTOR) -> None:
        """Simulates a power failure: drops all changes that are not synced or, with `chance`, a random part of them.

        Takes time proportional to the size of the unsynced data. Open files stay open.
        """
        lost: set[Path] = set()
        often = 0.0 if chance is None else chance.choice(KEPT)
        for change in self._changes:
            if chance is not None and lost.isdisjoint(change) and chance.random() < often:
                self._make_durable(change)
            else:
                lost.update(change)
        self._changes = []
        missing = {path for path in lost if path not in self._durable}

        def is_there(path: Path) -> bool:
            return not missing or missing.isdisjoint(path.parents)

        self._durable = {path: entry for path, entry in self._durable.items() if is_there(path)}
        self._files = {path: entry for path, entry in self._durable.items() if isinstance(entry, MemoryFile)}
        folders, self._folders = self._folders, {}
        for path in (*(path for path in folders if path not in missing and is_there(path)), *self._durable):
            self._name(path)
            if path not in self._files:
                self._folders.setdefault(path, set())
        for file in self._files.values():
            file.lose_power(chance, sector)

    def content(self, path: Path) -> bytes:
        """Returns a file's content up to the last written byte."""
        file = self._files[path]
        return file.read(file.end, 0)

    @property
    def paths(self) -> list[Path]:
        """Returns the paths of all files that were opened or created in this file system."""
        return sorted(self._files)

    # FileSystem

    def open(self, path: Path, *, create: bool = False) -> int:
        """Opens a file in memory or in the base. With `create`, creates the file in memory if it is missing."""
        file = self._found(path)
        if file is None:
            if not create:
                _raise(errno.ENOENT, path)
            file = MemoryFile()
            self._name(path)
            self._change({path: file})
        elif path not in self._files:
            self._durable[path] = file
        file.open()
        self._files[path] = file
        return self._handle(file)

    def close(self, file: int) -> None:
        """Closes the file and releases its lock."""
        self._locked.pop(file, None)
        opened = self._opened.pop(file)
        if isinstance(opened, MemoryFile):
            opened.close()

    def read(self, file: int, length: int, position: int) -> bytes:
        """Returns bytes at a position, or fewer at the end of the file."""
        self.reads += 1
        return self._file(file).read(length, position)

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes to memory. The data is durable after `sync`."""
        self.writes += 1
        self._file(file).write(data, position)

    def truncate(self, file: int, length: int) -> None:
        """Sets the file's length in bytes. Added bytes read as zeros."""
        self._file(file).truncate(length)

    def next_data(self, file: int, position: int) -> int | None:
        """Returns the first position at or after `position` in a written page or in the base's data, or None if there is none."""
        return self._file(file).next_data(position)

    def sync(self, file: int) -> None:
        """Makes the file's content durable in memory. The base stays unchanged."""
        self._file(file).sync()

    def sync_directory(self, path: Path) -> None:
        """Makes the names in the directory durable."""
        self._settle(lambda changed: changed.parent == path)

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """Creates a directory, unless it exists in memory."""
        if path not in self._folders:
            self._folders[path] = set()
            self._name(path)
            self._change({path: "folder"})
            if is_durable:
                self._settle(lambda changed: changed == path)

    def remove_directory(self, path: Path) -> None:
        """Removes an empty directory."""
        self._folders.pop(path, None)
        self._forget(path)
        self._change({path: None})

    def rename(self, source: Path, target: Path) -> None:
        """Renames the source to the target, and replaces an existing target. The change is durable after `sync_directory`."""
        file = self._found(source)
        if file is None:
            _raise(errno.ENOENT, source)
        self._forget(source)
        self._files[target] = file
        self._name(target)
        self._change({source: None, target: file})

    def unlink(self, path: Path) -> None:
        """Removes a file in memory, or hides a file of the base."""
        if self.size(path) is None:
            _raise(errno.ENOENT, path)
        self._forget(path)
        self._change({path: None})

    def list(self, path: Path) -> list[str]:
        """Returns the sorted names in a directory, in memory and in the base."""
        below = [] if self._base is None else self._base.list(path)
        return sorted(self._folders.get(path, set()).union(name for name in below if path / name not in self._hidden))

    def size(self, path: Path) -> int | None:
        """Returns the size in bytes, or None for a missing file."""
        file = self._files.get(path)
        if file is not None:
            return file.length
        return None if self._base is None or path in self._hidden else self._base.size(path)

    def is_directory(self, path: Path) -> bool:
        """Returns whether the path is a directory in memory or in the base."""
        return path in self._folders or (self._base is not None and self._base.is_directory(path))

    def open_directory(self, path: Path) -> int:
        """Opens a directory for locking."""
        return self._handle(path)

    def lock(self, file: int) -> bool:
        """Acquires the lock. Returns False if another handle of this object holds it."""
        wanted = self._opened[file]
        if any(held == wanted for other, held in self._locked.items() if other != file):
            return False
        self._locked[file] = wanted
        return True

    def is_still(self, file: int, path: Path) -> bool:
        """Returns whether the path still refers to the open file or directory."""
        return self._opened[file] in (path, self._files.get(path))

    def ignores_case(self, path: Path) -> bool:
        """Returns whether the base ignores case. A file system without a base does not ignore case."""
        return self._base is not None and self._base.ignores_case(path)

    def is_reserved(self, path: Path) -> bool:
        """Returns whether the base rejects the path's name. A file system without a base accepts all names."""
        return self._base is not None and self._base.is_reserved(path)

    def used_ratio(self, path: Path) -> float:
        """Returns the used ratio of the base's disk, or 0 without a base."""
        return 0.0 if self._base is None else self._base.used_ratio(path)

    # simulated disk behaviour, for tests

    def begin_sync(self, file: int) -> SyncedPages:
        """Begins a sync that takes time. `end_sync` makes durable only the data that was written before this call."""
        return self._file(file).begin_sync()

    def end_sync(self, file: int, synced: SyncedPages) -> None:
        """Makes the data that was written before `begin_sync` durable."""
        self._file(file).end_sync(synced)

    def refuse_sync(self, file: int, chance: Chance) -> None:
        """Simulates a failed sync, after which Linux may lose pages."""
        self._file(file).refuse_sync(chance)

    def write_back(self, file: int, chance: Chance) -> None:
        """Makes some random unsynced sectors durable, as the kernel may do without a sync."""
        self._file(file).write_back(chance)

    def _file(self, handle: int) -> MemoryFile:
        opened = self._opened[handle]
        assert isinstance(opened, MemoryFile)
        return opened

    def _handle(self, opened: MemoryFile | Path) -> int:
        handle, self._next = self._next, self._next + 1
        self._opened[handle] = opened
        return handle

    def _found(self, path: Path) -> MemoryFile | None:
        file = self._files.get(path)
        if file is None and (length := self.size(path)) is not None:
            return MemoryFile(self._base, path, length)
        return file

    def _name(self, path: Path) -> None:
        """Adds the path to its folder, and each folder to its parent."""
        for child, folder in zip((path, *path.parents), path.parents, strict=False):
            self._folders.setdefault(folder, set()).add(child.name)

    def _forget(self, path: Path) -> None:
        self._files.pop(path, None)
        self._folders.get(path.parent, set()).discard(path.name)
        self._hidden.add(path)

    def _change(self, change: dict[Path, _Entry]) -> None:
        self._changes.append(change)
        if len(self._changes) > _MAX_CHANGES:
            for older in self._changes[: _MAX_CHANGES // 2]:
                self._make_durable(older)
            del self._changes[: _MAX_CHANGES // 2]

    def _settle(self, is_synced: Callable[[Path], bool]) -> None:
        """Makes the name changes selected by `is_synced` durable, together with the earlier changes that they depend on."""
        wanted: set[Path] = set()
        settled: list[dict[Path, _Entry]] = []
        others: list[dict[Path, _Entry]] = []
        for change in reversed(self._changes):
            if any(path in wanted or is_synced(path) for path in change):
                wanted.update(change)
                settled.append(change)
            else:
                others.append(change)
        for change in reversed(settled):
            self._make_durable(change)
        self._changes = others[::-1]

    def _make_durable(self, change: dict[Path, _Entry]) -> None:
        for path, entry in change.items():
            if entry is None:
                self._durable.pop(path, None)
            else:
                self._durable[path] = entry


def _raise(number: int, path: Path) -> NoReturn:
    raise OSError(number, os.strerror(number), str(path))
