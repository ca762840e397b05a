"""The consumer offsets of a group: at the brokers, or for broadcasting in a file of this machine (RocketMQ's OffsetStore)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.pull.queue_requests import QueueRequests
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.body import Body
from rocketmq_broker.protocol.errors import BodyError
from rocketmq_broker.protocol.queue_table import QueueTable

logger = logging.getLogger(__name__)


TOLD_AGAIN_S = 30.0
"""How long a broker hears nothing of an offset that does not change. It may have lost what it heard."""


class OffsetStore(Protocol):
    """Offsets in memory, and their storage."""

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Keeps the offset in memory; `persist` stores it."""

    def forget(self, queue: MessageQueue) -> None:
        """Drops the offset of a queue that another consumer has now."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Returns the stored offset, None without one. Raises ClientError if it cannot be read."""

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Stores the offsets of these queues. `confirmed` waits for the answer. Only logs a failure: the next call repeats it."""


class BrokerOffsetStore:
    """Offsets that the group shares, stored by each queue's broker (RocketMQ's RemoteBrokerOffsetStore)."""

    def __init__(self, group: str, requests: QueueRequests) -> None:
        """`requests` reaches the brokers."""
        self._group = group
        self._requests = requests
        self._offsets: dict[MessageQueue, int] = {}
        self._told: dict[MessageQueue, tuple[int, float]] = {}
        """The offset of each queue that its broker was told last, and the event loop's time."""
        self._held: dict[MessageQueue, int] = {}
        """The offset that each queue's broker holds by its own word, as long as this member makes no progress."""

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Keeps the offset in memory."""
        self._offsets[queue] = offset
        if self._held.get(queue) != offset:
            self._held.pop(queue, None)

    def forget(self, queue: MessageQueue) -> None:
        """Drops the offset of a queue that another member has now."""
        self._offsets.pop(queue, None)
        self._told.pop(queue, None)
        self._held.pop(queue, None)

    async def read(self, queue: MessageQueue) -> int | None:
        """Returns the broker's offset. Unlike Apache's client, it never takes an error for 'none': that would skip messages."""
        offset = await self._requests.committed_offset(self._group, queue)
        if offset is None or offset < 0:
            return None
        self._confirmed(queue, offset)
        return offset

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Sends the offsets to the brokers: one-way those that are new, or were sent 30 s ago; if `confirmed`, with an answer.

        A confirmed call leaves out what the broker holds by its own word. A member that made no progress thus never takes back
        the progress of the next owner, which may have begun before this one heard of it.
        """
        offsets = {queue: self._offsets[queue] for queue in queues if queue in self._offsets}
        if not confirmed:
            now_s = asyncio.get_running_loop().time()
            news = [(queue, offset) for queue, offset in offsets.items() if self._is_news(queue, offset, now_s)]
            await asyncio.gather(*(self._tell(queue, offset, now_s) for queue, offset in news))
            return
        unknown_there = {queue: offset for queue, offset in offsets.items() if self._held.get(queue) != offset}
        try:
            await self._requests.commit_offsets(self._group, unknown_there)
        except ClientError as error:
            logger.debug("not all offsets of %s were sent: %s", self._group, error)
        else:
            for queue, offset in unknown_there.items():
                if self._offsets.get(queue) == offset:
                    self._confirmed(queue, offset)

    def _confirmed(self, queue: MessageQueue, offset: int) -> None:
        self._held[queue] = offset
        self._told[queue] = offset, asyncio.get_running_loop().time()

    def _is_news(self, queue: MessageQueue, offset: int, now_s: float) -> bool:
        told = self._told.get(queue)
        return told is None or told[0] != offset or now_s - told[1] >= TOLD_AGAIN_S

    async def _tell(self, queue: MessageQueue, offset: int, now_s: float) -> None:
        try:
            await self._requests.commit_offset_oneway(self._group, queue, offset)
            self._told[queue] = offset, now_s
        except ClientError as error:
            logger.debug("offset %d of %s was not sent: %s", offset, queue, error)


class OffsetSerializeWrapper(Body):
    """The file of a broadcasting consumer, in the form of Apache's client."""

    lenient_limit = None
    offset_table: QueueTable[int] = msgspec.field(default_factory=QueueTable)


class LocalFileOffsetStore:
    """Offsets of one broadcasting consumer, in `directory/offsets.json` (RocketMQ's LocalFileOffsetStore)."""

    def __init__(self, directory: Path) -> None:
        """Reads the file. If it is unreadable, it reads the previous one (.bak) instead, with a warning."""
        self._path = directory / "offsets.json"
        self._backup = directory / "offsets.json.bak"
        self._kept = self._load(self._path) or self._load(self._backup) or {}
        self._offsets = dict(self._kept)

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Keeps the offset in memory."""
        self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """Does nothing: no other consumer gets the queue."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Returns the stored offset."""
        return self._offsets.get(queue)

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Writes the file if an offset changed. The file is on disk on return."""
        if self._offsets == self._kept:
            return
        offsets = dict(self._offsets)
        try:
            await asyncio.to_thread(self._write, offsets)
            self._kept = offsets
        except OSError as error:
            logger.warning("offsets of the broadcasting consumer were not written: %s", error)

    def _write(self, offsets: dict[MessageQueue, int]) -> None:
        content = OffsetSerializeWrapper(offset_table=QueueTable(sorted(offsets.items()))).encode()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        written = self._path.with_suffix(".tmp")
        with written.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if self._path.exists():
            self._path.replace(self._backup)
        written.replace(self._path)

    @staticmethod
    def _load(path: Path) -> dict[MessageQueue, int] | None:
        try:
            return dict(OffsetSerializeWrapper.decode(path.read_bytes()).offset_table)
        except FileNotFoundError:
            return None
        except (OSError, BodyError) as error:
            logger.warning("offsets in %s cannot be read: %s", path, error)
            return None
