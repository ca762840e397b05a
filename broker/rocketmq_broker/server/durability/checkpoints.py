"""Syncs consume queues and the index to disk every few seconds, to shorten the next recovery.

The commit log contains the same data, so nothing waits for a checkpoint. A failed checkpoint is retried.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from rocketmq_broker.server.durability.file_work import on_thread
from rocketmq_broker.store import ROUNDS, FileSystem, MessageStore, StoreUnwritable, Unsynced

logger = logging.getLogger(__name__)

_SLICE_S: Final = 0.01


class Checkpoints:
    """Syncs the consume queues and the index to disk on another thread, while holding `file_lock`."""

    def __init__(self, store: MessageStore, file_lock: asyncio.Lock, interval_s: float) -> None:
        self._store = store
        self._file_lock = file_lock
        self._interval_s = interval_s
        self._has_reported_distrust = False

    async def run(self) -> None:
        """Writes a checkpoint at each interval, until it is cancelled."""
        if self._store.recovery.was_stopped_cleanly:
            await asyncio.sleep(self._interval_s)
        # Write a checkpoint immediately after a crash. The work of recovery must not grow if the broker crashes repeatedly.
        while True:
            try:
                await self.write()
            except (OSError, StoreUnwritable) as error:
                logger.error("checkpoint failed, retrying in %g s: %s", self._interval_s, error)
            if self._store.checkpoints.is_distrusted and not self._has_reported_distrust:
                self._has_reported_distrust = True
                logger.error(
                    "cannot sync the consume queues or the index to the disk: no checkpoint is saved until the broker restarts. "
                    "No message is lost: the restart rebuilds queues and index from the commit log"
                )
            await asyncio.sleep(self._interval_s)

    async def write(self) -> None:
        """Syncs all published entries, so that a recovery does not have to rebuild them.

        Raises OSError, StoreUnwritable.
        """
        for _ in range(ROUNDS):
            async with self._file_lock:
                await self._write_once()

    async def _write_once(self) -> None:
        rounds = self._store.checkpoints
        mark = rounds.begin()
        now_s = asyncio.get_running_loop().time
        slice_end_s = now_s() + _SLICE_S
        for _ in rounds.write_queues():
            if now_s() > slice_end_s:
                await asyncio.sleep(0)
                slice_end_s = now_s() + _SLICE_S
        files, queues = self._store.files, rounds.unsynced_queues()
        try:
            await on_thread(partial(_sync, files, queues))
            # The index accepts no entries during its sync, so it is synced separately from the queues, which may take longer.
            await on_thread(partial(_sync, files, rounds.write_index()))
        except _SyncRefused:
            rounds.distrust()
            raise
        if save := rounds.finish(mark, queues):
            await on_thread(save)


class _SyncRefused(OSError):
    """Raised if the disk fails to sync a file."""


def _sync(files: FileSystem, unsynced: Unsynced) -> None:
    # A missing file has expired, or its topic was deleted.
    for path in unsynced.files:
        with suppress(FileNotFoundError):
            _sync_file(files, path)
    for path in unsynced.directories:
        with suppress(FileNotFoundError):
            files.sync_directory(path)


def _sync_file(files: FileSystem, path: Path) -> None:
    file = files.open(path)
    try:
        files.sync(file)
    except OSError as error:
        raise _SyncRefused(*error.args) from None
    finally:
        files.close(file)
