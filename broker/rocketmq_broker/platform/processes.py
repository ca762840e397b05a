"""Functions for child processes. They block signals, and end a child when its parent ends."""

import contextlib
import os
import signal
import sys
from collections.abc import Collection, Iterator
from typing import Final

NO_SUPERVISOR: Final = (
    "--brokers requires Linux or macOS: Windows has no signal that stops a broker" if sys.platform == "win32" else None
)
"""The reason why this system cannot run several brokers under a supervisor, or None if it can."""
HAS_FLUSH_PROCESS: Final = sys.platform != "win32"
"""Whether a child process can sync files. On Windows no event loop waits for its pipe together with sockets."""


def end_with_input() -> None:
    """Starts a process that kills this process with SIGKILL when its standard input ends. Call it before threads start.

    If the input is a pipe from the parent, this process ends when the parent ends. Data in the pipe is discarded. The
    watching process is a fork, so that this process is killed even if it hangs or is stopped, and its port and the lock
    on its store are released. Raises NotImplementedError on Windows.
    """
    if sys.platform == "win32":
        raise NotImplementedError("Windows cannot fork")
    process_id = os.getpid()
    if os.fork():
        return
    try:
        for output in (1, 2):
            os.close(output)  # who reads it waits for its end
        while os.read(0, 1):
            pass
        if os.getppid() == process_id:
            os.kill(process_id, signal.SIGKILL)
    finally:
        os._exit(0)


@contextlib.contextmanager
def signals_blocked(signals: Collection[signal.Signals]) -> Iterator[None]:
    """Blocks signals within the block. A child process that is started within the block keeps them blocked.

    Ctrl-C reaches the whole process group, also a child that its parent still needs or ends itself. Windows has no signals to
    block: there this does nothing.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
