"""Ends a child process when its parent process ends for any reason (PR_SET_PDEATHSIG of Linux)."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def end_with(parent_id: int) -> Callable[[], None]:
    """Returns a function to call in the child between fork and exec.

    The child then gets SIGKILL when the process `parent_id` ends.

    SIGKILL also ends a child that hangs or is stopped, and would otherwise keep its port and the lock of its store. The forking
    thread must live as long as the parent, because Linux sends the signal when that thread ends.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # resolved before the fork, because the child must not load libraries

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent_id:
            os._exit(0)  # the parent ended before prctl was called

    return bind
