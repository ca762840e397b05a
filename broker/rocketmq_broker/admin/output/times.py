"""Formats times."""

import time


def time_text(ms: int | None) -> str:
    """Formats a time in local time; an empty string for None."""
    if ms is None:
        return ""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms after 1970"  # the year is out of the system clock's range


def exact_time_text(ms: int | None) -> str:
    """Formats a time in local time, to the millisecond; an empty string for None."""
    return "" if ms is None else f"{time_text(ms)}.{ms % 1000:03d}"
