"""Stage 5: a consume queue holds the positions of one queue's messages, in a unit of 20 bytes for each message:

COMMIT LOG OFFSET 8 | SIZE 4 | HASH OF THE TAG 8
"""

import struct
from dataclasses import dataclass
from pathlib import Path

from tutorials.build_your_own.solution.commit_log import FILE_NAME

FILE_SIZE = 300_000 * 20
"""The length of RocketMQ's consume queue files in bytes (mappedFileSizeConsumeQueue). Zeros follow the last unit."""
_UNIT = struct.Struct(">qiq")


@dataclass(frozen=True, slots=True)
class Unit:
    """The position of one message in the commit log, and the hash of its tag. A pull uses the hash to skip messages."""

    commit_log_offset: int
    size: int
    tags_code: int


class ConsumeQueue:
    """The units of one queue in order of queue offset, in memory and in a file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Each start rebuilds the queue from the commit log, so the queue's file may be missing or damaged.
        self._file = (folder / FILE_NAME).open("wb", buffering=0)
        self._file.truncate(FILE_SIZE)
        self.units: list[Unit] = []

    def append(self, unit: Unit) -> None:
        """Adds the unit of the next queue offset."""
        self.units.append(unit)
        self._file.write(encode(unit))


def encode(unit: Unit) -> bytes:
    """Returns the 20 bytes of a unit."""
    return _UNIT.pack(unit.commit_log_offset, unit.size, unit.tags_code)


def tags_code(tag: str) -> int:
    """Returns the hash of a tag, which is Java's String.hashCode. Returns 0 without a tag.

    The hash is h = 31 * h + c for each character c, in signed 32-bit arithmetic.
    """
    code = 0
    utf_16 = tag.encode("utf-16-be")
    for high, low in zip(utf_16[::2], utf_16[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code - 0x100000000 if code >= 0x80000000 else code
