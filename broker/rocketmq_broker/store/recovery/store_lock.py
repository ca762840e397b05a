"""The locks that keep a second broker out of a store.

Two locks: RocketMQ's own, on the file `lock` at the root, and one on the folder of the commit log, which two roots may name, and
which stays when the file is removed. The folder itself is locked: RocketMQ would take a file in it for a segment.

Both are advisory locks of this machine's kernel. They keep out brokers in other containers that mount the same folder. They do
not keep out a broker on another machine where the file system is NFS mounted with `nolock`, or another one without locks.
"""

from __future__ import annotations

from pathlib import Path

from rocketmq_broker.store.errors import StoreLocked
from rocketmq_broker.store.files import FileSystem

_LOCK_FILE = "lock"


class StoreLock:
    """Two locks, held from `acquire` until `release`, or until the process ends."""

    def __init__(self, files: FileSystem, root: Path, commit_log: Path) -> None:
        """Begins without a lock."""
        self._files = files
        self._root = root
        self._commit_log = commit_log
        self._held: dict[Path, int] = {}

    def acquire(self) -> list[str]:
        """Takes both locks. Returns what cannot be locked, in words. Raises StoreLocked, OSError, and then holds none."""
        complaints = []
        try:
            self._files.make_directory(self._root)
            self._take(self._root / _LOCK_FILE, self._files.open(self._root / _LOCK_FILE, create=True), self._root)
            self._files.write(self._held[self._root / _LOCK_FILE], b"lock", 0)
            self._files.make_directory(self._commit_log)
            folder = self._files.open_directory(self._commit_log)
            try:
                self._take(self._commit_log, folder, self._commit_log)
            except OSError as error:
                complaints.append(
                    f"the folder {self._commit_log} cannot be locked, start no second broker on it: {error.strerror}"
                )
        except BaseException:
            self.release()
            raise
        return complaints

    def what_is_wrong(self) -> str | None:
        """Returns why the locks no longer protect the store, or None: a locked file was removed or replaced."""
        for path, file in self._held.items():
            if not self._files.is_still(file, path):
                return f"{path} was removed or replaced while this broker holds its lock: another broker may use the store"
        return None

    def release(self) -> None:
        """Releases the locks."""
        while self._held:
            self._files.close(self._held.popitem()[1])

    def _take(self, path: Path, file: int, folder: Path) -> None:
        try:
            is_taken = self._files.lock(file)
        except OSError:
            self._files.close(file)
            raise
        if not is_taken:
            self._files.close(file)
            raise StoreLocked(f"{folder} is in use by another broker")
        self._held[path] = file
