"""A block of the commit log kept in memory: consumers of several queues read the same bytes in turn.

The queues of a topic take turns in the log. So a pull of one queue reads the records of the others along, and their pulls find
them here. What is kept is the files' bytes, and nobody believes them: each record is checked when it leaves.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from rocketmq_broker.store.log.segments import Segments

_MOST_KEPT: Final = 512 << 10
"""Bytes of the block: all that it takes of the memory."""
_TIMES_AHEAD: Final = 4
"""How many times the bytes asked for are read where reading goes on in the block or at its end."""


class LogBlock:
    """Reads runs of bytes that lie in one segment."""

    def __init__(self, segments: Segments) -> None:
        """Begins without a block."""
        self._segments = segments
        self._block = b""
        self._begin = 0

    def read(self, position: int, length: int, written: int) -> tuple[bytes, int]:
        """Returns bytes that have those asked for, as far as the file has them, and the position of the first byte returned.

        Nothing at or behind the position `written` is read ahead or kept: it may still change. Raises OSError.
        """
        segments, block, begin = self._segments, self._block, self._begin
        offset = position - begin
        if not segments.has(position):
            return b"", position
        if 0 <= offset <= len(block):
            if offset + length <= len(block):
                return block, begin
            ahead = min(max(length, min(_TIMES_AHEAD * length, _MOST_KEPT)), written - position)
        else:
            ahead = 0
        data = b""
        if ahead > length:
            # A disk that cannot read what lies behind must not fail this read.
            with suppress(OSError):
                data = segments.read(position, ahead)
        if len(data) < length:
            data = segments.read(position, length)
        if 0 < len(data) <= _MOST_KEPT and position + len(data) <= written:
            self._block, self._begin = data, position
        return data, position

    def forget(self) -> None:
        """Drops the block: what the files hold has changed."""
        self._block, self._begin = b"", 0
