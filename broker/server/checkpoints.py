"""Brings consume queues and index to the disk every few seconds, so that the next recovery has little to do.

The log has all of it: nothing waits for a checkpoint, and one that fails is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from broker.store import MessageStore, StoreUnwritable

logger = logging.getLogger(__name__)


class Checkpoints:
    """The files are synced on another thread, by whoever holds `file_lock`."""

    def __init__(self, store: MessageStore, file_lock: asyncio.Lock, interval_s: float) -> None:
        self._store = store
        self._file_lock = file_lock
        self._interval_s = interval_s

    async def run(self) -> None:
        """Writes one after another, for ever."""
        if self._store.recovery.was_stopped_cleanly:
            await asyncio.sleep(self._interval_s)
        # After a crash at once: a broker that crashes again and again must not recover more each time.
        while True:
            try:
                await self.write()
            except (OSError, StoreUnwritable) as error:
                logger.error("no checkpoint was written; it is tried again in %g s: %s", self._interval_s, error)
            await asyncio.sleep(self._interval_s)

    async def write(self) -> None:
        """Spares the next recovery all that is published by now. Raises OSError, StoreUnwritable."""
        for _ in range(self._store.CHECKPOINT_ROUNDS):
            async with self._file_lock:
                mark = self._store.begin_checkpoint()
                await asyncio.to_thread(_sync, mark.paths)
                self._store.finish_checkpoint(mark)


def _sync(paths: Sequence[Path]) -> None:
    for path in paths:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            # Its topic was deleted, or it expired.
            continue
        try:
            os.fdatasync(file)
        finally:
            os.close(file)
