"""What `doctor` finds."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True, rename="camel"):
    """One fact about a name server or a broker."""

    subject: str
    """Whom it is about."""
    is_wrong: bool
    what: str
    """A sentence."""
    what_to_do: str | None = None
    """A sentence; where something is wrong."""


def fine(subject: str, what: str) -> Finding:
    """Something as it should be."""
    return Finding(subject, False, what)


def wrong(subject: str, what: str, what_to_do: str) -> Finding:
    """Something that needs a person."""
    return Finding(subject, True, what, what_to_do)
