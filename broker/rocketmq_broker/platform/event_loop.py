"""Functions of event loops that differ between systems: creating a loop, handling stop signals, and yielding the processor."""

import asyncio
import os
import selectors
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rocketmq_broker.platform.signals import STOP_SIGNALS

yield_processor: Final[Callable[[], None]] = getattr(os, "sched_yield", lambda: None)
"""Lets another thread or process run on this processor. Windows has no such call; its loop of `server_loop` needs none."""


def server_loop(new_selector: Callable[[], selectors.BaseSelector]) -> asyncio.AbstractEventLoop:
    """Returns an asyncio event loop that uses the selector. On Windows, returns a ProactorEventLoop, which has no selector.

    On Windows, `select` supports at most 512 sockets.
    """
    if sys.platform == "win32":
        return asyncio.ProactorEventLoop()
    return asyncio.SelectorEventLoop(new_selector())


def call_on_stop_signals(loop: asyncio.AbstractEventLoop, callback: Callable[[], Any]) -> None:
    """Makes the loop call `callback` at each stop signal. Call it in the main thread."""
    for number in STOP_SIGNALS:
        if sys.platform == "win32":
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(callback))
        else:
            loop.add_signal_handler(number, callback)
    if sys.platform == "win32" and isinstance(loop, asyncio.SelectorEventLoop):
        # Python handles a signal when the main thread runs. Its byte here wakes the loop; a ProactorEventLoop does so by itself.
        signal.set_wakeup_fd(loop._csock.fileno())  # type: ignore[attr-defined]


@contextmanager
def called_on_stop_signals(loop: asyncio.AbstractEventLoop, callback: Callable[[], Any]) -> Iterator[None]:
    """Makes the loop call `callback` at each stop signal within the block. After the block, Python's default handlers apply."""
    call_on_stop_signals(loop, callback)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            if sys.platform == "win32":
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
            else:
                loop.remove_signal_handler(number)
