"""Reads the queues of a pull consumer in the background, and keeps their messages for `poll`."""

import asyncio
import logging
from collections import deque
from dataclasses import dataclass

from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.pull.offset_store import BrokerOffsetStore
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.pull.pull_loop import PullEvents, PullLoop, PullSettings
from rocketmq_broker.client.pull.queue_requests import QueueRequests
from rocketmq_broker.client.pull.starting_offset import StartingOffset
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.remoting.backoff import Backoff
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.world import World

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Reading:
    """The state of a queue that is read in the background."""

    subscription: Subscription
    process_queue: ProcessQueue | None = None
    task: asyncio.Task[None] | None = None

    def drop(self) -> None:
        if self.process_queue is not None:
            self.process_queue.drop()
        if self.task is not None:
            self.task.cancel()


class ReadAhead:
    """Reads queues in the background, with one pull loop for each. A message counts as consumed once `take` returns it."""

    def __init__(
        self, group: str, requests: QueueRequests, start_at: StartingOffset, settings: PullSettings, world: World
    ) -> None:
        """`start_at` is the start position in queues in which the group has no offset."""
        self._group = group
        self._requests = requests
        self._store = BrokerOffsetStore(group, requests)
        self._start_at = start_at
        self._settings = settings
        self._world = world
        self._readings: dict[MessageQueue, _Reading] = {}
        self._arrived: deque[tuple[ProcessQueue, MessageExt]] = deque()
        self._has_arrived = asyncio.Event()
        self._tasks = Tasks()

    @property
    def queues(self) -> set[MessageQueue]:
        """Returns the queues that are read in the background."""
        return set(self._readings)

    @property
    def subscriptions(self) -> list[Subscription]:
        """Returns the subscription of each topic."""
        return list({reading.subscription.topic: reading.subscription for reading in self._readings.values()}.values())

    @property
    def committable_offsets(self) -> dict[MessageQueue, int]:
        """Returns the offsets up to which `take` has returned messages. Omits queues whose reading has not begun yet."""
        at_work = [reading.process_queue for reading in self._readings.values() if reading.process_queue is not None]
        return {process_queue.queue: process_queue.committable_offset for process_queue in at_work}

    def read(self, queue: MessageQueue, subscription: Subscription) -> None:
        """Starts reading the queue from the group's offset, unless it is already being read."""
        if queue not in self._readings:
            self._begin(queue, subscription, None)

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continues reading the queue at this offset. Raises KeyError if the queue is not being read."""
        reading = self._readings[queue]
        reading.drop()
        self._begin(queue, reading.subscription, offset)

    def give_up(self, queue: MessageQueue) -> None:
        """Stops reading the queue, and discards its waiting messages."""
        self._readings.pop(queue).drop()

    async def wait(self, seconds: float) -> bool:
        """Waits up to `seconds` for a message or for `stop`. Returns False after a timeout."""
        self._has_arrived.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._has_arrived.wait()
        except TimeoutError:
            return False
        return True

    def take(self, count: int) -> list[MessageExt]:
        """Returns at most `count` messages, in order within each queue."""
        messages: list[MessageExt] = []
        while self._arrived and len(messages) < count:
            process_queue, message = self._arrived.popleft()
            if not process_queue.is_dropped:
                process_queue.acknowledge([message.queue_offset])
                messages.append(message)
        return messages

    async def stop(self) -> None:
        """Stops reading, and discards all waiting messages."""
        for reading in self._readings.values():
            reading.drop()
        self._readings.clear()
        self._arrived.clear()
        self._has_arrived.set()
        await self._tasks.stop()

    def _begin(self, queue: MessageQueue, subscription: Subscription, offset: int | None) -> None:
        reading = self._readings[queue] = _Reading(subscription)
        reading.task = self._tasks.start(f"client-read-{queue.topic}-{queue.queue_id}", self._read(queue, reading, offset))

    async def _read(self, queue: MessageQueue, reading: _Reading, start: int | None) -> None:
        offset = await self._starting_offset(queue) if start is None else start
        while True:
            process_queue = reading.process_queue = ProcessQueue(queue, offset, self._world)
            moved_to: list[int] = []
            events = PullEvents(
                on_messages=self._put,
                on_progress=lambda _: None,
                on_illegal_offset=lambda _, offset, moved_to=moved_to: moved_to.append(offset),  # type: ignore[misc]
                on_subscription_unknown=lambda: None,
            )
            loop = PullLoop(self._group, process_queue, lambda: reading.subscription, self._requests, self._settings, events)
            await loop.run()
            if not moved_to:
                return
            process_queue.drop()
            offset = moved_to[0]

    async def _starting_offset(self, queue: MessageQueue) -> int:
        backoff = Backoff(0.1, 3.0)
        while True:
            try:
                return await self._start_at.find(queue, self._store, self._requests)
            except (ClientError, ProtocolError) as error:
                logger.debug("the start offset of %s is not available yet: %s", queue, error)
                await asyncio.sleep(backoff.next_pause_s())

    def _put(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        self._arrived.extend((process_queue, message) for message in messages)
        self._has_arrived.set()
