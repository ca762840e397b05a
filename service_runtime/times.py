"""Formats times as RFC 3339, in UTC, with milliseconds."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(at_ms: int) -> str:
    """Formats milliseconds since the epoch, for example as 2026-11-22T12:36:00.000Z."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rfc3339_or_none(at_ms: int | None) -> str | None:
    """Formats a time like `rfc3339`. Returns None for None."""
    return None if at_ms is None else rfc3339(at_ms)
