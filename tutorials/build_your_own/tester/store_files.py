"""Reads the store files of the broker under test, and damages them as a crash would."""

import shutil
from pathlib import Path

from tutorials.build_your_own.tester.failed import Failed
from tutorials.build_your_own.tester.layout import BLANK_MAGIC, MAGIC, UNIT_SIZE, Record, read_record
from tutorials.build_your_own.tester.timeline import Kind, Timeline

FIRST_FILE = "0" * 20


class StoreFiles:
    """The store files of the broker, in the folder storePathRootDir."""

    def __init__(self, store: Path, timeline: Timeline) -> None:
        self._store = store
        self._timeline = timeline

    @property
    def log_path(self) -> Path:
        """The path of the commit log's first file."""
        return self._store / "commitlog" / FIRST_FILE

    def name(self, path: Path) -> str:
        """Returns a file's path relative to the store, for error messages."""
        return str(path.relative_to(self._store))

    def records(self) -> list[Record]:
        """Returns all records of the commit log.

        Raises Failed if the file is missing or contains something other than records.
        """
        data = self._read(self.log_path)
        where = self.name(self.log_path)
        found: list[Record] = []
        at = 0
        while not _is_unused(data, at):
            found.append(read_record(data, at, where))
            at += found[-1].size
        self._timeline.add(Kind.FILE, f"{where}: {len(found)} records, {at} bytes", data[:at])
        return found

    def records_of(self, topic: str) -> list[Record]:
        """Returns the records of one topic in the order of the log."""
        return [record for record in self.records() if record.topic == topic]

    def units(self, topic: str, queue_id: int) -> list[bytes]:
        """Returns the units of a consume queue, 20 bytes each, without the zeros at the end of the file.

        Raises Failed if the consume queue is missing.
        """
        path = self.queue_path(topic, queue_id)
        data = self._read(path)
        units = [data[at : at + UNIT_SIZE] for at in range(0, len(data), UNIT_SIZE)]
        while units and not any(units[-1]):
            units.pop()
        self._timeline.add(Kind.FILE, f"{self.name(path)}: {len(units)} units", b"".join(units))
        return units

    def queue_path(self, topic: str, queue_id: int) -> Path:
        """Returns the path of a consume queue's first file."""
        return self._store / "consumequeue" / topic / str(queue_id) / FIRST_FILE

    def tear(self, end: int, torn: bytes) -> None:
        """Writes the bytes `torn`, an incomplete record, at the log's end, as a crash in the middle of a write would."""
        with self.log_path.open("r+b") as log:
            log.seek(end)
            log.write(torn)
        self._timeline.add(Kind.FILE, f"{len(torn)} bytes of a torn record written after the log's end, at byte {end}", torn)

    def cut_log(self, position: int) -> None:
        """Removes everything from this position to the end of the log.

        A file that was created with its full length keeps its length.
        """
        size = self.log_path.stat().st_size
        is_ahead = size > max(position, self._used())
        with self.log_path.open("r+b") as log:
            log.truncate(position)
            if is_ahead:
                log.truncate(size)
        self._timeline.add(Kind.FILE, f"the log truncated at byte {position}")

    def lose_queues(self) -> None:
        """Deletes all consume queues."""
        shutil.rmtree(self._store / "consumequeue", ignore_errors=True)
        self._timeline.add(Kind.FILE, "the folder consumequeue deleted")

    def _used(self) -> int:
        return sum(record.size for record in self.records())

    def _read(self, path: Path) -> bytes:
        if not path.exists():
            there = sorted(str(found.relative_to(self._store)) for found in self._store.rglob("*") if found.is_file())
            raise Failed(
                f"a file {self.name(path)} in storePathRootDir",
                f"only {', '.join(there[:8])}" if there else f"no file in {self._store}",
            )
        return path.read_bytes()


def _is_unused(data: bytes, at: int) -> bool:
    """Returns True if the log ends at position `at`: at the end of the file, at a blank record, or at zeros."""
    head = data[at : at + 8]
    if len(head) < 8 and not any(head):
        return True
    magic = int.from_bytes(head[4:8])
    return magic == BLANK_MAGIC or (magic != MAGIC and not any(head))
