"""A child that ends when its parent does, however the parent ends (Linux: PR_SET_PDEATHSIG)."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def end_with(parent_id: int) -> Callable[[], None]:
    """Returns what a child calls between fork and exec, so that SIGKILL ends it when `parent_id` has ended.

    SIGKILL also ends a child that hangs or is stopped, which would keep its port and its store's lock.
    The thread that forks must live as long as the parent: Linux sends the signal when that thread ends.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # found before the fork: the child must not load anything

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent_id:
            os._exit(0)  # the parent ended before the call

    return bind
