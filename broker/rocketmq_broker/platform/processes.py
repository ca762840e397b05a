"""Child processes: which signals reach them, and how they end when their parent ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Final

from rocketmq_broker.platform.signals import STOP_SIGNALS

_PR_SET_PDEATHSIG: Final = 1

NO_SUPERVISOR: Final = (
    "--brokers requires Linux or macOS: Windows has no signal that stops a broker" if sys.platform == "win32" else None
)
"""The reason why this system cannot run several brokers under a supervisor, or None if it can."""
HAS_FLUSH_PROCESS: Final = sys.platform != "win32"
"""Whether a child process can sync files. On Windows no event loop waits for its pipe together with sockets."""


def end_with(parent_id: int) -> Callable[[], None] | None:
    """Returns a function to call in the child between fork and exec, or None on a system other than Linux.

    The child then gets SIGKILL when the process `parent_id` ends for any reason (PR_SET_PDEATHSIG of Linux).

    SIGKILL also ends a child that hangs or is stopped, and would otherwise keep its port and the lock of its store. The forking
    thread must live as long as the parent, because Linux sends the signal when that thread ends.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl  # resolved before the fork, because the child must not load libraries

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent_id:
            os._exit(0)  # the parent ended before prctl was called

    return bind


@contextlib.contextmanager
def stop_signals_blocked() -> Iterator[None]:
    """A context manager that blocks the stop signals in the parent, and permanently in a child started within it.

    Ctrl-C reaches the whole process group, and the parent needs the child for its last flush.
    """
    if sys.platform == "win32":
        raise NotImplementedError("Windows cannot block a signal in a child process")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
