"""Formats log records so that untrusted text cannot begin a new line."""

import logging
from typing import Final

from rocketmq_broker.message.text.printable import printable

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"

MAX_VALUE_LENGTH: Final = 1_000
"""The maximum number of characters of one value. It keeps the text after a long value visible."""
MAX_LINE_LENGTH: Final = 8_000
"""The maximum number of characters in a log line."""
MAX_TRACEBACK_LINES: Final = 200
_INDENT: Final = "    "


class LineFormatter(logging.Formatter):
    """Formats a record as one line, and its traceback as indented lines below this line.

    Names, keys and errors in a record are untrusted: a newline in them could forge a log line, and an escape character could
    control the reader's terminal. Therefore unprintable characters are escaped. Long values and long tracebacks are truncated.
    """

    def __init__(self, fmt: str = FORMAT) -> None:
        super().__init__(fmt)

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line, followed by the lines of the traceback."""
        record.message = _message(record)
        if self.usesTime():
            record.asctime = self.formatTime(record, self.datefmt)
        lines = [printable(self.formatMessage(record), MAX_LINE_LENGTH)]
        if record.exc_info:
            lines += _indented(self.formatException(record.exc_info))
        if record.stack_info:
            lines += _indented(record.stack_info)
        return "\n".join(lines)


def _message(record: logging.LogRecord) -> str:
    """Returns the record's message with long values truncated. Does not fail if the values do not match the format string."""
    args = record.args
    if isinstance(args, tuple):
        args = tuple(map(_cut, args))
    try:
        return str(record.msg) % args if args else str(record.msg)
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {args!r}"


def _cut(value: object) -> object:
    """Returns the value, or its text truncated if the text is too long."""
    if isinstance(value, (int, float)) or value is None:
        return value
    text = str(value)
    if len(text) <= MAX_VALUE_LENGTH:
        return value
    return f"{text[:MAX_VALUE_LENGTH]}... ({len(text) - MAX_VALUE_LENGTH} more characters)"


def _indented(text: str) -> list[str]:
    # Split only at "\n": str.splitlines would also split at a form feed in the text of an error.
    lines = text.rstrip("\n").split("\n")
    left_out = len(lines) - MAX_TRACEBACK_LINES
    if left_out > 0:
        half = MAX_TRACEBACK_LINES // 2
        lines = [*lines[:half], f"... ({left_out} more lines)", *lines[-half:]]
    return [_INDENT + printable(line, MAX_LINE_LENGTH) for line in lines]
