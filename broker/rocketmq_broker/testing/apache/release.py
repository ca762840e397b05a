"""The differences between the releases of Apache's broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release line of Apache's broker, as far as programs can notice."""

    name: str
    """The release that was looked at."""
    op_batch_s: float
    """The longest time of a decision in memory before its op message is written (transactionOpBatchInterval); 0 for none."""
    refuses_after_immunity: bool
    """Whether a decision after CHECK_IMMUNITY_TIME_IN_SECONDS is refused, unless it answers a check."""
    finds_next_offset: bool
    """Whether a search by time finds the next message, and past the last one the queue's end; otherwise the nearest message."""


RELEASES: Final = {
    4: Release(name="4.9.7", op_batch_s=0, refuses_after_immunity=False, finds_next_offset=False),
    5: Release(name="5.3.3", op_batch_s=3, refuses_after_immunity=True, finds_next_offset=True),
}


def release_named(number: int) -> Release:
    """Returns the release line with that number. Raises ValueError."""
    try:
        return RELEASES[number]
    except (KeyError, TypeError):
        known = " and ".join(f"{known} ({release.name})" for known, release in RELEASES.items())
        raise ValueError(f"release is {number!r}; there are {known}") from None
