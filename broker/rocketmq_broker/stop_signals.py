"""Handles SIGTERM and SIGINT during start-up, and Ctrl-C while a command runs.

Install the handlers before other imports, because imports take most of the start-up time.
"""

import os
import signal
import sys
from types import FrameType, TracebackType

# Import nothing else here: before one of the functions below is called, a signal ends the program with a traceback.
from rocketmq_broker.platform.signals import STOP_SIGNALS as STOP_SIGNALS

INTERRUPTED = 130
"""The exit status of a program that was ended by Ctrl-C."""


def exit_at_once_on_stop_signals() -> None:
    """Makes SIGTERM and SIGINT end the program at once with exit code 0, until the program sets its own handlers.

    Call it before all other imports. A signal that is ignored when the program starts stays ignored.
    """
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def exit_at_once_on_ctrl_c() -> None:
    """Makes Ctrl-C end the program at once with exit status 130, until `until_interrupted` begins.

    Call it before all other imports. Ctrl-C that is ignored when the program starts stays ignored.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end_interrupted)


class until_interrupted:
    """A context manager that ends the program on Ctrl-C with a message on stderr and exit status 130, without a traceback.

    Inside, Ctrl-C raises KeyboardInterrupt, also after `exit_at_once_on_ctrl_c`.
    The message is also printed when Typer turns Ctrl-C into a silent exit. Other exceptions pass unchanged.
    """

    def __init__(self, sentence: str = "Stopped.") -> None:
        self._sentence = sentence

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGINT) is _end_interrupted:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: TracebackType | None) -> None:
        if isinstance(error, KeyboardInterrupt) or _is_silent_exit(error):
            sys.stderr.write(f"\n{self._sentence}\n")
            raise SystemExit(INTERRUPTED) from None


def _is_silent_exit(error: BaseException | None) -> bool:
    """Returns True for the exit that Typer raises from a KeyboardInterrupt."""
    exits = error.__context__ if isinstance(error, SystemExit) else None
    return exits is not None and isinstance(exits.__cause__, KeyboardInterrupt)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)


def _end_interrupted(_number: int, _frame: FrameType | None) -> None:
    sys.stderr.write("\nStopped.\n")
    os._exit(INTERRUPTED)
