"""Formats strings, times and numbers for the HTML page of a simulated run."""

from html import escape
from typing import Final

from rocketmq_broker.message.text.printable import printable

_NS_PER_MS: Final = 1_000_000
_MAX_LENGTH: Final = 240
"""The maximum length of an event's text in a row, in characters."""


def escaped(text: str, max_length: int | None = _MAX_LENGTH) -> str:
    """Escapes a string for HTML elements and attributes, and makes unprintable characters visible."""
    return escape(printable(text, max_length))


def moment_text(at_ns: int) -> str:
    """Formats a time since the world began as `1:21.204` (minutes and seconds), or with hours as `2:05:03.100`."""
    seconds, milliseconds = divmod(at_ns // _NS_PER_MS, 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    begin = f"{hours}:{minute:02}" if hours else f"{minute}"
    return f"{begin}:{second:02}.{milliseconds:03}"


def wait_text(wait_ns: int) -> str:
    """Formats a duration in its two largest units, down to seconds: `57 s`, `3 min 20 s`, `2 h 5 min`."""
    minutes, seconds = divmod(wait_ns // (1000 * _NS_PER_MS), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minute} min" if minute else f"{hours} h"
    if minute:
        return f"{minute} min {seconds} s" if seconds else f"{minute} min"
    return f"{seconds} s"


def counted(number: int, noun: str) -> str:
    """Formats a number with its noun: `1 fault`, `1,234 faults`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(parts: list[str]) -> str:
    """Joins parts for a sentence: `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
