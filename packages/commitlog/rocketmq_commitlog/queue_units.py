"""Reads consume queue units, which prove where records start and where the commit log ends.

    COMMITLOGOFFSET 8 | SIZE 4 | TAGSCODE 8        consumequeue/TOPIC/QUEUEID/, one unit for each queue offset

A client can put complete records with the right magic code, checksum and commit log offset into a message body. Only the broker
writes consume queue units, so a record starts at every position to which a unit points.
"""

import json
import os
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rocketmq_broker.platform.files import read_at

_UNIT: Final = struct.Struct(">qiq")
_BLANK_SIZE: Final = 0x7FFFFFFF
"""The value of the size field in a unit that has no message."""
_FILE_NAME: Final = re.compile(r"[0-9]{20}")
_MAX_QUEUES: Final = 1_000
"""The maximum number of queues that are read to find the end of the log. The most recently written queues are read first."""

_MAX_QUEUE_OFFSET: Final = (1 << 62) // _UNIT.size
"""The maximum valid queue offset. Damaged bytes may contain a larger offset, which could exceed the maximum file position."""

Files = list[tuple[int, Path]]
"""The files of a queue in order, each with the position in the queue of its first byte."""


class QueueUnits:
    """The consume queues of one store. Each queue's files are listed when the queue is first used."""

    def __init__(self, store: Path) -> None:
        """Creates an object for the store directory `store`. Missing or unreadable queues count as queues without units."""
        self._root = store / "consumequeue"
        self._topics: dict[bytes, Path] | None = None
        self._queues: dict[tuple[bytes, int], Files] = {}

    @property
    def are_missing(self) -> bool:
        """Returns True if the store has no consume queues. In that case no record can be verified by a unit."""
        return not self._root.is_dir()

    def point_to(self, commit_log_offset: int, size: int, topic: bytes, queue_id: int, queue_offset: int) -> bool:
        """Returns True if the queue's unit at `queue_offset` points to a record of this size at this commit log offset."""
        if not 0 <= queue_offset <= _MAX_QUEUE_OFFSET:
            return False
        position = queue_offset * _UNIT.size
        files = self._files(topic, queue_id)
        place = bisect_right(files, position, key=lambda file: file[0]) - 1
        if place < 0:
            return False
        begins, path = files[place]
        unit = _read(path, position - begins)
        return unit is not None and unit[:2] == (commit_log_offset, size)

    def _files(self, topic: bytes, queue_id: int) -> Files:
        if self._topics is None:
            # Topics are read from untrusted bytes, so a path is built only from the name of an existing folder.
            self._topics = {os.fsencode(path.name): path for path in _folders(self._root)}
        if topic not in self._topics:
            return []
        if (topic, queue_id) not in self._queues:
            self._queues[topic, queue_id] = _files_of(self._topics[topic] / str(queue_id))
        return self._queues[topic, queue_id]


def known_end(store: Path) -> int:
    """Returns the commit log offset up to which the log exists according to the broker's other files, or 0 if unknown.

    Call this function before reading the log, because the log may grow afterwards. The result may be a few seconds old.
    """
    last_files = []
    for topic in _folders(store / "consumequeue"):
        for queue in _folders(topic):
            if files := _files_of(queue):
                last_files.append((_changed_ns(files[-1][1]), files))
    last_files.sort(key=lambda file: file[0], reverse=True)
    ends = [_last_unit(files)[0] for _, files in last_files[:_MAX_QUEUES]]
    return max([0, _saved_progress(store), *ends])


def queue_ends(store: Path, topic: str) -> dict[int, int] | None:
    """Returns the next queue offset of each queue of a topic. Returns None if the store has no consume queues of the topic."""
    folder = next((path for path in _folders(store / "consumequeue") if path.name == topic), None)
    if folder is None:
        return None
    queues = {int(queue.name): _files_of(queue) for queue in _folders(folder) if queue.name.isdecimal()}
    return {queue_id: _last_unit(files)[1] for queue_id, files in queues.items()}


def _last_unit(files: Files) -> tuple[int, int]:
    """Returns the commit log offset after the last unit's record, and the next queue offset.

    Returns (0, 0) if the last two files have no unit with a record.
    """
    for begins, path in reversed(files[-2:]):
        low, high = 0, _size_of(path) // _UNIT.size
        while low < high:
            middle = (low + high) // 2
            unit = _read(path, middle * _UNIT.size)
            low, high = (middle + 1, high) if unit is not None and unit[1] > 0 else (low, middle)
        unit = _read(path, (low - 1) * _UNIT.size) if low else None
        if unit is not None and 0 < unit[1] < _BLANK_SIZE:
            return unit[0] + unit[1], begins // _UNIT.size + low
    return 0, 0


def _saved_progress(store: Path) -> int:
    """Returns the commit log offset before which all records are on disk, or 0 if it is unknown.

    The offset is in progress.json, which rocketmq_broker writes. Apache's broker does not write this file.
    """
    try:
        position = json.loads((store / "progress.json").read_bytes())["position"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return 0
    return position if isinstance(position, int) else 0


def _folders(parent: Path) -> Iterator[Path]:
    try:
        yield from (path for path in parent.iterdir() if path.is_dir())
    except OSError:
        return


def _files_of(queue: Path) -> Files:
    try:
        found = [path for path in queue.iterdir() if _FILE_NAME.fullmatch(path.name) and path.is_file()]
    except OSError:
        return []
    return sorted((int(path.name), path) for path in found)


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(path: Path, position: int) -> tuple[int, int, int] | None:
    try:
        with path.open("rb") as file:
            content = read_at(file.fileno(), _UNIT.size, position)
    except OSError:
        return None
    return _UNIT.unpack(content) if len(content) == _UNIT.size else None
