"""Waits for a lock, in real time or in that of a world without threads."""

import threading
from collections.abc import Callable

Acquire = Callable[[Callable[[], bool], float], bool]
"""Waits until the function, which tries to take a lock, returns True; at most for those seconds (`World.acquire`)."""


def is_taken(lock: threading.Lock, timeout_s: float, acquire: Acquire | None) -> bool:
    """Takes the lock, and returns whether it could within `timeout_s`. Without `acquire` the lock itself waits."""
    if acquire is None:
        return lock.acquire(timeout=timeout_s)
    return acquire(lambda: lock.acquire(blocking=False), timeout_s)
