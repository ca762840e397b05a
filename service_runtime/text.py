"""Validates text from outside, and formats times as RFC 3339 text, in UTC with milliseconds."""

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import AfterValidator


def _without_control_characters(text: str) -> str:
    """Returns the text unchanged. Raises ValueError if it contains control characters; PostgreSQL cannot store NUL."""
    if not text.isprintable() and any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise ValueError("must not contain control characters")
    return text


NO_CONTROL_CHARACTERS: Final = AfterValidator(_without_control_characters)
"""A pydantic validator for text without control characters."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(at_ms: int) -> str:
    """Formats milliseconds since the epoch, for example as 2026-11-22T12:36:00.000Z."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rfc3339_or_none(at_ms: int | None) -> str | None:
    """Formats a time like `rfc3339`. Returns None for None."""
    return None if at_ms is None else rfc3339(at_ms)
