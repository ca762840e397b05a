"""A logging handler that writes to standard error and limits the rate of each kind of line."""

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
    """A handler that writes at most 100 lines of one kind in a minute, and counts the omitted lines.

    The kind of a line is the place in the source code that logs it. Therefore, untrusted input can neither fill the
    disk with log lines nor suppress lines of other kinds. The count of omitted lines is written once the minute is
    over, before the next line of any kind, or when logging ends.
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
        """Writes the record unless its kind has reached the limit."""
        now_s = self._now_s()
        for left_out in self._flood.take_over(now_s):
            self._write_count(left_out)
        kind = (record.pathname, record.lineno)
        if self._flood.admits(kind, now_s):
            super().emit(record)
        elif self._flood.is_first_left_out(kind):
            self._first[kind] = _without_traceback(record)
            self._write(record, f"more lines of {_place(record)} are not written but counted: limit of lines in a minute reached")

    def close(self) -> None:
        """Writes the counts that have not been written yet, and closes the handler."""
        self.acquire()
        try:
            with suppress(ValueError):  # The interpreter may already have closed the stream.
                for left_out in self._flood.take_all(self._now_s()):
                    self._write_count(left_out)
        finally:
            self.release()
        super().close()

    def _write_count(self, left_out: LeftOut) -> None:
        first = self._first.pop(left_out.kind)
        counted = f"{left_out.count} lines of {_place(first)} were not written in {left_out.seconds:.0f} s"
        self._write(first, f"{counted}; the first one: {first.getMessage()}")

    def _write(self, like: logging.LogRecord, message: str) -> None:
        super().emit(logging.LogRecord(like.name, like.levelno, like.pathname, like.lineno, message, None, None))


def _without_traceback(record: logging.LogRecord) -> logging.LogRecord:
    """Returns a copy of the record without references to the traceback's frames, so that they can be freed."""
    message = LineFormatter("%(message)s").format(
        logging.LogRecord(record.name, record.levelno, record.pathname, record.lineno, record.msg, record.args, None)
    )
    return logging.LogRecord(record.name, record.levelno, record.pathname, record.lineno, message, None, None)


def log_to_stderr(level: int) -> None:
    """Adds a BoundedHandler to the root logger, for records at `level` and above. Does nothing if the root logger has handlers.

    Also logs warnings, and exceptions that end a thread or the process, so that their texts are escaped too.
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
    logger.critical("unexpected error; exiting", exc_info=(kind, error, traceback))


def _log_unexpected_in_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is None or issubclass(ended.exc_type, SystemExit):
        return
    name = f"thread {ended.thread.name}" if ended.thread else "a thread"
    logger.critical("unexpected error: %s has ended", name, exc_info=(ended.exc_type, ended.exc_value, ended.exc_traceback))


def _place(record: logging.LogRecord) -> str:
    return f"{record.filename}:{record.lineno}"
