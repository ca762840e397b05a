"""Prepares the commit log's next segment in advance (RocketMQ's AllocateMappedFileService).

A new segment must be on disk, with its name, before its messages are acknowledged: that takes two syncs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.durability.file_work import on_thread
from rocketmq_broker.store import MessageStore

logger = logging.getLogger(__name__)


class NextSegment:
    """Decides after each write. The log itself makes a segment that is late, or reports why it cannot."""

    def __init__(self, store: MessageStore, tasks: Tasks) -> None:
        self._store = store
        self._tasks = tasks
        self._from_position = 0
        self._is_under_way = False

    def look(self) -> None:
        """Has the next segment made on another thread if it is time."""
        if self._store.written_position < self._from_position or self._is_under_way:
            return
        prepared = self._store.next_segment.to_prepare()
        if prepared is None:
            self._from_position = self._store.next_segment.prepare_from
            return
        self._is_under_way = True
        self._tasks.start("the next commit log segment", self._make(*prepared))

    async def _make(self, start: int, make: Callable[[], None]) -> None:
        try:
            await on_thread(make)
            self._store.next_segment.adopt(start)
        except OSError as error:
            logger.warning("the next commit log segment could not be made ahead of time: %s", error)
            self._from_position = self._store.written_position + 1
        finally:
            self._is_under_way = False
        # The log may have grown much meanwhile.
        self.look()
