"""The queues assigned to a consumer, each with its pull loop (RocketMQ's RebalanceImpl.processQueueTable)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Protocol

from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.pull.offset_store import OffsetStore
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.world import World


class Consumption(Protocol):
    """Passes messages to the listener and handles its results (RocketMQ's ConsumeMessageService).

    Concurrent and orderly consumers differ only in the implementation of this protocol.
    """

    async def may_begin(self, queue: MessageQueue) -> bool:
        """Returns True if consumption of the queue may start now. Orderly consumption requires the queue's lock."""

    def arrived(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Handles the new messages of a pull."""

    async def quiesce(self, process_queue: ProcessQueue) -> None:
        """Waits until no listener call of the dropped queue can overlap with the next owner's calls."""

    async def release(self, process_queue: ProcessQueue) -> None:
        """Allows the next owner to start. Called after the offset is stored."""

    async def stop(self, timeout_s: float) -> None:
        """Stops calling the listener, and waits up to `timeout_s` for running calls."""


logger = logging.getLogger(__name__)

RESTART_DELAY_S = 3.0
"""The pause in seconds before the pull loop of a queue restarts after an error."""


class Assignment:
    """The queues of a consumer. A released queue can be taken again only after its last listener call has ended."""

    def __init__(
        self,
        consumption: Consumption,
        store: OffsetStore,
        find_start: Callable[[MessageQueue], Awaitable[int]],
        pull: Callable[[ProcessQueue], Coroutine[None, None, None]],
        world: World,
    ) -> None:
        """`find_start` returns the first offset of a queue. `pull` runs the pull loop of a queue."""
        self._consumption = consumption
        self._store = store
        self._find_start = find_start
        self._pull = pull
        self._world = world
        self._table: dict[MessageQueue, ProcessQueue] = {}
        self._pulling: dict[MessageQueue, asyncio.Task[None]] = {}
        self._leaving: set[MessageQueue] = set()
        self._tasks = Tasks()
        self.on_moved: Callable[[], None] = lambda: None
        """A callback after the release of a queue that must be taken again at another offset."""

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """Returns the assigned queues."""
        return self._table

    def of_topic(self, topic: str) -> set[MessageQueue]:
        """Returns the assigned queues of one topic."""
        return {queue for queue in self._table if queue.topic == topic}

    async def take(self, queue: MessageQueue) -> bool:
        """Starts consuming the queue. Returns False if another member holds its lock or its offset cannot be read.

        Stores the start offset first, so that after a crash a group without an offset starts at the same position again.
        """
        if queue in self._table:
            return True
        if queue in self._leaving or not await self._consumption.may_begin(queue):
            return False
        try:
            offset = await self._find_start(queue)
        except (ClientError, ProtocolError) as error:
            logger.debug("the start offset of %s is not available yet: %s", queue, error)
            return False
        self._store.update(queue, offset)
        await self._store.persist([queue], confirmed=True)
        process_queue = ProcessQueue(queue, offset, self._world)
        self._table[queue] = process_queue
        pulling = self._tasks.start(f"client-pull-{queue.topic}-{queue.queue_id}", self._pull(process_queue))
        pulling.add_done_callback(partial(self._pull_ended, process_queue))
        self._pulling[queue] = pulling
        logger.info("consuming %s from offset %d", queue, offset)
        return True

    def give_up(self, queue: MessageQueue) -> None:
        """Stops consuming the queue, and stores its offset.

        In concurrent consumption, the results of running listener calls are ignored. In orderly consumption, the result of
        the running call still counts.
        """
        if queue in self._table:
            logger.info("no longer consuming %s", queue)
            self._leave_in_background(queue, None)

    def move(self, queue: MessageQueue, offset: int) -> None:
        """Releases the queue and commits `offset`. The next rebalance takes the queue again at this offset."""
        if queue in self._table:
            self._leave_in_background(queue, offset)

    async def stop_pulling(self) -> None:
        """Stops pulling. Pulled messages may still be acknowledged."""
        await self._tasks.stop()

    def withdraw_all(self) -> None:
        """Signals listeners that wait in `ConsumeContext.hold` to stop. The results of other listeners still count."""
        for process_queue in self._table.values():
            process_queue.withdraw()

    async def persist(self, *, confirmed: bool = False) -> None:
        """Stores the offsets of all assigned queues. With `confirmed`, waits for the brokers' responses."""
        await self._store.persist(list(self._table), confirmed=confirmed)

    def drop_all(self) -> None:
        """Drops all queues. Later acknowledgements are ignored."""
        for process_queue in self._table.values():
            process_queue.drop()
        self._table.clear()

    def _pull_ended(self, process_queue: ProcessQueue, pulling: asyncio.Task[None]) -> None:
        if not pulling.cancelled() and pulling.exception() is not None and not process_queue.is_dropped:
            queue = process_queue.queue
            self._tasks.start(f"client-restart-{queue.topic}-{queue.queue_id}", self._restart(process_queue))

    async def _restart(self, process_queue: ProcessQueue) -> None:
        """Restarts the queue's consumption after an error in its pull loop."""
        await asyncio.sleep(RESTART_DELAY_S)
        if not process_queue.is_dropped:
            self.move(process_queue.queue, process_queue.committable_offset)

    def _leave_in_background(self, queue: MessageQueue, offset: int | None) -> None:
        process_queue = self._table.pop(queue)
        process_queue.drop()
        self._pulling.pop(queue).cancel()
        self._leaving.add(queue)
        self._tasks.start(f"client-leave-{queue.topic}-{queue.queue_id}", self._leave(process_queue, offset))

    async def _leave(self, process_queue: ProcessQueue, offset: int | None) -> None:
        queue = process_queue.queue
        try:
            await self._consumption.quiesce(process_queue)
            self._store.update(queue, process_queue.committable_offset if offset is None else offset)
            await self._store.persist([queue], confirmed=True)
            self._store.forget(queue)
            await self._consumption.release(process_queue)
        finally:
            self._leaving.discard(queue)
        if offset is not None:
            self.on_moved()
