"""A sequence of files of equal size, each named by the offset of its first byte (RocketMQ's MappedFileQueue).

    00000000000000000000 | 00000000001073741824 | 00000000002147483648 ...

A file is created with its full size. Bytes that are not written yet read as zeros.
"""

from bisect import bisect_right
from pathlib import Path

from rocketmq_broker.store.errors import DamagedStore
from rocketmq_broker.store.files import OpenFiles, create_file, create_file_lazily

_NAME_LENGTH = 20


class Segments:
    """The segment files of one directory, in the order of their offsets."""

    def __init__(self, directory: Path, segment_size: int, open_files: OpenFiles) -> None:
        """Creates an empty sequence. `load` and `create` add files."""
        self.directory = directory
        self.segment_size = segment_size
        self.starts: list[int] = []
        """The first offset of each file, ascending."""
        self._open = open_files
        self._files = open_files.files
        self._paths: dict[int, Path] = {}

    def load(self, *, may_lack_files: bool = False) -> list[str]:
        """Finds the files, and restores the full size of files that are too short. Returns a description of each repair.

        Raises DamagedStore if a file is too long. Also raises DamagedStore if a file in the middle is missing, unless
        `may_lack_files` is True.
        """
        repaired = []
        self.starts = [int(name) for name in self._files.list(self.directory) if _is_segment_name(name)]
        for start in self.starts:
            size = self._files.size(self.path(start)) or 0
            if size > self.segment_size or start % self.segment_size:
                raise DamagedStore(
                    f"{self.path(start)} begins at {start} and has {size} bytes, which does not fit a file size of "
                    f"{self.segment_size} bytes: set the file size with which the store was created "
                    "(mappedFileSizeCommitLog, mappedFileSizeConsumeQueue)"
                )
            if size < self.segment_size:
                repaired.append(f"{self.path(start)} had {size} bytes and was given its full size of {self.segment_size}")
                file = self._open.get(self.path(start))
                self._files.truncate(file, self.segment_size)
                self._files.sync(file)
        for start, following in zip(self.starts, self.starts[1:], strict=False):
            if following - start != self.segment_size and not may_lack_files:
                raise DamagedStore(
                    f"a file is missing in {self.directory} between {self.path(start).name} and {self.path(following).name}"
                )
        return repaired

    @property
    def min_offset(self) -> int:
        """Returns the offset of the first byte, or 0 if there are no files."""
        return self.starts[0] if self.starts else 0

    @property
    def end(self) -> int:
        """Returns the offset after the last file."""
        return self.starts[-1] + self.segment_size if self.starts else 0

    def start_of(self, position: int) -> int:
        """Returns the first offset of the file that contains a position."""
        return position - position % self.segment_size

    def path(self, start: int) -> Path:
        """Returns the path of the file that begins at offset `start`."""
        path = self._paths.get(start)
        if path is None:  # Creating a Path takes longer than reading a record.
            path = self._paths[start] = self.directory / f"{start:0{_NAME_LENGTH}d}"
        return path

    def paths_between(self, from_position: int, to_position: int) -> list[Path]:
        """Returns the files that contain any byte from `from_position` up to, but not including, `to_position`."""
        first = self.start_of(from_position)
        return [self.path(start) for start in self.starts if first <= start < to_position]

    def has(self, position: int) -> bool:
        """Returns whether a file contains `position`."""
        return bool(self.starts) and self.starts[0] <= position < self.end

    def create(self, start: int, *, is_durable: bool = True) -> None:
        """Creates a file of zeros after the last file. It must begin where the last file ends.

        The file, its name and its directory's name are on disk on return, unless `is_durable` is False.
        """
        if self.starts and start != self.end:
            raise ValueError(f"a new file must begin at {self.end}, the end of the last one, not at {start}")
        if is_durable:
            self._files.make_directory(self.directory)
            create_file(self._files, self.path(start), self.segment_size)
        else:
            create_file_lazily(self._files, self.path(start), self.segment_size)
        self.starts.append(start)

    def adopt(self, start: int) -> None:
        """Adds a segment file that another thread created. Ignores the file if it is missing or has a different size."""
        if start == self.end and start not in self.starts and self._files.size(self.path(start)) == self.segment_size:
            self.starts.append(start)

    def read(self, position: int, length: int) -> bytes:
        """Returns `length` bytes from a position, or fewer at the end of the file, or none if no file contains the position."""
        if not self.has(position):
            return b""
        at = position % self.segment_size
        file = self._open.get(self.path(position - at))
        return self._files.read(file, min(length, self.segment_size - at), at)

    def next_data(self, position: int) -> int | None:
        """Returns the position of the first byte at or after `position`, in the same file, that may be non-zero.

        Returns None if there is none.
        """
        if not self.has(position):
            return None
        at = position % self.segment_size
        found = self._files.next_data(self._open.get(self.path(position - at)), at)
        return None if found is None or found >= self.segment_size else position - at + found

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """Writes data at a position of one existing file. The data must not cross the file's end."""
        at = position % self.segment_size
        self._files.write(self._open.get(self.path(position - at)), data, at)

    def sync(self, from_position: int, to_position: int) -> None:
        """Syncs the files that contain these bytes. The bytes are on disk on return."""
        for path in self.paths_between(from_position, to_position):
            self._files.sync(self._open.get(path))

    def truncate(self, position: int) -> None:
        """Deletes all bytes from `position`: zeroes the rest of the file that contains it, and deletes later files.

        The change is durable on return.
        """
        for start in [start for start in reversed(self.starts) if start >= position]:
            self._delete(start)
        if self.has(position):
            file = self._open.get(self.path(self.start_of(position)))
            self._files.truncate(file, position % self.segment_size)
            self._files.truncate(file, self.segment_size)
            self._files.sync(file)
        if self.starts:
            self._files.sync_directory(self.directory)

    def forget_before(self, position: int) -> list[Path]:
        """Closes and drops the files that end at or before `position`. Returns the files to delete, in deletion order."""
        forgotten = []
        while self.starts and self.starts[0] + self.segment_size <= position:
            forgotten.append(self._forget(self.starts[0]))
        return forgotten

    def forget(self) -> list[Path]:
        """Closes and drops all files. Returns the files and the directory to delete, in deletion order."""
        return [*(self._forget(start) for start in list(self.starts)), self.directory]

    def destroy(self) -> None:
        """Deletes all files and the directory."""
        for start in list(self.starts):
            self._delete(start)
        if self._files.is_directory(self.directory):
            self._files.remove_directory(self.directory)

    def _delete(self, start: int) -> None:
        path = self.path(start)
        self._open.forget(path)
        self._files.unlink(path)
        self._forget(start)

    def _forget(self, start: int) -> Path:
        path = self.path(start)
        self._open.forget(path)
        del self._paths[start]
        del self.starts[bisect_right(self.starts, start) - 1]
        return path


def _is_segment_name(name: str) -> bool:
    return len(name) == _NAME_LENGTH and name.isascii() and name.isdigit()
