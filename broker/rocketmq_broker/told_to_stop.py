"""SIGTERM and SIGINT during a program's start, most of which its imports take."""

import os
import signal
from types import FrameType

# Nothing more is imported: until `end_at_once_when_told` is called a signal ends the program with a traceback.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def end_at_once_when_told() -> None:
    """Lets SIGTERM and SIGINT end the program at once with exit code 0, until the program sets its own handlers.

    Call it first, before the imports. A signal that the program was started to ignore stays ignored.
    """
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)
