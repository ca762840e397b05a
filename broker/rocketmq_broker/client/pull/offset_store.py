"""The consumer offsets of a group: at the brokers, or in a local file for broadcasting (RocketMQ's OffsetStore)."""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.pull.queue_requests import QueueRequests
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.platform.durability import sync_file
from rocketmq_broker.protocol.body import Body
from rocketmq_broker.protocol.errors import BodyError
from rocketmq_broker.protocol.queue_table import QueueTable

logger = logging.getLogger(__name__)


RESEND_INTERVAL_S = 30.0
"""The time in seconds after which an unchanged offset is sent again, because the broker may have lost it."""


class OffsetStore(Protocol):
    """Keeps consumer offsets in memory, and stores them when `persist` is called."""

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Sets the offset in memory. `persist` stores it."""

    def forget(self, queue: MessageQueue) -> None:
        """Removes the offset of a queue that another consumer has taken over."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Returns the stored offset, or None. Raises ClientError if it cannot be read."""

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Stores the offsets of these queues. With `confirmed`, waits for the responses.

        Logs a failure instead of raising it; the next call tries again.
        """


class BrokerOffsetStore:
    """The offsets of a group, stored by each queue's broker (RocketMQ's RemoteBrokerOffsetStore)."""

    def __init__(self, group: str, requests: QueueRequests) -> None:
        """`requests` sends the requests to brokers."""
        self._group = group
        self._requests = requests
        self._offsets: dict[MessageQueue, int] = {}
        self._sent: dict[MessageQueue, tuple[int, float]] = {}
        """The offset last sent for each queue, and the event loop's time of sending."""
        self._held: dict[MessageQueue, int] = {}
        """The offset that each queue's broker has confirmed. The entry is removed when this member makes progress."""

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Sets the offset in memory."""
        self._offsets[queue] = offset
        if self._held.get(queue) != offset:
            self._held.pop(queue, None)

    def forget(self, queue: MessageQueue) -> None:
        """Removes the offset of a queue that another member has taken over."""
        self._offsets.pop(queue, None)
        self._sent.pop(queue, None)
        self._held.pop(queue, None)

    async def read(self, queue: MessageQueue) -> int | None:
        """Returns the broker's offset, or None.

        Unlike Apache's client, never returns None after an error, because that could skip messages.
        """
        offset = await self._requests.committed_offset(self._group, queue)
        if offset is None or offset < 0:
            return None
        self._confirmed(queue, offset)
        return offset

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Sends the offsets to the brokers one-way, or waits for the responses if `confirmed` is True.

        A one-way call sends offsets that have changed, or that were last sent at least 30 s ago. A confirmed call omits
        offsets that the broker has already confirmed, so that a member without progress does not overwrite the progress
        of the queue's next owner.
        """
        offsets = {queue: self._offsets[queue] for queue in queues if queue in self._offsets}
        if not confirmed:
            now_s = asyncio.get_running_loop().time()
            due = [(queue, offset) for queue, offset in offsets.items() if self._is_due(queue, offset, now_s)]
            await asyncio.gather(*(self._send(queue, offset, now_s) for queue, offset in due))
            return
        unconfirmed = {queue: offset for queue, offset in offsets.items() if self._held.get(queue) != offset}
        try:
            await self._requests.commit_offsets(self._group, unconfirmed)
        except ClientError as error:
            logger.debug("not all offsets of %s were sent: %s", self._group, error)
        else:
            for queue, offset in unconfirmed.items():
                if self._offsets.get(queue) == offset:
                    self._confirmed(queue, offset)

    def _confirmed(self, queue: MessageQueue, offset: int) -> None:
        self._held[queue] = offset
        self._sent[queue] = offset, asyncio.get_running_loop().time()

    def _is_due(self, queue: MessageQueue, offset: int, now_s: float) -> bool:
        sent = self._sent.get(queue)
        return sent is None or sent[0] != offset or now_s - sent[1] >= RESEND_INTERVAL_S

    async def _send(self, queue: MessageQueue, offset: int, now_s: float) -> None:
        try:
            await self._requests.commit_offset_oneway(self._group, queue, offset)
            self._sent[queue] = offset, now_s
        except ClientError as error:
            logger.debug("offset %d of %s was not sent: %s", offset, queue, error)


class OffsetSerializeWrapper(Body):
    """The offset file of a broadcasting consumer, in the format of Apache's client."""

    lenient_limit = None
    offset_table: QueueTable[int] = msgspec.field(default_factory=QueueTable)


class LocalFileOffsetStore:
    """The offsets of one broadcasting consumer, in `directory/offsets.json` (RocketMQ's LocalFileOffsetStore)."""

    def __init__(self, directory: Path) -> None:
        """Reads the file. If it is unreadable, logs a warning and reads the previous file (.bak)."""
        self._path = directory / "offsets.json"
        self._backup = directory / "offsets.json.bak"
        self._kept = self._load(self._path) or self._load(self._backup) or {}
        self._offsets = dict(self._kept)

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Sets the offset in memory."""
        self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """Does nothing, because no other consumer takes over the queue."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Returns the stored offset."""
        return self._offsets.get(queue)

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        """Writes the file if an offset changed. The file is flushed to disk on return."""
        if self._offsets == self._kept:
            return
        offsets = dict(self._offsets)
        try:
            await asyncio.to_thread(self._write, offsets)
            self._kept = offsets
        except OSError as error:
            logger.warning("offsets of the broadcasting consumer could not be written: %s", error)

    def _write(self, offsets: dict[MessageQueue, int]) -> None:
        content = OffsetSerializeWrapper(offset_table=QueueTable(sorted(offsets.items()))).encode()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        written = self._path.with_suffix(".tmp")
        with written.open("wb") as file:
            file.write(content)
            file.flush()
            sync_file(file.fileno())
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
