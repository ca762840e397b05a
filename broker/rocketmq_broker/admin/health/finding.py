"""The findings of `doctor`."""

from __future__ import annotations

import msgspec


class HealthFinding(msgspec.Struct, frozen=True, rename="camel"):
    """One fact about a name server or a broker."""

    subject: str
    """The name server or broker concerned."""
    is_wrong: bool
    what: str
    """A sentence."""
    what_to_do: str | None = None
    """A sentence; where something is wrong."""
    facts: dict[str, str | int] = {}
    """The sentence's facts for programs: `version`, `clockDifferenceMs`."""


def fine(subject: str, what: str, **facts: str | int) -> HealthFinding:
    """Returns a finding that needs nobody."""
    return HealthFinding(subject, False, what, None, facts)


def wrong(subject: str, what: str, what_to_do: str, **facts: str | int) -> HealthFinding:
    """Returns a finding that needs a person."""
    return HealthFinding(subject, True, what, what_to_do, facts)
