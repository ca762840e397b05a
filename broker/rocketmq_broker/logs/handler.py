"""Where log lines go: the standard error stream, through a bound on each kind of line."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TextIO

from rocketmq_broker.logs.flood import Flood, Kind, LeftOut
from rocketmq_broker.logs.line_formatter import LineFormatter

logger = logging.getLogger(__name__)


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Writes at most 100 lines of one kind in a minute. The others are counted, and a line says how many they were.

    The kind of a line is the place in the source that logs it. Whoever can make a process log can so not fill its disk, and not
    bury the lines of other kinds. The count is written with the next line of any kind after the minute, or when logging ends.
    """

    def __init__(
        self, stream: TextIO | None = None, *, flood: Flood | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(stream)
        self.setFormatter(LineFormatter())
        self._flood = flood or Flood()
        self._now_s = now_s
        self._first: dict[Kind, logging.LogRecord] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the line if its kind is not flooded."""
        now_s = self._now_s()
        for left_out in self._flood.take_over(now_s):
            self._tell(left_out)
        kind = (record.pathname, record.lineno)
        if self._flood.admits(kind, now_s):
            super().emit(record)
        elif self._flood.is_first_left_out(kind):
            self._first[kind] = _without_traceback(record)
            self._say(
                record, f"more lines of {_place(record)} are counted, not written: it has written as many as it may in a minute"
            )

    def close(self) -> None:
        """Writes what is only counted yet."""
        self.acquire()
        try:
            with suppress(ValueError):  # whoever ended the process closed the stream first
                for left_out in self._flood.take_all(self._now_s()):
                    self._tell(left_out)
        finally:
            self.release()
        super().close()

    def _tell(self, left_out: LeftOut) -> None:
        first = self._first.pop(left_out.kind)
        counted = f"{left_out.count} lines of {_place(first)} were not written in {left_out.seconds:.0f} s"
        self._say(first, f"{counted}; the first of them: {first.getMessage()}")

    def _say(self, like: logging.LogRecord, message: str) -> None:
        super().emit(logging.LogRecord(like.name, like.levelno, like.pathname, like.lineno, message, None, None))


def _without_traceback(record: logging.LogRecord) -> logging.LogRecord:
    """A record to keep: it holds no frames, nor what they refer to."""
    message = LineFormatter("%(message)s").format(
        logging.LogRecord(record.name, record.levelno, record.pathname, record.lineno, record.msg, record.args, None)
    )
    return logging.LogRecord(record.name, record.levelno, record.pathname, record.lineno, message, None, None)


def log_to_stderr(level: int) -> None:
    """Logs to the standard error stream from that level up: safe lines, bounded by kind. Does nothing where logging is set up.

    What ends a thread or the process unexpectedly is logged as well, so that its text passes the same formatter.
    """
    if logging.getLogger().handlers:
        return
    logging.basicConfig(level=level, handlers=[BoundedHandler()])
    logging.captureWarnings(True)
    sys.excepthook = _log_unexpected
    threading.excepthook = _log_unexpected_in_thread


def _log_unexpected(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    logger.critical("an unexpected error ends the process", exc_info=(kind, error, traceback))


def _log_unexpected_in_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is None or issubclass(ended.exc_type, SystemExit):
        return
    name = ended.thread.name if ended.thread else "a thread"
    logger.critical("an unexpected error ends %s", name, exc_info=(ended.exc_type, ended.exc_value, ended.exc_traceback))


def _place(record: logging.LogRecord) -> str:
    return f"{record.filename}:{record.lineno}"
