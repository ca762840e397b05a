"""The recovery of a consume queue from a crash or damage: its end is found, wrong units are cut off, lost ones are marked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from rocketmq_broker.store.queues.consume_queue import BLANK_SIZE, UNIT, ConsumeQueue, Unit
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE

_FILES_SEARCHED: Final = 3
"""Files at the end that are searched for the last unit (ConsumeQueue.recover)."""
_BLOCK_UNITS: Final = 3200
_SEARCH_BLOCK: Final = _BLOCK_UNITS * UNIT_SIZE


class RecoveredQueue(NamedTuple):
    """The result of a queue's recovery."""

    mended: list[str]
    """The messages for the operator."""
    was_cut: bool = False
    """Whether cut-off units must be found in the commit log again."""


def recover_queue(queue: ConsumeQueue, synced_offset: int | None) -> RecoveredQueue:
    """Finds the last unit of a queue whose files existed at the start. Raises DamagedStore, OSError.

    `synced_offset` is a max offset once known to be on disk; the search begins there, without it in the last files.
    """
    segments = queue.files.segments
    mended = segments.load(may_lack_files=True)
    cut = _cut_at_gap(queue)
    starts = segments.starts
    first = starts[max(len(starts) - _FILES_SEARCHED, 0)] if starts else 0
    if synced_offset is not None and segments.has(synced_offset * UNIT_SIZE) and _has_unit_before(queue, synced_offset):
        first = synced_offset * UNIT_SIZE
    queue.end_at(_find_end(queue, first))
    queue.min_offset = segments.min_offset // UNIT_SIZE
    return RecoveredQueue(mended + cut, bool(cut))


def fill_gap(queue: ConsumeQueue, queue_offset: int, commit_log_offset: int, size: int) -> int:
    """Points the offsets from the end to `queue_offset` at a damaged place in the log. Returns their number."""
    lost = range(queue.max_offset, queue_offset)
    for offset in lost:
        queue.put(offset, commit_log_offset, size, 0)
    return len(lost)


def cut_behind(queue: ConsumeQueue, commit_log_end: int) -> int:
    """Drops the units that point past the end of the commit log. Returns their number."""
    return cut_at(queue, queue.max_offset - _count_beyond(queue, commit_log_end))


def cut_at(queue: ConsumeQueue, queue_offset: int) -> int:
    """Drops the units at and after an offset. Returns their number. On disk on return."""
    dropped = queue.max_offset - queue_offset
    if dropped > 0:
        queue.write()
        queue.files.segments.truncate(queue_offset * UNIT_SIZE)
        queue.end_at(queue_offset)
    return dropped


def _count_beyond(queue: ConsumeQueue, commit_log_end: int) -> int:
    """Counts the last units that point past `commit_log_end`, backwards: one damaged unit must not mislead a search."""
    count = 0
    for unit in _backwards(queue):
        if unit.size == BLANK_SIZE or unit.commit_log_offset + unit.size <= commit_log_end:
            break
        count += 1
    return count


def _backwards(queue: ConsumeQueue) -> Iterator[Unit]:
    segments = queue.files.segments
    end, first = queue.max_offset, segments.min_offset // UNIT_SIZE
    while end > first:
        begin = max(segments.start_of((end - 1) * UNIT_SIZE) // UNIT_SIZE, end - _BLOCK_UNITS)
        yield from reversed(queue.units(begin, end - begin))
        end = begin


def _cut_at_gap(queue: ConsumeQueue) -> list[str]:
    """Cuts the queue after a missing file, or one that is not full: only the last file may be so, and the rest is rebuilt."""
    segments = queue.files.segments
    for start, following in pairwise(segments.starts):
        end = start + segments.segment_size
        if following != end or not _has_unit_before(queue, end // UNIT_SIZE):
            segments.truncate(following)
            return [f"consume queue {queue.topic.decode()}/{queue.queue_id} lacks units before offset {following // UNIT_SIZE}"]
    return []


def _find_end(queue: ConsumeQueue, first: int) -> int:
    """Returns the offset of the first place without a unit, at or after that position."""
    position = first
    while queue.files.segments.has(position):
        content = queue.files.segments.read(position, _SEARCH_BLOCK)
        for commit_log_offset, size, _ in UNIT.iter_unpack(content[: len(content) - len(content) % UNIT_SIZE]):
            if commit_log_offset < 0 or size <= 0:
                return position // UNIT_SIZE
            position += UNIT_SIZE
        if not content:
            break
    return position // UNIT_SIZE


def _has_unit_before(queue: ConsumeQueue, queue_offset: int) -> bool:
    before = queue.files.segments.read((queue_offset - 1) * UNIT_SIZE, UNIT_SIZE)
    return len(before) == UNIT_SIZE and UNIT.unpack(before)[1] > 0
