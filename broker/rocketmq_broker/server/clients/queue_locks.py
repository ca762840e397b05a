"""Locks on queues, each held by one consumer of a group, for consumption in order (RocketMQ's RebalanceLockManager)."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rocketmq_broker.server.shares import is_full

LOCK_EXPIRES_MS = 60_000
MAX_LOCKS: Final = 200_000
"""Queues times groups that are consumed in order at one time."""
MAX_OF_A_GROUP: Final = 50_000

Queue = TypeVar("Queue", bound=Hashable)


class TooManyLocks(Exception):
    """The limit of locked queues is reached."""


@dataclass(slots=True)
class _Lock:
    client_id: str
    last_update_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return now_ms - self.last_update_ms > LOCK_EXPIRES_MS


class QueueLocks(Generic[Queue]):
    """Locks by group and queue. A lock ends when its holder releases it, or after 60 s without renewal."""

    def __init__(self, most_locks: int = MAX_LOCKS) -> None:
        self._locks: dict[str, dict[Queue, _Lock]] = {}
        self._most_locks = most_locks
        self.count = 0
        """The number of locks, including those that have expired and are not forgotten yet."""

    def lock(self, group: str, queues: Iterable[Queue], client_id: str, now_ms: int) -> list[Queue]:
        """Locks or renews those queues that are free or the client's own, and returns them. Raises TooManyLocks."""
        locks = self._locks.setdefault(group, {})
        try:
            return [queue for queue in queues if self._take(locks, queue, client_id, now_ms)]
        finally:
            if not locks:
                del self._locks[group]

    def unlock(self, group: str, queues: Iterable[Queue], client_id: str) -> None:
        """Releases those of the queues that the client holds."""
        locks = self._locks.get(group, {})
        for queue in queues:
            held = locks.get(queue)
            if held is not None and held.client_id == client_id:
                del locks[queue]
                self.count -= 1
        if not locks:
            self._locks.pop(group, None)

    def forget_expired(self, now_ms: int) -> Iterator[None]:
        """Forgets expired locks, some thousand a step. Other calls may come between the steps."""
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
                raise TooManyLocks(f"the group has locked {len(locks)} queues, and {MAX_OF_A_GROUP} are the most")
            if is_full(self.count, self._most_locks, len(locks)):
                raise TooManyLocks(f"{self.count} queues are locked, and no more can be: consumers of other groups hold them")
            self.count += 1
        elif held.client_id != client_id and not held.is_expired(now_ms):
            return False
        locks[queue] = _Lock(client_id, now_ms)
        return True
