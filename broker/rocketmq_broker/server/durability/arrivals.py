"""Tells the broker's parts of messages that readers can see now."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

logger = logging.getLogger(__name__)

Listener: TypeAlias = Callable[[bytes, int, int], None]
Counter: TypeAlias = Callable[[bytes, int, int, int], None]


class Arrivals:
    """A callable that passes topic, queue id and max offset on. An error of one listener affects neither others nor the store."""

    def __init__(self, *listeners: Listener, counter: Counter) -> None:
        """`counter` also gets the number of bytes."""
        self._listeners = listeners
        self._counter = counter

    def __call__(self, topic: bytes, queue_id: int, max_offset: int, size: int) -> None:
        """Tells all listeners that records of `size` bytes are visible in a queue."""
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
    """Logs the error that is being handled."""
    logger.exception("while telling of new messages in %s", topic.decode(errors="replace"))
