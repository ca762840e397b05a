"""The messages of one queue between their pull and the call of a listener that takes them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from rocketmq_broker.message import MessageExt


class WaitingMessages:
    """Forms batches when calls begin, not when messages arrive: a call takes all that have come while it waited for its thread.

    So batches grow while listeners are busy, and no message waits for others. The event loop adds, the listeners' threads take.
    """

    def __init__(self, batch_size: int) -> None:
        """Begins empty. A call takes at most `batch_size` messages."""
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._messages: deque[MessageExt] = deque()

    def add(self, messages: Sequence[MessageExt]) -> int:
        """Adds messages. Returns the number of further calls that they need: room in the calls that wait is used first."""
        with self._lock:
            before = self._calls()
            self._messages.extend(messages)
            return self._calls() - before

    def take(self) -> list[MessageExt]:
        """Returns the oldest messages for one of the calls that `add` asked for; there is always at least one."""
        with self._lock:
            return [self._messages.popleft() for _ in range(min(self._batch_size, len(self._messages)))]

    def _calls(self) -> int:
        return -(-len(self._messages) // self._batch_size)
