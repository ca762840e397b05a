"""SIGTERM and SIGINT: during a program's start, most of which its imports take, and Ctrl-C while a tool works."""

import os
import signal
import sys
from types import FrameType, TracebackType

# Nothing more is imported: until `end_at_once_when_told` is called a signal ends the program with a traceback.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
INTERRUPTED = 130
"""The exit status of a program that Ctrl-C ended."""


def end_at_once_when_told() -> None:
    """Lets SIGTERM and SIGINT end the program at once with exit code 0, until the program sets its own handlers.

    Call it first, before the imports. A signal that the program was started to ignore stays ignored.
    """
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


class until_interrupted:
    """A block that Ctrl-C ends with a sentence on stderr and exit status 130, never with a traceback.

    A program that has said its own sentence, and ended by another exception, says no second one. Typer turns
    Ctrl-C into a silent exit: that is told too.
    """

    def __init__(self, sentence: str = "Stopped.") -> None:
        self._sentence = sentence

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: TracebackType | None) -> None:
        if isinstance(error, KeyboardInterrupt) or _is_silent_exit(error):
            sys.stderr.write(f"\n{self._sentence}\n")
            raise SystemExit(INTERRUPTED) from None


def _is_silent_exit(error: BaseException | None) -> bool:
    """Is it Typer's, which raises its own exit from the interruption?"""
    exits = error.__context__ if isinstance(error, SystemExit) else None
    return exits is not None and isinstance(exits.__cause__, KeyboardInterrupt)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)
