"""Times as callers see them: RFC 3339, in UTC, with milliseconds."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(at_ms: int) -> str:
    """A time in milliseconds since the epoch as text: 2026-11-22T12:36:00.000Z."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rfc3339_or_none(at_ms: int | None) -> str | None:
    """See `rfc3339`; None for none."""
    return None if at_ms is None else rfc3339(at_ms)
