"""Describes how the releases of Apache's broker differ."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The observable behaviour of a release line of Apache's broker."""

    name: str
    """The version whose behaviour is imitated, such as 4.9.7."""
    op_batch_s: float
    """The maximum delay in seconds before a decision's op message is written (transactionOpBatchInterval)."""
    refuses_after_immunity: bool
    """Whether a decision after CHECK_IMMUNITY_TIME_IN_SECONDS is refused, unless it answers a check-back."""
    finds_next_offset: bool
    """Whether a search by time returns the offset of the next message, or the end of the queue if there is none.

    Otherwise it returns the offset of the nearest message.
    """


RELEASES: Final = {
    4: Release(name="4.9.7", op_batch_s=0, refuses_after_immunity=False, finds_next_offset=False),
    5: Release(name="5.3.3", op_batch_s=3, refuses_after_immunity=True, finds_next_offset=True),
}


def release_named(number: int) -> Release:
    """Returns the release line with the major version `number`. Raises ValueError for an unknown version."""
    try:
        return RELEASES[number]
    except (KeyError, TypeError):
        known = " or ".join(f"{known} ({release.name})" for known, release in RELEASES.items())
        raise ValueError(f"unknown release {number!r}: must be {known}") from None
