"""The notice of new visible messages to listeners."""

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

Listener = Callable[[bytes, int, int], None]
Counter = Callable[[bytes, int, int, int], None]


class Arrivals:
    """A callable that passes topic, queue id and max offset on. An error of one listener affects neither others nor the store."""

    def __init__(self, *listeners: Listener, counter: Counter) -> None:
        """`counter` also gets the number of bytes."""
        self._listeners = listeners
        self._counter = counter

    def __call__(self, topic: bytes, queue_id: int, max_offset: int, size: int) -> None:
        """Tells all listeners that records of `size` bytes are visible in a queue."""
        for listener in self._listeners:
            _tell(listener, topic, queue_id, max_offset)
        _tell(self._counter, topic, queue_id, max_offset, size)


def _tell(listener: Callable[..., None], topic: bytes, *where: int) -> None:
    try:
        listener(topic, *where)
    except Exception:
        logger.exception("while telling of new messages in %s", topic.decode(errors="replace"))
