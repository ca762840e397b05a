"""Locks queues for orderly consumption. Each lock is held by one consumer of a group (RocketMQ's RebalanceLockManager)."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rocketmq_broker.server.shares import is_full

LOCK_EXPIRES_MS = 60_000
MAX_LOCKS: Final = 200_000
"""The maximum number of queue locks of all groups together."""
MAX_OF_A_GROUP: Final = 50_000

Queue = TypeVar("Queue", bound=Hashable)


class TooManyLocks(Exception):
    """Raised if the maximum number of locked queues is reached."""


@dataclass(slots=True)
class _Lock:
    client_id: str
    last_update_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return now_ms - self.last_update_ms > LOCK_EXPIRES_MS


class QueueLocks(Generic[Queue]):
    """Queue locks, keyed by group and queue. A lock ends when its holder releases it, or 60 s after its last renewal."""

    def __init__(self, max_locks: int = MAX_LOCKS) -> None:
        self._locks: dict[str, dict[Queue, _Lock]] = {}
        self._max_locks = max_locks
        self.count = 0
        """The number of locks, including expired ones that have not been removed yet."""

    def lock(self, group: str, queues: Iterable[Queue], client_id: str, now_ms: int) -> list[Queue]:
        """Locks or renews the queues that are free or held by the client, and returns them. Raises TooManyLocks."""
        locks = self._locks.setdefault(group, {})
        try:
            return [queue for queue in queues if self._take(locks, queue, client_id, now_ms)]
        finally:
            if not locks:
                del self._locks[group]

    def unlock(self, group: str, queues: Iterable[Queue], client_id: str) -> None:
        """Releases the locks that the client holds on these queues."""
        locks = self._locks.get(group, {})
        for queue in queues:
            held = locks.get(queue)
            if held is not None and held.client_id == client_id:
                del locks[queue]
                self.count -= 1
        if not locks:
            self._locks.pop(group, None)

    def forget_expired(self, now_ms: int) -> Iterator[None]:
        """Removes expired locks, about a thousand per step. Other methods may be called between the steps."""
        for group in list(self._locks):
            held = list(self._locks.get(group, {}).items())
            for number, (queue, lock) in enumerate(held):
                locks = self._locks.get(group, {})
                if locks.get(queue) is lock and lock.is_expired(now_ms):
                    self.unlock(group, (queue,), lock.client_id)
                if number % 1000 == 0:
                    yield

    def _take(self, locks: dict[Queue, _Lock], queue: Queue, client_id: str, now_ms: int) -> bool:
        held = locks.get(queue)
        if held is None:
            if len(locks) >= MAX_OF_A_GROUP:
                raise TooManyLocks(f"too many locked queues in one group: limit {MAX_OF_A_GROUP}")
            if is_full(self.count, self._max_locks, len(locks)):
                raise TooManyLocks(f"too many locked queues: {self.count} in all groups, limit {self._max_locks}")
            self.count += 1
        elif held.client_id != client_id and not held.is_expired(now_ms):
            return False
        locks[queue] = _Lock(client_id, now_ms)
        return True
