"""Deletes the queues of a topic on another thread. A topic may have thousands of queues, each with its own directory."""

import asyncio
import errno
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rocketmq_broker.server.durability.checkpoints import Checkpoints
from rocketmq_broker.server.durability.file_work import on_thread
from rocketmq_broker.store import ConsumerOffsets, FileSystem, MessageStore


class TopicDeletion:
    """Deletes a topic's queues and consumer offsets. The caller must remove the topic's settings first."""

    def __init__(self, store: MessageStore, offsets: ConsumerOffsets, file_lock: asyncio.Lock, checkpoints: Checkpoints) -> None:
        self._store = store
        self._offsets = offsets
        self._file_lock = file_lock
        self._checkpoints = checkpoints

    async def delete(self, topic: bytes) -> None:
        """Deletes the topic's queues and consumer offsets permanently. Raises OSError, StoreUnwritable.

        A message that is sent during the deletion is deleted too, or becomes the first message of a new topic with this
        name.
        """
        async with self._file_lock:
            paths = self._store.forget_topic(topic)
            self._offsets.remove_topic(topic.decode())
            await on_thread(partial(_remove, self._store.files, paths))
        # Write a checkpoint, or a recovery after a crash would restore the queues.
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
            if error.errno != errno.ENOTEMPTY:  # the directory contains a foreign file
                raise
