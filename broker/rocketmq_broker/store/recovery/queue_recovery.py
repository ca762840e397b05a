"""Recovers a consume queue after a crash or damage: finds its end, drops wrong units, and marks lost messages."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from rocketmq_broker.store.queues.consume_queue import BLANK_SIZE, UNIT, ConsumeQueue, Unit
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE

_FILES_SEARCHED: Final = 3
"""The number of files, counted from the end, that are searched for the last unit (ConsumeQueue.recover)."""
_BLOCK_UNITS: Final = 3200
_SEARCH_BLOCK: Final = _BLOCK_UNITS * UNIT_SIZE


class RecoveredQueue(NamedTuple):
    """The result of a queue's recovery."""

    repaired: list[str]
    """A description of each repair, for the operator."""
    was_cut: bool = False
    """Whether units were dropped and must be rebuilt from the commit log."""


def recover_queue(queue: ConsumeQueue, synced_offset: int | None) -> RecoveredQueue:
    """Loads a queue's files and finds its last unit. Raises DamagedStore or OSError.

    `synced_offset` is the queue's max offset when it was last known to be durable. The search begins at this offset, or in the
    last files if `synced_offset` is None.
    """
    segments = queue.files.segments
    repaired = segments.load(may_lack_files=True)
    cut = _cut_at_gap(queue)
    starts = segments.starts
    first = starts[max(len(starts) - _FILES_SEARCHED, 0)] if starts else 0
    if synced_offset is not None and segments.has(synced_offset * UNIT_SIZE) and _has_unit_before(queue, synced_offset):
        first = synced_offset * UNIT_SIZE
    queue.end_at(_find_end(queue, first))
    queue.min_offset = segments.min_offset // UNIT_SIZE
    return RecoveredQueue(repaired + cut, bool(cut))


def fill_gap(queue: ConsumeQueue, queue_offset: int, commit_log_offset: int, size: int) -> int:
    """Adds units that point to a damaged stretch of the log, for lost messages up to `queue_offset`. Returns their number."""
    lost = range(queue.max_offset, queue_offset)
    for offset in lost:
        queue.put(offset, commit_log_offset, size, 0)
    return len(lost)


def cut_after(queue: ConsumeQueue, commit_log_end: int) -> int:
    """Drops the units at the queue's end that point past the end of the commit log. Returns their number."""
    return cut_at(queue, queue.max_offset - _count_beyond(queue, commit_log_end))


def cut_at(queue: ConsumeQueue, queue_offset: int) -> int:
    """Drops the units at and after an offset, and returns their number. The change is durable on return."""
    dropped = queue.max_offset - queue_offset
    if dropped > 0:
        queue.write()
        queue.files.segments.truncate(queue_offset * UNIT_SIZE)
        queue.end_at(queue_offset)
    return dropped


def _count_beyond(queue: ConsumeQueue, commit_log_end: int) -> int:
    """Counts the units at the queue's end that point past `commit_log_end`.

    Counts backwards, because a damaged unit could mislead a binary search.
    """
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
    """Truncates the queue at a gap, which is a missing file or a file that is not full. The units after the gap are rebuilt."""
    segments = queue.files.segments
    for start, following in pairwise(segments.starts):
        end = start + segments.segment_size
        if following != end or not _has_unit_before(queue, end // UNIT_SIZE):
            segments.truncate(following)
            name = f"{queue.topic.decode()}/{queue.queue_id}"
            return [f"consume queue {name} is missing units before offset {following // UNIT_SIZE}"]
    return []


def _find_end(queue: ConsumeQueue, first: int) -> int:
    """Returns the first queue offset without a unit. Begins at the file position `first`, which is in bytes."""
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
