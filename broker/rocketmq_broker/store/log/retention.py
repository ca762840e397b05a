"""Chooses the commit log segments to delete (RocketMQ's CleanCommitLogService)."""

import time
from dataclasses import dataclass

from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.settings import StoreConfig

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_MAX_DAY_MS = 26 * _HOUR_MS
_BATCH = 10
"""The maximum number of segments deleted at a time, as in RocketMQ. It keeps each deletion short."""


@dataclass(frozen=True, slots=True)
class Removal:
    """The segments to delete now: those that end at or before the commit log offset `end`.

    `unexpired` is the number of these segments that have not expired yet.
    """

    end: int
    unexpired: int = 0
    youngest_ms: int = 0
    """The time at which the youngest of the unexpired segments was completed, in milliseconds since the epoch."""


def removable(
    log: CommitLog,
    config: StoreConfig,
    now_ms: int,
    used_ratio: float,
    needed_from: int | None = None,
    *,
    at_any_hour: bool = False,
) -> Removal:
    """Returns the segments to delete, without deleting them. Raises OSError.

    Expired segments are chosen at the configured hours, or at any hour while the disk fills up. Unexpired segments are chosen
    only if cleanFileForciblyEnable is set and the disk is nearly full. The last segment, the segment that contains
    `needed_from`, and later segments are never chosen.
    """
    is_filling = used_ratio > config.disk_max_used_ratio
    if not (is_filling or at_any_hour) and not _is_time_to_delete(config.delete_when, now_ms):
        return Removal(log.min_offset)
    is_forced = config.is_clean_forcible and used_ratio > config.disk_clean_ratio
    expired_before_ms = now_ms - config.file_reserved_hours * _HOUR_MS
    end, unexpired, youngest_ms = log.min_offset, 0, 0
    for start in log.segments.starts[:_BATCH]:
        following = start + log.segments.segment_size
        if following > _keep_from(log, needed_from):
            break
        stored_ms = log.store_timestamp(following)
        if -1 < stored_ms < expired_before_ms:
            end = following
        elif is_forced:
            end, unexpired, youngest_ms = following, unexpired + 1, max(youngest_ms, stored_ms)
        elif 0 <= stored_ms <= now_ms:
            break
        # Otherwise the record there is damaged or has a time in the future, and the times of later segments decide.
    return Removal(end, unexpired, youngest_ms)


def next_removal_ms(log: CommitLog, config: StoreConfig, now_ms: int, used_ratio: float) -> int | None:
    """Returns the earliest time at which `removable` may choose a segment, in milliseconds since the epoch.

    Returns None if no segment can be chosen. The time is valid until a message is stored or the disk usage changes.
    Raises OSError.
    """
    following = [start + log.segments.segment_size for start in log.segments.starts[:_BATCH]]
    following = [position for position in following if position <= _keep_from(log, None)]
    if not following:
        return None
    if used_ratio > config.disk_max_used_ratio:
        return now_ms
    stored_ms = min(log.store_timestamp(position) for position in following)
    expired_ms = max(now_ms, stored_ms + config.file_reserved_hours * _HOUR_MS)
    to_be_deleted_ms = expired_ms
    while not _is_time_to_delete(config.delete_when, to_be_deleted_ms):
        to_be_deleted_ms += _MINUTE_MS - to_be_deleted_ms % _MINUTE_MS
        if to_be_deleted_ms > expired_ms + _MAX_DAY_MS:
            return None  # deleteWhen contains no hour
    return to_be_deleted_ms


def _keep_from(log: CommitLog, needed_from: int | None) -> int:
    position = log.written_position if needed_from is None else min(log.written_position, needed_from)
    return log.segments.start_of(position)


def _is_time_to_delete(delete_when: str, now_ms: int) -> bool:
    """Returns whether the current hour, in local time, is one of `delete_when` (UtilAll.isItTimeToDo)."""
    hour = time.localtime(now_ms // 1000).tm_hour
    return any(part.strip().isdigit() and int(part) == hour for part in delete_when.split(";"))
