"""Counts the records of a commit log."""

import struct
from mmap import mmap
from typing import Final

_SIZE: Final = struct.Struct(">i")


def count_records(commit_log: bytes | mmap) -> int:
    """How many records a commit log of one segment has: each begins with its size."""
    count = position = 0
    while position + _SIZE.size <= len(commit_log):
        (size,) = _SIZE.unpack_from(commit_log, position)
        if size <= 0:
            break
        count, position = count + 1, position + size
    return count
