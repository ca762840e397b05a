"""Notifies listeners in the broker when messages become visible to consumers."""

import logging
from collections.abc import Callable
from typing import TypeAlias

logger = logging.getLogger(__name__)

Listener: TypeAlias = Callable[[bytes, int, int], None]
Counter: TypeAlias = Callable[[bytes, int, int, int], None]


class Arrivals:
    """Calls each listener with the topic, queue id and maximum offset of a queue with new messages.

    An exception in one listener does not affect the others.
    """

    def __init__(self, *listeners: Listener, counter: Counter) -> None:
        """Stores the listeners. `counter` is called with the arguments of a listener and the number of bytes."""
        self._listeners = listeners
        self._counter = counter

    def __call__(self, topic: bytes, queue_id: int, max_offset: int, size: int) -> None:
        """Notifies all listeners that records of `size` bytes have become visible in a queue."""
        for listener in self._listeners:
            try:
                listener(topic, queue_id, max_offset)
            except Exception:
                _log_failure(topic)
        try:
            self._counter(topic, queue_id, max_offset, size)
        except Exception:
            _log_failure(topic)


def _log_failure(topic: bytes) -> None:
    """Logs the exception that is being handled."""
    logger.exception("a listener failed for new messages in topic %s", topic.decode(errors="replace"))
