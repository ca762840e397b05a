"""The verdict of a judge on an order's entries in the ledger."""

from enum import StrEnum


class OrderVerdict(StrEnum):
    """The verdict on an order at the end of a simulation."""

    SETTLED = "settled"
    """The order has the entries that its state requires."""
    WAITS_FOR_A_PERSON = "waits for a person"
    """The order lacks an entry, and is on a list for operators: as a parked message, a dead letter or a discarded half
    message.
    """
    BROKEN = "broken"
