"""The locks that prevent a second broker from opening a store.

RocketMQ's lock is on the file `lock` at the root. This broker also locks the folder of the commit log, because two roots may
share it. The second lock protects the store even if the file `lock` is removed. It is on the folder itself, because RocketMQ
would treat a lock file in the folder as a segment.

Both locks are advisory locks of this machine's kernel. They exclude brokers in other containers that mount the same folder. They
do not exclude a broker on another machine if the file system does not share locks between machines, such as NFS mounted with
`nolock`.
"""

from pathlib import Path

from rocketmq_broker.store.errors import StoreLocked
from rocketmq_broker.store.files import FileSystem

_LOCK_FILE = "lock"


class StoreLock:
    """The two locks on a store. They are held from `acquire` until `release`, or until the process ends."""

    def __init__(self, files: FileSystem, root: Path, commit_log: Path) -> None:
        """Creates the locks without acquiring them."""
        self._files = files
        self._root = root
        self._commit_log = commit_log
        self.file = root / _LOCK_FILE
        """The locked file. It exists while the lock is held."""
        self._held: dict[Path, int] = {}

    def acquire(self) -> list[str]:
        """Acquires both locks. Returns a warning if the folder cannot be locked.

        Raises StoreLocked or OSError. In that case no lock is held.
        """
        complaints = []
        try:
            self._files.make_directory(self._root)
            self._take(self.file, self._files.open(self.file, create=True), self._root)
            self._files.write(self._held[self.file], b"lock", 0)
            self._files.make_directory(self._commit_log)
            folder = self._files.open_directory(self._commit_log)
            try:
                self._take(self._commit_log, folder, self._commit_log)
            except OSError as error:
                complaints.append(
                    f"cannot lock the folder {self._commit_log}: {error.strerror}; do not start a second broker on it"
                )
        except BaseException:
            self.release()
            raise
        return complaints

    def what_is_wrong(self) -> str | None:
        """Returns the reason why the locks no longer protect the store, or None if they still do.

        The locks no longer protect the store if a locked file was removed or replaced.
        """
        for path, file in self._held.items():
            if not self._files.is_still(file, path):
                return f"{path} was removed or replaced while this broker holds its lock: another broker may be using the store"
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
