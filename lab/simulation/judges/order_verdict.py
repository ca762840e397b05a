"""A judge's verdict on the entries of an order."""

from enum import StrEnum


class OrderVerdict(StrEnum):
    """The verdict on an order at the end of a world."""

    SETTLED = "settled"
    """It has the entries that its state requires."""
    WAITS_FOR_A_PERSON = "waits for a person"
    """It lacks an entry, and is on a list for operators: as a dead letter or a discarded half message."""
    BROKEN = "broken"
