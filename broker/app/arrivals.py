"""Messages that became visible: who is told."""

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

Listener = Callable[[bytes, int, int], None]
Counter = Callable[[bytes, int, int, int], None]


class Arrivals:
    """Passes topic, queue id and max offset on. What goes wrong with one listener concerns neither the others nor the store."""

    def __init__(self, *listeners: Listener, counter: Counter) -> None:
        """`counter` is told the bytes as well."""
        self._listeners = listeners
        self._counter = counter

    def __call__(self, topic: bytes, queue_id: int, max_offset: int, size: int) -> None:
        """A queue reaches further now, by records of so many bytes."""
        for listener in self._listeners:
            _tell(listener, topic, queue_id, max_offset)
        _tell(self._counter, topic, queue_id, max_offset, size)


def _tell(listener: Callable[..., None], topic: bytes, *where: int) -> None:
    try:
        listener(topic, *where)
    except Exception:
        logger.exception("while telling of new messages in %s", topic.decode(errors="replace"))
