"""Deletes the queues of a topic beside the event loop: there may be thousands, each with its own folder."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rocketmq_broker.server.durability.checkpoints import Checkpoints
from rocketmq_broker.server.durability.file_work import on_thread
from rocketmq_broker.store import ConsumerOffsets, FileSystem, MessageStore


class TopicDeletion:
    """Deletes queues. The caller has removed the topic's settings before."""

    def __init__(self, store: MessageStore, offsets: ConsumerOffsets, file_lock: asyncio.Lock, checkpoints: Checkpoints) -> None:
        self._store = store
        self._offsets = offsets
        self._file_lock = file_lock
        self._checkpoints = checkpoints

    async def delete(self, topic: bytes) -> None:
        """Deletes the topic's queues and their consumers' offsets for good. Raises OSError, StoreUnwritable.

        A message sent meanwhile is deleted with the topic, or is the first of a new one.
        """
        async with self._file_lock:
            paths = self._store.forget_topic(topic)
            self._offsets.remove_topic(topic.decode())
            await on_thread(partial(_remove, self._store.files, paths))
        # Recovery must not begin before this, or it would restore the queues.
        await self._checkpoints.write()


def _remove(files: FileSystem, paths: Sequence[Path]) -> None:
    for path in paths:
        try:
            if files.is_directory(path):
                files.remove_directory(path)
            else:
                files.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # the folder holds a foreign file
                raise
