"""Deletes expired files, and logs deletions (RocketMQ's CleanCommitLogService and CleanConsumeQueueService).

Files are deleted on another thread, because deleting a gigabyte may be slow. Expired files are logged at INFO. Files deleted
early because the disk is full are logged at WARNING.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.server.durability.file_work import on_thread
from rocketmq_broker.store import Expired, FileSystem, MessageStore

logger = logging.getLogger(__name__)

_HOUR_MS: Final = 3_600_000
_SLICE_S: Final = 0.01
_NEEDED_FOR_FILE_RESERVED_TIMES: Final = 2
"""The maximum time, in multiples of fileReservedTime, for which the half message of a pending transaction is kept.

The transaction itself is discarded after one fileReservedTime.
"""

NeededFrom = Callable[[int], int | None]
"""A function that takes a time, and returns the lowest commit log offset needed by transactions begun after that time.

The time is in milliseconds since the epoch. Returns None if no transaction began after it.
"""


class StoreCleaner:
    """Deletes expired files every few seconds. Holds `file_lock` while it works on the store's files."""

    def __init__(
        self, store: MessageStore, file_lock: asyncio.Lock, *, needed_from: NeededFrom, clock: Callable[[], int]
    ) -> None:
        self._store = store
        self._file_lock = file_lock
        self._needed_from = needed_from
        self._clock = clock
        self._alarm = Alarm()
        self._is_requested = False
        self._undeleted: list[Path] = []
        self._last_error = ""
        self._refusal: str | None = None

    def request_cleaning(self) -> None:
        """Requests the deletion of expired files now, regardless of the hour. Called for an operator's request."""
        self._is_requested = True
        self._alarm.ring()

    async def run(self, interval_s: float) -> None:
        """Cleans immediately, and then at each interval."""
        while True:
            try:
                await self.clean()
                self._last_error = ""
            except OSError as error:
                if str(error) != self._last_error:
                    self._last_error = str(error)
                    logger.error("cannot delete expired files, retrying every %g s: %s", interval_s, error)
            await self._alarm.wait(interval_s)

    async def clean(self) -> None:
        """Removes expired data and deletes its files. Raises OSError if a file cannot be deleted.

        The next call retries the remaining files.
        """
        async with self._file_lock:
            expired = self._expire()
            if expired.paths:
                messages = await self._trim()
                self._log_deleted(expired, messages)
            if self._undeleted:
                await on_thread(partial(_delete, self._store.files, self._undeleted))

    def _expire(self) -> Expired:
        now_ms = self._clock()
        kept_ms = self._store.config.file_reserved_hours * _HOUR_MS * _NEEDED_FOR_FILE_RESERVED_TIMES
        at_any_hour, self._is_requested = self._is_requested, False
        expired = self._store.expiry.expire(now_ms, self._needed_from(now_ms - kept_ms), at_any_hour=at_any_hour)
        self._undeleted += expired.paths
        self._log_refusal()
        return expired

    async def _trim(self) -> int:
        """Trims each queue, and returns the number of removed messages.

        Pauses regularly, so that thousands of queues do not block the event loop.
        """
        messages = 0
        now_s = asyncio.get_running_loop().time
        slice_end_s = now_s() + _SLICE_S
        for trimmed in self._store.expiry.trim():
            self._undeleted += trimmed.paths
            messages += trimmed.messages
            if now_s() > slice_end_s:
                await asyncio.sleep(0)
                slice_end_s = now_s() + _SLICE_S
        return messages

    def _log_deleted(self, expired: Expired, messages: int) -> None:
        names = _names(expired.paths)
        config = self._store.config
        if expired.unexpired:
            age_min = max(self._clock() - expired.youngest_ms, 0) / 60_000
            logger.warning(
                "deleting %d messages in %d commit log segments (%s), %d of them before they expired: the disk is %.4g%% full "
                "and cleanFileForciblyEnable=true. The youngest message was stored %.4g min ago",
                messages, len(expired.paths), names, expired.unexpired, self._store.expiry.disk_used_ratio() * 100, age_min,
            )  # fmt: skip
        else:
            logger.info(
                "deleting %d expired messages in %d commit log segments (fileReservedTime=%d): %s",
                messages, len(expired.paths), config.file_reserved_hours, names,
            )  # fmt: skip

    def _log_refusal(self) -> None:
        refusal, before = self._store.writability.refusal, self._refusal
        if refusal is not None and before is None:
            logger.warning("messages are refused: %s", refusal)
        elif refusal is None and before is not None:
            logger.warning("messages are accepted again; the disk is %.4g%% full", self._store.expiry.disk_used_ratio() * 100)
        self._refusal = refusal


def _delete(files: FileSystem, paths: list[Path]) -> None:
    """Deletes files in order. Stops at the first failure, because a gap in the commit log would look like damage."""
    while paths:
        with suppress(FileNotFoundError):
            files.unlink(paths[0])
        del paths[0]


def _names(paths: Sequence[Path]) -> str:
    return paths[0].name if len(paths) == 1 else f"{paths[0].name} to {paths[-1].name}"
