"""The event loop of a program that serves connections: it asks the system once for each read, not twice.

What a read leaves to do (write the commit log, end the turn, send answers) is called in the event loop's next turn. asyncio asks
the system again before that turn, without waiting, and puts what it finds behind these calls: with one message in flight it
finds nothing. So that question is left out. The calls run before the next read, as in asyncio's own loop, and the turn after
them asks for all that has come meanwhile.
"""

from __future__ import annotations

import asyncio
import selectors


class OnceAnswered(selectors.DefaultSelector):
    """The system's selector. After an answer with ready files it finds nothing, once, if it is asked without waiting."""

    _has_answered = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Returns the ready files, as the system's selector does, or an empty list if the loop has calls to make."""
        if self._has_answered and timeout == 0:
            self._has_answered = False
            return []
        ready = super().select(timeout)
        self._has_answered = bool(ready)
        return ready


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Returns asyncio's event loop with this selector, for `asyncio.Runner(loop_factory=...)`."""
    return asyncio.SelectorEventLoop(OnceAnswered())
