"""Which commit log segments may go (RocketMQ's CleanCommitLogService)."""

from __future__ import annotations

import time

from broker.store.commit_log import CommitLog
from broker.store.settings import StoreConfig

_BATCH = 10
"""At most so many segments at a time, as RocketMQ does, so that nobody waits long."""


def delete_expired(log: CommitLog, config: StoreConfig, now_ms: int, used_ratio: float) -> list[str]:
    """Deletes expired segments at the hours set, or at once when the disk fills; unexpired ones too when it is nearly full.

    The last segment stays. Answers what was deleted. Raises OSError.
    """
    if used_ratio <= config.disk_max_used_ratio and not _is_time_to_delete(config.delete_when, now_ms):
        return []
    is_forced = used_ratio > config.disk_clean_ratio
    expired_before_ms = now_ms - config.file_reserved_hours * 3_600_000
    keep_from = log.segments.start_of(log.written_position)
    end = log.min_offset
    for start in log.segments.starts[:_BATCH]:
        following = start + log.segments.segment_size
        if following > keep_from:
            break
        stored_ms = log.store_timestamp(following)
        if is_forced or -1 < stored_ms < expired_before_ms:
            end = following
        elif 0 <= stored_ms <= now_ms:
            break
        # Else the first record there is damaged: the segments after it tell.
    return [f"commit log segment {name}" for name in log.segments.delete_before(end)]


def _is_time_to_delete(delete_when: str, now_ms: int) -> bool:
    """Whether it is one of the hours named, local time (UtilAll.isItTimeToDo)."""
    hour = time.localtime(now_ms // 1000).tm_hour
    return any(part.strip().isdigit() and int(part) == hour for part in delete_when.split(";"))
