"""Waits for a lock, in real time or in a simulation without threads."""

import threading
from collections.abc import Callable

Acquire = Callable[[Callable[[], bool], float], bool]
"""A function that calls its first argument, which tries to take a lock, until it returns True (`World.acquire`).

The second argument is the time-out in seconds.
"""


def is_taken(lock: threading.Lock, timeout_s: float, acquire: Acquire | None) -> bool:
    """Waits up to `timeout_s` for the lock. Returns True if it was acquired. Without `acquire` the wait is in real time."""
    if acquire is None:
        return lock.acquire(timeout=timeout_s)
    return acquire(lambda: lock.acquire(blocking=False), timeout_s)
