"""Messages that became visible: who is told."""

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

Listener = Callable[[bytes, int, int], None]


class Arrivals:
    """Passes topic, queue id and max offset on. What goes wrong with one listener concerns neither the others nor the store."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners

    def __call__(self, topic: bytes, queue_id: int, max_offset: int) -> None:
        """A queue reaches further now."""
        for listener in self._listeners:
            try:
                listener(topic, queue_id, max_offset)
            except Exception:
                logger.exception("while telling of new messages in %s", topic.decode(errors="replace"))
