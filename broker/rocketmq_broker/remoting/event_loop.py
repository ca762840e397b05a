"""The event loop of a program that serves connections. It asks the system less often, and sleeps less often, than asyncio's own.

**Once for each read.** What a read leaves to do (write the commit log, end the turn, send answers) is called in the event loop's
next turn. asyncio asks the system again before that turn, without waiting, and puts what it finds behind these calls: with one
message in flight it finds nothing. So that question is left out. The calls run before the next read, as in asyncio's own loop,
and the turn after them asks for all that has come meanwhile.

**Busy polling.** To sleep and to be woken takes longer than the broker needs for a message. Where the last wait was short, the
next one asks without sleeping for a moment, and yields the processor each time to whoever wants it.
"""

from __future__ import annotations

import asyncio
import os
import selectors
from time import perf_counter

from rocketmq_broker.stop_signals import STOP_SIGNALS

Ready = list[tuple[selectors.SelectorKey, int]]


class OnceAnswered(selectors.DefaultSelector):
    """The system's selector. After an answer with ready files it finds nothing, once, if it is asked without waiting."""

    def __init__(self, busy_poll_s: float = 0.0) -> None:
        """A wait that follows one shorter than `busy_poll_s` asks for so many seconds before it sleeps; 0: it sleeps at once."""
        super().__init__()
        self._busy_poll_s = busy_poll_s
        self._was_short = False
        self._has_answered = False

    def select(self, timeout: float | None = None) -> Ready:
        """Returns the ready files, as the system's selector does, or an empty list if the loop has calls to make."""
        if self._has_answered and timeout == 0:
            self._has_answered = False
            return []
        ready = self._wait(timeout) if self._busy_poll_s and timeout != 0 else super().select(timeout)
        self._has_answered = bool(ready)
        return ready

    def _wait(self, timeout: float | None) -> Ready:
        began = perf_counter()
        if self._was_short:
            moment = self._busy_poll_s if timeout is None else min(self._busy_poll_s, timeout)
            while perf_counter() < began + moment:
                os.sched_yield()
                if ready := super().select(0):
                    return ready
            if timeout is not None:
                timeout -= moment
        ready = super().select(timeout)
        self._was_short = perf_counter() - began < self._busy_poll_s
        return ready


def new_event_loop(busy_poll_s: float = 0.0) -> asyncio.AbstractEventLoop:
    """Returns asyncio's event loop with this selector, for `asyncio.Runner(loop_factory=...)`."""
    return asyncio.SelectorEventLoop(OnceAnswered(busy_poll_s))


def event_of_stop_signals() -> asyncio.Event:
    """Returns an event of the running loop that SIGTERM and Ctrl-C set, from now on."""
    stopping = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping
