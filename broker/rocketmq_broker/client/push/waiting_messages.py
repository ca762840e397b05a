"""The pulled messages of one queue that are waiting for a listener call."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from rocketmq_broker.message import MessageExt


class WaitingMessages:
    """The messages that wait for a listener call. A call takes up to `batch_size` waiting messages when it starts.

    Batches therefore grow while listeners are busy, and no message waits for a batch to fill. The event loop adds messages;
    the listeners' threads take them.
    """

    def __init__(self, batch_size: int) -> None:
        """`batch_size` is the maximum number of messages of one call."""
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._messages: deque[MessageExt] = deque()

    def add(self, messages: Sequence[MessageExt]) -> int:
        """Adds messages. Returns the number of listener calls to request in addition to those already requested."""
        with self._lock:
            before = self._calls()
            self._messages.extend(messages)
            return self._calls() - before

    def take(self) -> list[MessageExt]:
        """Returns the oldest messages for one of the calls that `add` requested. The list is never empty."""
        with self._lock:
            return [self._messages.popleft() for _ in range(min(self._batch_size, len(self._messages)))]

    def _calls(self) -> int:
        return -(-len(self._messages) // self._batch_size)
