"""Locks at brokers, which allow one member of a group at a time to consume a queue in order (RocketMQ's RebalanceImpl.lock)."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable

from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.pull.group_requests import GroupRequests
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.remoting.tasks import Tasks

logger = logging.getLogger(__name__)

RENEWAL_INTERVAL_S = 20.0
SOON_INTERVAL_S = 1.0
HELD_FOR_S = 30.0
"""The time in seconds for which the client uses a lock without renewal. It ends before the broker's 60 s."""


class OwnQueueLocks:
    """The locks that this client holds. Renews them every 20 s, or every second while a requested lock is not held."""

    def __init__(self, group: str, client_id: str, requests: GroupRequests, now_s: Callable[[], float]) -> None:
        """`client_id` is the owner of the locks. `now_s` is a monotonic clock."""
        self._group = group
        self._client_id = client_id
        self._requests = requests
        self._wanted: set[MessageQueue] = set()
        self._held_until_s: dict[MessageQueue, float] = {}
        self._now_s = now_s
        self._tasks = Tasks()
        self._tasks.start("client-queue-locks", self._renew())

    def holds(self, queue: MessageQueue) -> bool:
        """Returns True if this client holds the queue's lock."""
        return self._now_s() < self._held_until_s.get(queue, 0.0)

    def locked_s(self, queue: MessageQueue) -> float | None:
        """Returns the monotonic time, in seconds, at which the broker last granted the lock; None if the lock is not held."""
        return self._held_until_s[queue] - HELD_FOR_S if queue in self._held_until_s else None

    async def acquire(self, queue: MessageQueue) -> bool:
        """Tries to lock the queue. On success, returns True and renews the lock until it is released."""
        await self._lock(queue.broker_name, [queue])
        if self.holds(queue):
            self._wanted.add(queue)
            return True
        return False

    async def release(self, queues: Iterable[MessageQueue]) -> None:
        """Releases the locks. Locks at an unreachable broker expire."""
        for broker_name, of_broker in _by_broker(queues).items():
            self._wanted.difference_update(of_broker)
            for queue in of_broker:
                self._held_until_s.pop(queue, None)
            try:
                await self._requests.unlock_queues(self._group, self._client_id, broker_name, of_broker)
            except ClientError as error:
                logger.debug("queues of %s were not unlocked: %s", broker_name, error)

    async def stop(self) -> None:
        """Stops the renewal and releases all locks."""
        await self._tasks.stop()
        await self.release(list(self._wanted))

    async def _renew(self) -> None:
        while True:
            all_held = all(self.holds(queue) for queue in self._wanted)
            await asyncio.sleep(RENEWAL_INTERVAL_S if all_held else SOON_INTERVAL_S)
            for broker_name, queues in _by_broker(self._wanted).items():
                await self._lock(broker_name, queues)

    async def _lock(self, broker_name: str, queues: list[MessageQueue]) -> None:
        asked_s = self._now_s()
        try:
            locked = await self._requests.lock_queues(self._group, self._client_id, broker_name, queues)
        except ClientError as error:
            logger.debug("queues of %s were not locked: %s", broker_name, error)
            return
        for queue in queues:
            if queue in locked:
                self._held_until_s[queue] = asked_s + HELD_FOR_S
            else:
                self._held_until_s.pop(queue, None)


def _by_broker(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    grouped: defaultdict[str, list[MessageQueue]] = defaultdict(list)
    for queue in queues:
        grouped[queue.broker_name].append(queue)
    return dict(grouped)
