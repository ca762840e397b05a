"""Reads a commit log whose segments are in memory, without consume queues.

All bytes that look like an intact record are accepted. Use this module only if all clients of the broker are trusted, as in a
simulation.
"""

from collections.abc import Iterator, Mapping

from rocketmq_broker.message.record import BLANK_MAGIC, SIZE_AND_MAGIC
from rocketmq_commitlog.commit_log import Damage, LogRecord, next_record, record_at


def scan_bytes(segments: Mapping[int, bytes]) -> Iterator[LogRecord | Damage]:
    """Yields the records of all segments in order, and the damaged and missing stretches between them.

    `segments` maps the commit log offset of each segment's first byte to the bytes of the segment. Bytes after the last record
    are not damage.
    """
    offsets = sorted(segments)
    while len(offsets) > 1 and not segments[offsets[-1]].strip(b"\0"):
        offsets.pop()
    for place, offset in enumerate(offsets):
        following = offsets[place + 1] if place + 1 < len(offsets) else None
        yield from _scan_segment(segments[offset], offset, following)


def _scan_segment(data: bytes, offset: int, following: int | None) -> Iterator[LogRecord | Damage]:
    position = 0
    while True:
        record = record_at(data, offset, position)
        if record is not None:
            yield record
            position += record.size
            continue
        begins = None if _unused_at(data, position) else next_record(data, offset, position + 1, len(data), None)
        if begins is None:
            break
        yield Damage(offset + position, begins - position)
        position = begins
    ends = offset + position + _unused_at(data, position)
    if following is not None and ends < following:
        yield Damage(ends, following - ends, is_gap=True)


def _unused_at(data: bytes, position: int) -> int:
    """Returns the number of unused bytes from `position` to the segment's end, or 0 if the bytes may be in use.

    Bytes are unused if they are marked as unused or are too few for such a mark.
    """
    left = len(data) - position
    if left < SIZE_AND_MAGIC.size:
        return left
    size, magic = SIZE_AND_MAGIC.unpack_from(data, position)
    return int(size) if magic == BLANK_MAGIC else 0
