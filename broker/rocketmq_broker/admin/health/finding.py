"""The findings of `doctor`."""

import msgspec


class HealthFinding(msgspec.Struct, frozen=True, rename="camel"):
    """A fact or a problem of a name server or a broker."""

    subject: str
    """The name server or broker that the finding is about."""
    is_wrong: bool
    what: str
    """The finding as a sentence."""
    what_to_do: str | None = None
    """The advice for a problem; None if nothing is wrong."""
    facts: dict[str, str | int] = {}
    """Machine-readable facts of the finding, such as `version` and `clockDifferenceMs`."""


def fine(subject: str, what: str, **facts: str | int) -> HealthFinding:
    """Returns a finding that needs no action."""
    return HealthFinding(subject, False, what, None, facts)


def wrong(subject: str, what: str, what_to_do: str, **facts: str | int) -> HealthFinding:
    """Returns a finding that is a problem, with advice on what to do."""
    return HealthFinding(subject, True, what, what_to_do, facts)
