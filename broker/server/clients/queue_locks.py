"""Which consumer of a group holds a queue, so that messages are consumed in order (RocketMQ's RebalanceLockManager)."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

LOCK_EXPIRES_MS = 60_000

Queue = TypeVar("Queue", bound=Hashable)


@dataclass(slots=True)
class _Lock:
    client_id: str
    last_update_ms: int


class QueueLocks(Generic[Queue]):
    """Locks by group and queue. A lock ends when its holder gives it back, or has not renewed it for 60 s."""

    def __init__(self) -> None:
        self._locks: dict[str, dict[Queue, _Lock]] = {}

    def lock(self, group: str, queues: Iterable[Queue], client_id: str, now_ms: int) -> list[Queue]:
        """Locks or renews what is free or the client's own; returns those queues."""
        locks = self._locks.setdefault(group, {})
        return [queue for queue in queues if _take(locks, queue, client_id, now_ms)]

    def unlock(self, group: str, queues: Iterable[Queue], client_id: str) -> None:
        """Gives back those of the queues that the client holds."""
        locks = self._locks.get(group, {})
        for queue in queues:
            held = locks.get(queue)
            if held is not None and held.client_id == client_id:
                del locks[queue]
        if not locks:
            self._locks.pop(group, None)


def _take(locks: dict[Queue, _Lock], queue: Queue, client_id: str, now_ms: int) -> bool:
    held = locks.get(queue)
    if held is not None and held.client_id != client_id and now_ms - held.last_update_ms <= LOCK_EXPIRES_MS:
        return False
    locks[queue] = _Lock(client_id, now_ms)
    return True
