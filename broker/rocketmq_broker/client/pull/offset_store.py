"""How far a group has consumed: kept by the brokers, or for broadcasting in a file of this machine (RocketMQ's OffsetStore)."""

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


class OffsetStore(Protocol):
    """Offsets in memory, and where they are kept."""

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Remember it; `persist` keeps it."""

    def forget(self, queue: MessageQueue) -> None:
        """The queue belongs to somebody else now."""

    async def read(self, queue: MessageQueue) -> int | None:
        """What is kept, None if nothing is. Raises ClientError if that cannot be found out."""

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Keep what is remembered of these queues. `confirmed` waits for the answer. A failure is logged: the next turn heals."""


class BrokerOffsetStore:
    """Offsets that the group shares, kept by each queue's broker (RocketMQ's RemoteBrokerOffsetStore)."""

    def __init__(self, group: str, requests: QueueRequests) -> None:
        """`requests` reaches the brokers."""
        self._group = group
        self._requests = requests
        self._offsets: dict[MessageQueue, int] = {}

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Remember it."""
        self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """The queue belongs to another member now."""
        self._offsets.pop(queue, None)

    async def read(self, queue: MessageQueue) -> int | None:
        """What the broker has. Unlike Apache's client, an error is never taken for 'nothing': that would skip messages."""
        offset = await self._requests.committed_offset(self._group, queue)
        return None if offset is None or offset < 0 else offset

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Send them to the brokers, one-way unless `confirmed`."""
        offsets = {queue: self._offsets[queue] for queue in queues if queue in self._offsets}
        if not confirmed:
            await asyncio.gather(*(self._tell(queue, offset) for queue, offset in offsets.items()))
            return
        try:
            await self._requests.commit_offsets(self._group, offsets)
        except ClientError as error:
            logger.debug("not all offsets of %s were sent: %s", self._group, error)

    async def _tell(self, queue: MessageQueue, offset: int) -> None:
        try:
            await self._requests.commit_offset_oneway(self._group, queue, offset)
        except ClientError as error:
            logger.debug("offset %d of %s was not sent: %s", offset, queue, error)


class OffsetSerializeWrapper(Body):
    """The file of a broadcasting consumer, as Apache's client writes it."""

    lenient_limit = None
    offset_table: QueueTable[int] = msgspec.field(default_factory=QueueTable)


class LocalFileOffsetStore:
    """Offsets of one broadcasting consumer, in `directory/offsets.json` (RocketMQ's LocalFileOffsetStore)."""

    def __init__(self, directory: Path) -> None:
        """Reads what is there. A file that cannot be read is passed over for the one before it (.bak), with a warning."""
        self._path = directory / "offsets.json"
        self._backup = directory / "offsets.json.bak"
        self._kept = self._load(self._path) or self._load(self._backup) or {}
        self._offsets = dict(self._kept)

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Remember it."""
        self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """Nobody else gets the queue: what is remembered stays."""

    async def read(self, queue: MessageQueue) -> int | None:
        """What is kept."""
        return self._offsets.get(queue)

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Write the file anew, if anything changed. It is on disk when this returns."""
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
