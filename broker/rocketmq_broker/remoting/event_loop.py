"""An event loop for servers, with fewer system calls and fewer sleeps than asyncio's default loop.

**One poll per read.** The work that follows a read (writing the commit log, ending the turn, sending responses) runs in the event
loop's next iteration. Before that iteration, asyncio polls the selector again without waiting, and finds nothing if only one
message is in flight. This loop skips that poll. The work still runs before the next read, as in asyncio's loop, and the following
iteration polls for all new input.

**Busy polling.** Sleeping and waking up takes longer than the broker needs to handle a message. After a short wait, the loop
therefore begins the next wait by polling for a moment, and yields the processor between polls.
"""

import asyncio
import selectors
from time import perf_counter

from rocketmq_broker.platform.event_loop import call_on_stop_signals, server_loop, yield_processor

Ready = list[tuple[selectors.SelectorKey, int]]


class OnceAnswered(selectors.DefaultSelector):
    """A selector that skips the first non-blocking poll after a poll that found ready files."""

    def __init__(self, busy_poll_s: float = 0.0) -> None:
        """Creates a selector. After a wait shorter than `busy_poll_s`, the next wait first polls for that time. 0 disables it."""
        super().__init__()
        self._busy_poll_s = busy_poll_s
        self._was_short = False
        self._has_answered = False

    def select(self, timeout: float | None = None) -> Ready:
        """Returns the ready files, or an empty list for the skipped poll."""
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
                yield_processor()
                if ready := super().select(0):
                    return ready
            if timeout is not None:
                timeout -= moment
        ready = super().select(timeout)
        self._was_short = perf_counter() - began < self._busy_poll_s
        return ready


def new_event_loop(busy_poll_s: float = 0.0) -> asyncio.AbstractEventLoop:
    """Returns an asyncio event loop for `asyncio.Runner(loop_factory=...)`. Except on Windows, it uses `OnceAnswered`."""
    return server_loop(lambda: OnceAnswered(busy_poll_s))


def event_of_stop_signals() -> asyncio.Event:
    """Returns an event that is set on SIGTERM or Ctrl-C. Requires a running event loop."""
    stopping = asyncio.Event()
    call_on_stop_signals(asyncio.get_running_loop(), stopping.set)
    return stopping
